//! The promises of docs/safety.md, as properties of each decision. They do not use the rules of `decide`.

use super::super::sample::{NOW, layout, table, volume};
use super::sights::doubts;
use crate::crypt::Header;
use crate::lvm::{LeaseState, Record, Volume};
use crate::mount::Row;
use crate::volume::decide::decision::{Decision, Grow, Making};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Content, Facts, Lvm, Pool, Sectors};
use crate::volume::decide::rules::decide;
use crate::volume::decide::uses::{Mounted, Openers, There};
use crate::volume::decide::wish::{Purpose, Wish};
use crate::volume::device::Failure;

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
    assert!(!is_written || facts.outgrown.is_none(), "{}", case());
    match decision {
        Decision::Make {
            permit,
            how: Making::Plain { again },
        } => {
            let fs = permit.fs();
            assert!(may_be_made(facts, wish), "{}", case());
            assert_eq!(volume_of(facts).record.luks, None, "{}", case());
            assert_ne!(wish.encrypted, Some(true), "{}", case());
            let content = facts.content.as_ref();
            assert_eq!(
                *again,
                matches!(content, Some(Content::Filesystem(_))),
                "{}",
                case()
            );
            if *again {
                assert_eq!(volume_of(facts).record.making.as_deref(), Some(fs.as_str()));
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
            assert!(!can_be_opened && facts.inside.is_none(), "{}", case());
            let begun = record.making_in_luks().map(|(_, uuid)| uuid);
            assert_eq!(begun, uuid.as_deref(), "{}", case());
            assert!(wish.fs.is_none_or(|wanted| wanted == fs), "{}", case());
            with_one_doubt_more(facts, wish);
        }
        Decision::Make {
            permit,
            how: Making::Inside,
        } => {
            let fs = permit.fs();
            assert!(may_be_made(facts, wish), "{}", case());
            assert_ne!(wish.encrypted, Some(false), "{}", case());
            assert!(wish.fs.is_none_or(|wanted| wanted == fs), "{}", case());
            let record = &volume_of(facts).record;
            assert!(record.made.is_none() && record.luks.is_none(), "{}", case());
            let mut more = facts.clone();
            if let Some(Content::Blank { doubts, .. }) =
                more.inside.as_mut().map(|one| &mut one.content)
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
            assert!(mount.record || is_mounted || !may_allow_mkfs, "{}", case());
            assert!(is_one_filesystem(facts), "{}", case());
            assert!(is_on_its_sectors(facts), "{}", case());
            let writes = mount.check || mount.grow != Grow::Not;
            assert!(!(wish.read_only && writes), "{}", case());
            let openers = facts.openers.as_ref();
            let has_errors = openers.is_some_and(|openers| openers.has_errors);
            let is_well = !has_errors || mount.alive.is_none();
            assert!(wish.read_only || is_well, "{}", case());
        }
        Decision::Extend(_) | Decision::Create(_) | Decision::Activate | Decision::Resume => {
            let is_silent = matches!(facts.lvm, Some(Lvm::Silent(_) | Lvm::Hidden) | None);
            assert!(!is_silent, "{}", case());
            let has_failed = facts
                .uses
                .as_ref()
                .is_some_and(|uses| uses.failure.is_some());
            let is_extended = matches!(decision, Decision::Extend(_));
            let sectors = facts.ground.iter().flat_map(|ground| &ground.sectors);
            let is_well = !(is_extended && has_failed) && sectors.clone().all(fits);
            assert!(is_well, "{}", case());
            let is_making = matches!(decision, Decision::Create(_));
            assert!(!(wish.read_only && is_making), "{}", case());
        }
        Decision::Bind(row) => {
            assert!(is_as_wanted(row, facts, wish), "{}", case());
            assert!(is_for_one_more(row, facts, wish), "{}", case());
            let is_its = facts
                .uses
                .as_ref()
                .is_some_and(|uses| uses.mounts.iter().any(|m| m.row == *row));
            assert!(is_its, "{}", case());
        }
        Decision::Restrict { row, flags } => {
            assert!(is_as_wanted(row, facts, wish), "{}", case());
            assert_eq!(*flags, wish.restrictions(row), "{}", case());
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
                let is_restricted = wish.restrictions(row) == row.restrictions();
                assert!(is_restricted, "{}", case());
            } else {
                // The volume has a global mount under another name, from which the pods of this name are bound.
                let mut globals = uses.mounts.iter().filter(|mounted| mounted.global);
                let row = &globals.next().unwrap_or_else(|| panic!("{}", case())).row;
                assert!(wish.global && is_as_wanted(row, facts, wish), "{}", case());
                assert!(is_for_one_more(row, facts, wish), "{}", case());
            }
        }
        Decision::Refuse(_) | Decision::Look(_) => {}
    }
}

