//! When a filesystem may be made: the promise about formatting, written once more.

use super::super::sample::{NOW, volume};
use super::contents::{begun, doubts};
use super::known::*;
use crate::lvm::Record;
use crate::volume::decide::decision::{Decision, Making};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Content, Facts, Lvm, Pool};
use crate::volume::decide::rules::decide;
use crate::volume::decide::uses::Openers;
use crate::volume::decide::wish::{Purpose, Wish};

/// docs/safety.md: mkfs runs only on a volume that is certainly blank, or holds what the driver's own mkfs left.
pub fn may_be_made(facts: &Facts, wish: &Wish) -> bool {
    let volume = volume_of(facts);
    let record = &volume.record;
    let is_alone = facts
        .uses
        .as_ref()
        .is_some_and(|uses| uses.mounts.is_empty())
        && facts.openers.as_ref().is_none_or(Openers::is_nobody);
    let has_room = volume.group.metadata_free.get() >= 1024;
    let is_writable = has_room
        && is_exactly_well(facts)
        && !facts.read_only
        && facts.read_only_disk.is_none()
        && volume.writable != Some(false);
    let pool_has_room = match &facts.lvm {
        Some(Lvm::Volume {
            pool: Some(Pool::Seen(pool)),
            ..
        }) => pool.data_percent < Some(95.0) && pool.metadata_percent < Some(95.0),
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
            let is_plain = record.making_in_luks().is_none();
            let is_its = begun(record) == Some(&*found.filesystem.uuid);
            found.half && record.made.is_none() && is_plain && is_its
        }
        // Either nobody can open the header, or it is open and nobody's data is inside.
        Content::Luks(header) => {
            let is_of_somebody = |one: &Doubt| match one {
                Doubt::Mark(_) | Doubt::Recorded(_) | Doubt::Copy { .. } | Doubt::Blocks(_) => true,
                Doubt::Backup(backup) => begun(record) != Some(&*backup.uuid),
                Doubt::Data(_) => false,
            };
            let making = record.making_in_luks();
            let is_its = making.is_some_and(|(_, uuid)| header.uuid.as_deref() == Some(uuid));
            let is_blank = match facts.decrypted.as_ref().map(|inside| &inside.content) {
                None => !header.has_keys(),
                Some(Content::Blank { doubts, .. }) => {
                    has_its_header(facts) && !doubts.iter().any(is_of_somebody)
                }
                Some(Content::Filesystem(found)) => {
                    let is_its = begun(record) == Some(&*found.filesystem.uuid);
                    has_its_header(facts) && found.half && is_its
                }
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

/// LVM has no fault of the volume, and neither of its thin pool, and no disk is away or was away at the activation.
pub fn is_exactly_well(facts: &Facts) -> bool {
    let Some(Lvm::Volume { volume, pool, .. }) = &facts.lvm else {
        return false;
    };
    let is_pool_well = match pool {
        Some(Pool::Seen(pool)) => pool.health.is_empty(),
        Some(Pool::Unseen(_)) => false,
        None => true,
    };
    let is_merged_later = volume.attr.starts_with('O') && !volume.merge_failed.is_empty();
    volume.health.is_empty()
        && !volume.attr.contains(['I', 'Z'])
        && !is_merged_later
        && volume.group.missing == 0
        && is_pool_well
        && facts.stand_in.is_none()
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
    doubts.push(Doubt::Mark("one more".into()));
    let decision = decide(&more, wish);
    assert!(
        matches!(decision, Decision::Refuse(_)),
        "{decision:?} {more:?}"
    );
}

/// The doubts that remain: without those that a killed mkfs may leave.
pub fn doubts_left(facts: &Facts) -> Vec<Doubt> {
    let record = &volume_of(facts).record;
    let uuid = begun(record);
    let is_left = |doubt: &Doubt| match doubt {
        _ if record.new => false,
        Doubt::Backup(backup) => uuid == Some(&*backup.uuid),
        Doubt::Data(data) => uuid.is_some() && data.offset >= 2048,
        Doubt::Mark(_) | Doubt::Recorded(..) | Doubt::Copy { .. } | Doubt::Blocks(_) => false,
    };
    let mut all = doubts(record, facts);
    all.retain(|doubt| !is_left(doubt));
    all
}
