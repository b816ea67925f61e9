//! Decides whether a volume is so well that it may be read, that it may be written, or that a filesystem may be made on
//! it, or recorded for the first time. Pure.
//!
//! What is written while a disk is away, that disk lacks. If it comes back alone, LVM takes its older metadata, which
//! has no record: the next call would take the volume for blank, and make the filesystem a second time.

use super::facts::{Facts, Lvm, Pool};
use super::reason::{Flaw, Reason};
use super::states::{Help, May, State};
use crate::lvm::Volume;

/// Fails if LVM says something of the volume that keeps it from being read, or from being written.
pub fn require_well(volume: &Volume, is_to_be_read: bool) -> Result<(), Reason> {
    let needed = if is_to_be_read { May::Read } else { May::Write };
    let state = State::of(volume);
    if state.may >= needed {
        return Ok(());
    }
    Err(match state.help {
        Help::Disk => Reason::Partial,
        Help::Remove => Reason::SnapshotFull,
        Help::Merge => Reason::MergeWaits,
        Help::Look
        | Help::Refresh
        | Help::Repair
        | Help::Resync
        | Help::Again
        | Help::AgainPool
        | Help::Room => Reason::Unwell(state),
    })
}

/// The refusal of a volume that cannot be read. LVM's word may say why, as if somebody has replaced the table of the
/// volume's device.
pub fn unreadable(at: u64, error: &str, volume: &Volume) -> Reason {
    let state = State::of(volume);
    let is_why = match state.help {
        Help::Disk | Help::Refresh | Help::Repair | Help::Again | Help::AgainPool => true,
        // None of these keeps anybody from reading.
        Help::Look | Help::Remove | Help::Merge | Help::Resync | Help::Room => false,
    };
    Reason::Unreadable {
        at,
        error: error.to_owned(),
        says: Some(state).filter(|state| is_why && state.may < May::Make),
    }
}

/// Fails if LVM says something of a thin pool that keeps its volumes from being written.
pub fn require_well_pool(pool: &Volume) -> Result<(), Reason> {
    let state = State::of(pool);
    if state.may >= May::Write {
        return Ok(());
    }
    Err(Reason::Unwell(state))
}

/// What keeps this volume from being exactly well. `None`: LVM calls it well, its group has all disks, and so has its
/// thin pool.
pub fn flaw(facts: &Facts) -> Option<Flaw> {
    let Some(Lvm::Volume { volume, pool, .. }) = &facts.lvm else {
        return None;
    };
    if volume.group.missing > 0 {
        return Some(Flaw::Missing(volume.group.missing));
    }
    let pool = match pool {
        Some(Pool::Seen(pool)) => Some(pool),
        Some(Pool::Unseen(_)) | None => None,
    };
    let both = [Some(volume), pool].into_iter().flatten();
    let mut states = both.map(|one| State::of(one));
    states.find(|state| state.may < May::Make).map(Flaw::Unwell)
}

/// Fails unless the volume is exactly well. While a disk of a RAID is away, a device stands in for its image, so the
/// missing disk is told first.
pub fn require_exactly_well(facts: &Facts) -> Result<(), Reason> {
    if let Some(flaw) = flaw(facts) {
        return Err(Reason::Degraded(flaw));
    }
    match &facts.stand_in {
        Some(stand_in) => Err(partly_active(facts, stand_in)),
        None => Ok(()),
    }
}

/// Fails if one of LVM's devices stands in for a disk that was away when the volume was activated: reads get zeroes or
/// errors, and writes are lost, also when the disk is back. A RAID with copies does without that disk.
pub fn require_no_stand_in(facts: &Facts, volume: &Volume) -> Result<(), Reason> {
    match &facts.stand_in {
        Some(stand_in) if !volume.keeps_copies() => Err(partly_active(facts, stand_in)),
        Some(_) | None => Ok(()),
    }
}

fn partly_active(facts: &Facts, stand_in: &str) -> Reason {
    Reason::PartlyActive {
        stand_in: stand_in.to_owned(),
        pool: facts.volume().and_then(Volume::pool_id),
    }
}
