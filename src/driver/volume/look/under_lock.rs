//! Looks at a volume under its locks, for calls and for commands.
//!
//! | the volume | locks taken | then |
//! |---|---|---|
//! | active; by the kernel's tables, nothing is to be done or the call is refused | none, but a person's look takes the volume's | the decision stands |
//! | active | the volume's | the look begins again, unless a command brings its lists |
//! | active, and to grow | the group's, too, until LVM has extended the volume | LVM is asked |
//! | not active | none | LVM is asked whether to activate, create or refuse it |
//! | new: tag `flexvolume.new` | the group's, given up at once: then a killed call's lvcreate has ended | the look begins again |

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Asker, Look};
use crate::host::{Kernel, Lock};
use crate::lvm::Target;
use crate::names::LvUuid;
use crate::volume::decide::{Decision, Level, Purpose, Wish};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::subject::Subject;

/// The locks that a call or a command holds.
#[derive(Default)]
pub struct HeldLocks {
    /// `None`: the volume is not active, or needs no lock.
    pub volume: Option<Lock>,
    /// The volume to which the lock in [`Self::volume`] belongs.
    of: Option<LvUuid>,
    /// The group's lock, held by a call that may create or extend the volume.
    pub group: Option<Lock>,
    /// Whether it is certain that the lvcreate of a killed call has ended. Until it ends, it may still wipe the volume.
    lvcreate_ended: bool,
}

impl HeldLocks {
    /// The volume's lock, for a tool that changes the volume to inherit. An error if it is not held.
    pub fn of_volume(&self) -> Result<&Lock> {
        let lock = self.volume.as_ref();
        lock.context("the volume's lock is not held")
    }

    /// Takes the volume's lock, unless it is held. First gives up all other locks: nobody may wait for a lock while
    /// holding the group's.
    pub fn hold_volume(
        &mut self,
        kernel: &Kernel,
        target: Target,
        patience: Duration,
    ) -> Result<()> {
        let (_, uuid) = target;
        if self.of.as_ref() != Some(uuid) {
            *self = Self::default();
            self.volume = Some(lock::hold(kernel, target, patience)?);
            self.of = Some(uuid.clone());
        }
        Ok(())
    }

    fn lacks_lock_of(&self, device: &Device) -> bool {
        self.of.as_ref() != Some(&device.lv_uuid)
    }
}

/// Looks at a volume until the decision needs no more facts. Waits up to `patience` for each lock that is not held yet,
/// then looks again. So if a call is to do something with an active volume, the look that decides this has begun under
/// the volume's lock. `holding` has the locks. Takes no lock if nothing is to be done. Takes none either if the volume
/// is to be created: then the decision is [`Decision::Look`], and the caller takes the group's lock.
pub fn look_under_lock<'a>(
    subject: Subject<'a>,
    mut asker: Asker<'a>,
    wish: &Wish,
    patience: Duration,
    holding: &mut HeldLocks,
) -> Result<(Look<'a>, Decision)> {
    let kernel = subject.host.kernel;
    loop {
        // Finds the volume's device in the kernel's tables. `None`: the volume is not active.
        let mut seen = Look::begin(subject, asker);
        let device = seen.facts.device.clone();
        if let Some(device) = device.filter(|device| holding.lacks_lock_of(device)) {
            if let Some(decision) = decided_without_lock(&mut seen, wish)? {
                return Ok((seen, decision));
            }
            holding.hold_volume(kernel, device.target(), patience)?;
            // A call looks at everything again after the wait.
            if asker.known().is_none() {
                continue;
            }
        }
        // A person's lists may be old by now. If the device is to be read and is not the volume's any more, the lists
        // are dropped.
        let has_lists = asker.known().is_some() && !asker.leaves_unread();
        if has_lists && is_to_be_read(&mut seen, wish)? && !seen.is_still_its_device() {
            *holding = HeldLocks::default();
            asker.drop_lists();
            continue;
        }
        match with_locks(&mut seen, wish, patience, holding)? {
            Decision::Look(Level::Creation) => {
                drop(lock::hold_group(kernel, subject.id.vg(), patience)?);
                holding.lvcreate_ended = true;
                asker.drop_lists();
            }
            decision => return Ok((seen, decision)),
        }
    }
}

/// Decides by the kernel's tables alone. `None`: the call needs a lock or more facts, or a person asks.
fn decided_without_lock(seen: &mut Look, wish: &Wish) -> Result<Option<Decision>> {
    if seen.asker.is_person() {
        return Ok(None);
    }
    let decision = seen.settle_up_to(Level::Uses, wish)?;
    Ok(Some(decision).filter(Decision::needs_no_lock))
}

/// Whether the decision needs more than the kernel's tables and LVM's answer.
fn is_to_be_read(seen: &mut Look, wish: &Wish) -> Result<bool> {
    let decision = seen.settle_up_to(Level::Lvm, wish)?;
    Ok(matches!(decision, Decision::Look(_)))
}

/// Decides with the locks that are held. If an active volume is to grow, first takes the group's lock.
fn with_locks(
    seen: &mut Look,
    wish: &Wish,
    patience: Duration,
    holding: &mut HeldLocks,
) -> Result<Decision> {
    let (kernel, vg) = (seen.subject.host.kernel, seen.subject.id.vg());
    let is_to_grow = matches!(wish.purpose, Purpose::Size(_)) && seen.facts.device.is_some();
    // With the group's lock, nobody else takes the free space between LVM's answer and lvextend.
    if is_to_grow && holding.group.is_none() {
        holding.group = Some(lock::hold_group(kernel, vg, patience)?);
    }
    seen.facts.lvcreate_ended = holding.lvcreate_ended || holding.group.is_some();
    let most = if seen.asker.leaves_unread() {
        Level::Lvm
    } else if seen.asker.is_person() || holding.group.is_some() {
        Level::Room
    } else {
        // A call looks at the free space only under the group's lock.
        Level::Decrypted
    };
    seen.settle_up_to(most, wish)
}
