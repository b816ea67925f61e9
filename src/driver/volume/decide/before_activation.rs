//! Decides by LVM's answer from before the call activated the volume. If that answer is enough, LVM is asked only once.
//!
//! 1. The call finds no device, so it asks LVM. LVM has the inactive volume: `decide` says `Activate`.
//! 2. `act/conduct.rs` activates the volume, and hands LVM's answer to the next look (`Asker::Call`).
//! 3. That look takes the answer for its own (`see_lvm` in `look/lvm.rs`), and sets `lvm_before_activation`.
//! 4. [`by_lvm_before_activation`] keeps a mount of the recorded filesystem. It replaces all else by `Look(Level::Lvm)`,
//!    by which the look asks LVM again.

use super::decision::{Decision, Level, When};
use super::facts::Facts;
use super::states::{May, State};
use super::wish::{Purpose, Wish};
use crate::lvm::Volume;

/// Keeps a decision, made by LVM's answer from before the activation, to mount the recorded filesystem or to look at
/// another level. Replaces any other decision: LVM is asked again.
pub fn by_lvm_before_activation(decision: Decision, facts: &Facts, wish: &Wish) -> Decision {
    let row_is_enough = || {
        let volume = facts.volume();
        volume.is_some_and(|volume| row_is_enough_to_mount(volume, wish))
    };
    match decision {
        Decision::Look(level) => Decision::Look(level),
        Decision::Mount(mount)
            if mount.record == When::Not
                && mount.alive.is_none()
                && !facts.read_only
                && row_is_enough() =>
        {
            Decision::Mount(mount)
        }
        Decision::Mount(_)
        | Decision::Ready
        | Decision::Extend(_)
        | Decision::Create(_)
        | Decision::Activate
        | Decision::Resume
        | Decision::Restrict { .. }
        | Decision::Bind(_)
        | Decision::Open { .. }
        | Decision::Make { .. }
        | Decision::Refuse(_) => Decision::Look(Level::Lvm),
    }
}

/// Whether LVM's row of the inactive volume is enough to mount it: its tags record a filesystem that is not encrypted,
/// and the volume depends on no other volume or node.
pub fn row_is_enough_to_mount(volume: &Volume, wish: &Wish) -> bool {
    let record = &volume.record;
    wish.purpose == Purpose::Filesystem
        && record.made.is_some()
        && record.content_tags().count() == 1
        && record.luks.is_none()
        && ["linear", "striped"].contains(&volume.layout.as_str())
        && volume.role == "public"
        && volume.pool.is_none()
        && State::of(volume).may == May::Make
        && volume.lock.is_none()
}