/// An answer of LVM from before this call activated the volume leads to one thing only: the mount of the recorded
/// filesystem. It never leads to a refusal.
pub fn listed_inactive(facts: &Facts, wish: &Wish) {
    let facts = Facts {
        listed_inactive: true,
        ..facts.clone()
    };
    match decide(&facts, wish) {
        Decision::Look(_) => {}
        Decision::Mount(mount) => {
            let (volume, uuid) = (volume_of(&facts), &mount.filesystem.uuid);
            let made = volume.record.made.as_ref();
            assert!(made.is_some_and(|made| made.uuid == *uuid), "{facts:?}");
            let others = [&volume.record.making, &volume.record.luks];
            assert_eq!(others, [&None, &None], "{facts:?}");
            let is_alone = volume.lock.is_none() && volume.pool.is_none();
            assert!(is_alone && !mount.record, "{facts:?}");
            assert_eq!(volume.layout, "linear", "{facts:?}");
            assert!(facts.openers.is_some() && !facts.read_only, "{facts:?}");
        }
        other => panic!("{other:?}\n{facts:?}\n{wish:?}"),
    }
}

/// The mounted filesystem is the one that the pod asks for, even if it was mounted for another pod.
fn is_as_wanted(row: &Row, facts: &Facts, wish: &Wish) -> bool {
    let is_open = facts.uses.iter().any(|uses| uses.inside.is_some());
    wish.not_allowed.is_none()
        && facts.not_its_device.is_none()
        && wish.fs.is_none_or(|fs| fs.as_str() == row.fs_type)
        && wish.encrypted.is_none_or(|is| is == is_open)
}

/// Nothing forbids that one more pod gets a filesystem that others have mounted.
fn is_for_one_more(row: &Row, facts: &Facts, wish: &Wish) -> bool {
    let uses = facts.uses.as_ref().unwrap();
    let made = |volume: &Volume| volume.record.made.is_some();
    let is_recorded = facts.volume().is_some_and(made);
    let is_pods = |one: &Mounted| one.kubelets || is_recorded && (one.runtimes || wish.by_hand);
    let may_be_read = uses.failure != Some(Failure::ShutDown);
    let may_be_written = uses.failure.is_none() && !row.is_filesystem_read_only();
    uses.mounts.iter().all(is_pods)
        && !uses.swap
        && uses.holders.is_empty()
        && uses.suspended.is_none()
        && may_be_read
        && (wish.read_only || may_be_written)
}

fn fits(sectors: &Sectors) -> bool {
    sectors.filesystem >= sectors.device
}

fn is_on_its_sectors(facts: &Facts) -> bool {
    let content = facts.top_content();
    !matches!(content, Some(Content::Filesystem(found)) if !fits(&found.sectors))
}

/// The mounted filesystem is either inside the recorded LUKS2 header, or plain, and then neither record nor wish says
/// encrypted.
fn is_of_wanted_kind(facts: &Facts, wish: &Wish) -> bool {
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    let record = &volume_of(facts).record;
    let is_plain = record.made.is_some() && record.luks.is_none();
    let is_encrypted =
        !is_plain && record.luks_uuid().is_some() && inside.is_some() || record.luks.is_some();
    inside.is_some() == is_encrypted
        && (!is_encrypted || has_its_header(facts))
        && wish.encrypted.is_none_or(|is| is == is_encrypted)
}

