//! What the facts say, written once more for the promises.

use super::super::sample::{WHOLE, table};
use crate::crypt::{Header, Layout};
use crate::lvm::{LeaseState, Volume};
use crate::mount::Row;
use crate::volume::decide::facts::{Content, Facts, Lvm, Pool};
use crate::volume::decide::uses::Mounted;
use crate::volume::decide::wish::Wish;
use crate::volume::mounted_filesystem::Failure;

/// The mounted filesystem is the one that the pod asks for, even if it was mounted for another pod.
pub fn is_as_wanted(row: &Row, facts: &Facts, wish: &Wish) -> bool {
    let is_open = facts.uses.iter().any(|uses| uses.inside.is_some());
    wish.not_allowed.is_none()
        && facts.not_its_device.is_none()
        && wish.fs.is_none_or(|fs| fs.as_str() == row.fs_type)
        && wish.encrypted.is_none_or(|is| is == is_open)
}

/// Nothing forbids that one more pod gets a filesystem that others have mounted.
pub fn is_for_one_more(row: &Row, facts: &Facts, wish: &Wish) -> bool {
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

/// Of the disks that are known, some have room, are as large as LVM says, and have no larger sectors than the volume.
pub fn has_disks_to_grow_on(facts: &Facts) -> bool {
    let Some(ground) = &facts.ground else {
        return false;
    };
    let volume = volume_of(facts);
    let is_refreshed = ground
        .device
        .is_some_and(|device| device < volume.device_size());
    let mut disks = ground.disks.iter();
    is_refreshed
        || volume.pool.is_some()
        || ground.disks.is_empty()
        || disks.any(|one| {
            let has_room = one.disk.usable().get() > 0;
            has_room && one.sector.is_some_and(|sector| sector <= ground.sector)
        })
}

/// The mounted filesystem is either inside the recorded LUKS2 header, or plain, and then neither record nor wish says
/// encrypted.
pub fn is_of_wanted_kind(facts: &Facts, wish: &Wish) -> bool {
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    let record = &volume_of(facts).record;
    let is_plain = record.made.is_some() && record.luks.is_none();
    let is_encrypted =
        !is_plain && record.luks_uuid().is_some() && inside.is_some() || record.luks.is_some();
    inside.is_some() == is_encrypted
        && (!is_encrypted || has_its_header(facts))
        && wish.encrypted.is_none_or(|is| is == is_encrypted)
}

pub fn has_key(wish: &Wish) -> bool {
    wish.encrypted != Some(false) && wish.has_key
}

/// The volume's header, and the header with which it was opened, are the recorded one. Both encrypt with the driver's
/// cipher.
pub fn has_its_header(facts: &Facts) -> bool {
    let uuid = volume_of(facts).record.luks_uuid();
    let is_older_without_keys =
        |copy: &Result<Layout, String>| copy.as_ref().is_ok_and(|older| older.keyslots.is_empty());
    let is_in_words = |header: &Header| {
        let mut copies = header.layouts.iter();
        let is_its = |copy: &Result<Layout, String>| copy.as_ref() == Ok(&*WHOLE);
        copies.next().is_some_and(is_its)
            && copies.all(|copy| is_its(copy) || is_older_without_keys(copy))
    };
    let is_so_in_kernel = facts
        .decrypted
        .as_ref()
        .is_none_or(|inside| inside.table == table());
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    let is_its = inside.is_none_or(|inside| inside.device.luks.as_deref() == uuid);
    matches!(&facts.content, Some(Content::Luks(header))
        if is_its && header.uuid.as_deref() == uuid && header.is_usable()
            && is_in_words(header) && is_so_in_kernel)
}

pub fn volume_of(facts: &Facts) -> &Volume {
    facts.volume().unwrap()
}

/// The filesystem has no part on another device.
pub fn is_one_filesystem(facts: &Facts) -> bool {
    let content = facts.top_content();
    !matches!(content, Some(Content::Filesystem(found)) if found.is_part)
}

/// Everything was looked at, and nothing is wrong with the volume.
pub fn is_known_and_well(facts: &Facts) -> bool {
    let Some(Lvm::Volume { volume, pool, .. }) = &facts.lvm else {
        return false;
    };
    // Of all that the sights have LVM say.
    let is_usable = match &*volume.health {
        "" | "refresh needed" => !volume.attr.contains(['I', 'Z']),
        health => health == "partial" && volume.layout == "raid,raid1",
    };
    let is_held = match &facts.locks {
        None => volume.lock.is_none(),
        Some(locks) => *locks == LeaseState::Held,
    };
    let nobody_writes = facts.openers.as_ref().map_or(!volume.open, |openers| {
        openers.unseen == 0
            && openers.loops.iter().all(|one| !one.writes)
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
        && is_usable
        && !matches!(pool, Some(Pool::Unseen(_)))
        && is_held
        && nobody_writes
        && is_nobodys
        && is_read
}
