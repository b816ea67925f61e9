//! The promises of docs/safety.md, as properties of each decision. They do not use the rules of `decide`.

use super::super::sample::NOW;
use super::blank::*;
use super::contents::begun;
use super::known::*;
use crate::volume::decide::decision::{Decision, Making, When};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Content, Facts, Lvm};
use crate::volume::decide::rules::decide;
use crate::volume::decide::uses::There;
use crate::volume::decide::wish::{Purpose, Wish};

/// Checks the promises. None depends on how `decide` comes to its decision.
#[allow(clippy::too_many_lines)] // one promise after the other
pub fn check(facts: &Facts, wish: &Wish, decision: &Decision) {
    let case = || format!("{decision:?}\n{facts:?}\n{wish:?}");
    let changes = matches!(
        decision,
        Decision::Extend(_) | Decision::Mount(_) | Decision::Open { .. } | Decision::Make { .. }
    );
    // Space that LVM may have given to another volume is never written.
    let is_written = changes && !wish.read_only;
    assert!(!is_written || facts.larger_device.is_none(), "{}", case());
    // Neither is what a merge would undo.
    let is_undone = facts.volume().is_some_and(|volume| {
        volume.attr.starts_with('O') && volume.is_active() && !volume.merge_failed.is_empty()
    });
    assert!(!is_written || !is_undone, "{}", case());
    match decision {
        Decision::Make {
            permit,
            how: Making::Plain { again },
        } => {
            let fs = permit.fs();
            assert!(may_be_made(facts, wish), "{}", case());
            assert_eq!(volume_of(facts).record.luks, None, "{}", case());
            assert_ne!(wish.encrypted, Some(true), "{}", case());
            let record = &volume_of(facts).record;
            let is_left = begun(record).is_some() && doubts_left(facts).is_empty();
            assert_eq!(*again, is_left, "{}", case());
            if let Some(Content::Filesystem(found)) = &facts.content {
                assert!(*again && fs == found.filesystem.fs, "{}", case());
                assert!(wish.fs.is_none_or(|wanted| wanted == fs), "{}", case());
            } else {
                assert_eq!(fs, wish.fs.unwrap_or(wish.default_fs), "{}", case());
            }
            without_one_permission(facts, wish);
            with_one_doubt_more(facts, wish);
        }
        Decision::Make {
            permit,
            how: Making::InLuks { uuid },
        } => {
            let fs = permit.fs();
            assert!(may_be_made(facts, wish), "{}", case());
            assert!(has_key(wish), "{}", case());
            let record = &volume_of(facts).record;
            assert!(
                record.made.is_none() || record.permission.is_some(),
                "{}",
                case()
            );
            assert_eq!(record.luks, None);
            let content = facts.content.as_ref();
            let can_be_opened = matches!(content, Some(Content::Luks(header)) if header.has_keys());
            assert!(!can_be_opened && facts.decrypted.is_none(), "{}", case());
            let header = record.making_in_luks().map(|(_, uuid)| uuid);
            assert_eq!(header, uuid.as_deref(), "{}", case());
            assert!(wish.fs.is_none_or(|wanted| wanted == fs), "{}", case());
            with_one_doubt_more(facts, wish);
        }
        Decision::Make {
            permit,
            how: Making::InOpenLuks,
        } => {
            let fs = permit.fs();
            assert!(may_be_made(facts, wish), "{}", case());
            assert_ne!(wish.encrypted, Some(false), "{}", case());
            assert!(wish.fs.is_none_or(|wanted| wanted == fs), "{}", case());
            let record = &volume_of(facts).record;
            assert!(record.made.is_none() && record.luks.is_none(), "{}", case());
            let mut more = facts.clone();
            if let Some(Content::Blank { doubts, .. }) =
                more.decrypted.as_mut().map(|one| &mut one.content)
            {
                doubts.push(Doubt::Mark("one more".into()));
                let decision = decide(&more, wish);
                assert!(matches!(decision, Decision::Refuse(_)), "{}", case());
            }
        }
        Decision::Open { .. } => {
            assert!(
                is_known_and_well(facts) && has_its_header(facts),
                "{}",
                case()
            );
            assert!(has_key(wish), "{}", case());
            assert!(!facts.is_mounted_here(), "{}", case());
        }
        Decision::Mount(mount) => {
            assert!(is_known_and_well(facts), "{}", case());
            assert!(is_of_wanted_kind(facts, wish), "{}", case());
            assert!(
                wish.fs.is_none_or(|fs| fs == mount.filesystem.fs),
                "{}",
                case()
            );
            let made = &volume_of(facts).record.made;
            assert!(
                made.as_ref()
                    .is_none_or(|made| made.uuid == mount.filesystem.uuid),
                "{}",
                case()
            );
            let may_allow_mkfs = volume_of(facts).record.may_allow_mkfs(NOW);
            let is_mounted = mount.alive.is_some();
            let is_first = mount.record == When::Before;
            assert!(is_first || is_mounted || !may_allow_mkfs, "{}", case());
            let is_recorded = mount.record != When::Not;
            assert!(!is_recorded || is_exactly_well(facts), "{}", case());
            let has_copies = volume_of(facts).layout == "raid,raid1";
            assert!(facts.stand_in.is_none() || has_copies, "{}", case());
            assert!(is_one_filesystem(facts), "{}", case());
            let writes = mount.check || mount.grow != When::Not;
            assert!(!(wish.read_only && writes), "{}", case());
            let openers = facts.openers.as_ref();
            let has_errors = openers.is_some_and(|openers| openers.has_errors);
            let is_well = !has_errors || mount.alive.is_none();
            assert!(wish.read_only || is_well, "{}", case());
        }
        Decision::Extend(_) | Decision::Create(_) | Decision::Activate | Decision::Resume => {
            let is_silent = matches!(facts.lvm, Some(Lvm::Silent(_) | Lvm::Hidden) | None);
            assert!(!is_silent, "{}", case());
            let locks = facts.locks.as_ref();
            let has_locks = locks.is_none_or(|locks| locks.obstacle(facts.id.vg()).is_none());
            assert!(has_locks, "{}", case());
            let has_failed = facts
                .uses
                .as_ref()
                .is_some_and(|uses| uses.failure.is_some());
            let is_extended = matches!(decision, Decision::Extend(_));
            assert!(!(is_extended && has_failed), "{}", case());
            assert!(!is_extended || has_disks_to_grow_on(facts), "{}", case());
            let is_making = matches!(decision, Decision::Create(_));
            assert!(!(wish.read_only && is_making), "{}", case());
        }
        Decision::Bind(row) => {
            assert!(is_as_wanted(row, facts, wish), "{}", case());
            assert!(is_for_one_more(row, facts, wish), "{}", case());
            let uses = facts.uses.as_ref().unwrap();
            let is_its = uses.mounts.iter().any(|m| m.row == *row && !m.hidden);
            assert!(is_its, "{}", case());
            let is_written = !wish.read_only && uses.mounted_read_only_device;
            assert!(!is_written, "{}", case());
        }
        Decision::Restrict { row, flags } => {
            assert!(is_as_wanted(row, facts, wish), "{}", case());
            assert_eq!(*flags, wish.flags_of(row), "{}", case());
        }
        Decision::Ready if wish.purpose == Purpose::Device => {
            assert!(facts.device.is_some(), "{}", case());
        }
        // The volume is large enough already.
        Decision::Ready if wish.purpose != Purpose::Filesystem => {}
        Decision::Ready => {
            let uses = facts.uses.as_ref().unwrap();
            if let Some(There::This(row)) = &uses.there {
                assert!(is_as_wanted(row, facts, wish), "{}", case());
                let is_restricted = wish.flags_of(row) == row.flags();
                assert!(is_restricted, "{}", case());
            } else {
                // The volume has a global mount under another name, from which the pods of this name are bound.
                let mut globals = uses.mounts.iter().filter(|mounted| mounted.global);
                let row = &globals.next().unwrap_or_else(|| panic!("{}", case())).row;
                assert!(wish.global && is_as_wanted(row, facts, wish), "{}", case());
                let is_written = !wish.read_only && uses.mounted_read_only_device;
                assert!(!is_written, "{}", case());
                assert!(is_for_one_more(row, facts, wish), "{}", case());
            }
        }
        Decision::Refuse(_) | Decision::Look(_) => {}
    }
}

/// An answer of LVM from before this call activated the volume leads to one thing only: the mount of the recorded
/// filesystem. It never leads to a refusal.
pub fn lvm_before_activation(facts: &Facts, wish: &Wish) {
    let facts = Facts {
        lvm_before_activation: true,
        ..facts.clone()
    };
    match decide(&facts, wish) {
        Decision::Look(_) => {}
        Decision::Mount(mount) => {
            let (volume, uuid) = (volume_of(&facts), &mount.filesystem.uuid);
            let made = volume.record.made.as_ref();
            assert!(made.is_some_and(|made| made.uuid == *uuid), "{facts:?}");
            let record = &volume.record;
            assert!(
                record.making.is_none() && record.luks.is_none(),
                "{facts:?}"
            );
            let is_alone = volume.lock.is_none() && volume.pool.is_none();
            assert!(is_alone && mount.record == When::Not, "{facts:?}");
            assert_eq!(volume.layout, "linear", "{facts:?}");
            assert!(facts.openers.is_some() && !facts.read_only, "{facts:?}");
        }
        other => panic!("{other:?}\n{facts:?}\n{wish:?}"),
    }
}