fn has_key(wish: &Wish) -> bool {
    wish.encrypted != Some(false) && wish.has_key
}

/// The volume's header, and the header with which it was opened, are the recorded one. Both encrypt with the driver's
/// cipher.
fn has_its_header(facts: &Facts) -> bool {
    let uuid = volume_of(facts).record.luks_uuid();
    let is_in_words = |header: &Header| header.layouts.iter().all(|one| *one == Ok(layout()));
    let is_so_in_kernel = facts
        .inside
        .as_ref()
        .is_none_or(|inside| inside.table == table());
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    let is_its = inside.is_none_or(|inside| inside.device.luks.as_deref() == uuid);
    matches!(&facts.content, Some(Content::Luks(header))
        if is_its && header.uuid.as_deref() == uuid && header.is_usable()
            && is_in_words(header) && is_so_in_kernel)
}

fn volume_of(facts: &Facts) -> &Volume {
    facts.volume().unwrap()
}

/// The filesystem has no part on another device.
fn is_one_filesystem(facts: &Facts) -> bool {
    let content = facts.top_content();
    !matches!(content, Some(Content::Filesystem(found)) if found.is_part)
}

/// Everything was looked at, and nothing is wrong with the volume.
pub fn is_known_and_well(facts: &Facts) -> bool {
    let Some(Lvm::Volume {
        volume,
        pool,
        is_lost,
        ..
    }) = &facts.lvm
    else {
        return false;
    };
    let is_held = match &facts.locks {
        None => volume.lock.is_none(),
        Some(locks) => *locks == LeaseState::Held,
    };
    let nobody_writes = facts.openers.as_ref().map_or(!volume.open, |openers| {
        openers.unseen == 0
            && openers.loops.is_empty()
            && openers.processes.iter().all(|process| !process.writes)
    });
    let is_nobodys = facts
        .uses
        .as_ref()
        .is_some_and(|uses| !uses.swap && uses.holders.is_empty() && uses.suspended.is_none());
    let is_read = !matches!(
        facts.content,
        None | Some(
            Content::Unreadable { .. }
                | Content::Failed(_)
                | Content::Several
                | Content::Other(_)
                | Content::Damaged(_)
        )
    );
    facts
        .device
        .as_ref()
        .is_some_and(|device| device.lv_uuid == volume.uuid)
        && facts.not_its_device.is_none()
        && !is_lost
        && !matches!(pool, Some(Pool::Unseen(_)))
        && is_held
        && nobody_writes
        && is_nobodys
        && is_read
}

/// docs/safety.md: mkfs runs only on a volume that is certainly blank, or holds what the driver's own mkfs left.
pub fn may_be_made(facts: &Facts, wish: &Wish) -> bool {
    let volume = volume_of(facts);
    let record = &volume.record;
    let is_alone = facts
        .uses
        .as_ref()
        .is_some_and(|uses| uses.mounts.is_empty())
        && facts.openers.as_ref().is_none_or(Openers::is_nobody);
    let has_room = volume.metadata_free.get() >= 1024;
    let is_writable = has_room
        && (volume.layout != "cache" || volume.health != "failed")
        && !facts.read_only
        && facts.read_only_disk.is_none()
        && volume.writable != Some(false);
    let pool_has_room = match &facts.lvm {
        Some(Lvm::Volume {
            pool: Some(Pool::Seen(pool)),
            ..
        }) => {
            pool.health.is_empty()
                && pool.data_percent < Some(95.0)
                && pool.metadata_percent < Some(95.0)
        }
        _ => true,
    };
    let is_permitted = |doubts: &[Doubt]| {
        let given = record.permission.as_ref();
        given.is_some_and(|(what, at)| {
            *what == Doubt::names(doubts) && *at <= NOW + 300 && NOW.saturating_sub(*at) < 86_400
        })
    };
    let is_blank = match facts.content.as_ref().unwrap() {
        Content::Blank { .. } => {
            let doubts = doubts_left(facts);
            doubts.is_empty() || (is_permitted(&doubts) && !record.new)
        }
        Content::Filesystem(found) => {
            found.half
                && record.made.is_none()
                && record.making.as_deref() == Some(found.filesystem.fs.as_str())
        }
        // Either nobody can open the header, or it is open and nobody's data is inside.
        Content::Luks(header) => {
            let is_of_somebody = |one: &Doubt| match one {
                Doubt::Mark(_) | Doubt::Recorded(_) => true,
                Doubt::Backup(backup) => !backup.is_unused,
                Doubt::Data(_) => false,
            };
            let begun = record.making_in_luks();
            let is_its = begun.is_some_and(|(_, uuid)| header.uuid.as_deref() == Some(uuid));
            let is_blank = match facts.inside.as_ref().map(|inside| &inside.content) {
                None => !header.has_keys(),
                Some(Content::Blank { doubts, .. }) => {
                    has_its_header(facts) && !doubts.iter().any(is_of_somebody)
                }
                Some(Content::Filesystem(found)) => has_its_header(facts) && found.half,
                Some(_) => false,
            };
            record.made.is_none() && record.luks.is_none() && is_its && is_blank
        }
        _ => false,
    };
    let is_created = facts.lvcreate_ended || !record.new;
    is_known_and_well(facts)
        && !wish.read_only
        && wish.purpose == Purpose::Filesystem
        && is_created
        && is_alone
        && is_writable
        && pool_has_room
        && is_blank
}

/// For a volume that is formatted: without a permission, it is formatted exactly if no doubt is left.
pub fn without_one_permission(facts: &Facts, wish: &Wish) {
    let mut less = facts.clone();
    let needs = !doubts_left(facts).is_empty();
    let record = &mut volume(&mut less).record;
    let tags = record
        .tags
        .iter()
        .filter(|tag| !tag.starts_with("flexvolume.mayformat"));
    *record = Record::parse(tags.map(String::as_str));
    let is_made = matches!(
        decide(&less, wish),
        Decision::Make {
            how: Making::Plain { .. },
            ..
        }
    );
    assert_eq!(is_made, !needs, "{facts:?}");
}

/// With one doubt more, the volume is not formatted.
pub fn with_one_doubt_more(facts: &Facts, wish: &Wish) {
    let mut more = facts.clone();
    let Some(Content::Blank { doubts, zero }) = &mut more.content else {
        return;
    };
    *zero = false;
    // If this call has just created the volume, a mark may be a removed volume's. Data where lvcreate has wiped is a
    // doubt even then.
    doubts.push(if facts.untouched {
        Doubt::Data(0)
    } else {
        Doubt::Mark("one more".into())
    });
    let decision = decide(&more, wish);
    assert!(
        matches!(decision, Decision::Refuse(_)),
        "{decision:?} {more:?}"
    );
}

/// The doubts that remain: without those that a half-made ext may leave, and those of a removed volume if this call has
/// just created this one.
fn doubts_left(facts: &Facts) -> Vec<Doubt> {
    let volume = volume_of(facts);
    let of_mke2fs = volume.record.making.as_deref() == Some("ext4");
    let is_small = (9 << 20..512 << 20).contains(&volume.size.get());
    let is_fresh = facts.untouched && volume.record.new;
    let is_left = |doubt: &Doubt| match doubt {
        Doubt::Backup(backup) => (of_mke2fs && backup.is_unused) || is_fresh,
        Doubt::Data(at) => (of_mke2fs && is_small && *at >= 2048) || (is_fresh && *at >= 4096),
        Doubt::Mark(_) => is_fresh,
        Doubt::Recorded(..) => false,
    };
    let mut all = doubts(&volume.record, facts.content.as_ref().unwrap());
    all.retain(|doubt| !is_left(doubt));
    all
}
