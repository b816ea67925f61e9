//! Looks at a volume under its locks: for a call in one function, for a person's command in another.
//!
//! | the volume | locks taken | then |
//! |---|---|---|
//! | active; by the kernel's tables, nothing is to be done or the call is refused | none, but a person's look takes the volume's | the decision stands |
//! | active | the volume's | the look begins again, unless a command brings its lists |
//! | active, and to grow | the group's, too, until LVM has extended the volume | the look begins again |
//! | active, and these locks are held | no more | the look goes on to its decision |
//! | not active | none | LVM is asked whether to activate, create or refuse it; the caller takes the lock, and keeps it after the activation |
//! | new: tag `flexvolume.new` | the group's, given up at once: then a killed call's lvcreate has ended | the look begins again |

use std::time::Duration;

use anyhow::Result;

use super::{Asker, Known, Look};
use crate::host::Lock;
use crate::lvm::Volume;
use crate::volume::decide::{Decision, Level, Purpose, Wish};
use crate::volume::job::Job;
use crate::volume::lock::HeldLocks;
use crate::volume::subject::Subject;

/// Looks at the volume of a call until the decision needs no more facts. Takes the locks that are needed, and looks
/// again after the wait. So if the call is to do something with an active volume, the look that decides this has begun
/// under the volume's lock. `before_activation`: LVM's row from just before this call activated the volume.
///
/// Takes no lock if nothing is to be done, or if the volume is not active. If the volume is to be created, the decision
/// is [`Decision::Look`], and the caller takes the group's lock.
pub fn look_of_call<'a>(
    job: &'a Job<'a>,
    before_activation: Option<&'a Volume>,
    locks: &mut HeldLocks,
) -> Result<(Look<'a>, Decision)> {
    let Subject { host, config, id } = job.subject;
    let (kernel, patience) = (host.kernel, config.limits.lock);
    let is_to_grow = matches!(job.wish.purpose, Purpose::Size(_));
    let asker = Asker::Call {
        job,
        before_activation,
    };
    loop {
        let mut seen = Look::begin(job.subject, asker);
        // Without a device, the volume is not active.
        if let Some(device) = seen.facts.device.clone()
            && !locks.are_enough(&device, is_to_grow)
        {
            let by_tables = seen.settle_up_to(Level::Uses, &job.wish)?;
            if by_tables.needs_no_lock() {
                return Ok((seen, by_tables));
            }
            locks.hold(kernel, device.target(), is_to_grow, patience)?;
            continue;
        }
        seen.facts.lvcreate_ended = locks.show_end_of_lvcreate();
        // `Room`, the last level, needs the group's lock. Without it, the look ends one level earlier.
        let most = match locks.group {
            Some(_) => Level::Room,
            None => Level::Decrypted,
        };
        match seen.settle_up_to(most, &job.wish)? {
            Decision::Look(Level::Creation) => {
                locks.wait_for_lvcreate(kernel, id.vg(), patience)?;
            }
            decision => return Ok((seen, decision)),
        }
    }
}

/// Looks at a volume as its next mount would, for a person's command. Takes the volume's lock if the volume is active,
/// and returns it. Waits up to `patience` for each lock.
///
/// `known`: the lists of the command, made before this look. `is_to_be_read`: whether the device is read if the next
/// mount would read it.
pub fn look_of_person<'a>(
    subject: Subject<'a>,
    mut known: Option<Known<'a>>,
    is_to_be_read: bool,
    wish: &Wish,
    patience: Duration,
) -> Result<(Look<'a>, Decision, Option<Lock>)> {
    let kernel = subject.host.kernel;
    let most = if is_to_be_read {
        Level::Room
    } else {
        Level::Lvm
    };
    let mut locks = HeldLocks::default();
    loop {
        let mut seen = Look::begin(subject, Asker::Person { known });
        if let Some(device) = &seen.facts.device
            && !locks.are_enough(device, false)
        {
            locks.hold(kernel, device.target(), false, patience)?;
            if known.is_none() {
                continue;
            }
        }
        // The lists may be old by now.
        if known.is_some() && is_to_be_read && would_read_another(&mut seen, wish)? {
            locks = HeldLocks::default();
            known = None;
            continue;
        }
        seen.facts.lvcreate_ended = locks.show_end_of_lvcreate();
        match seen.settle_up_to(most, wish)? {
            Decision::Look(Level::Creation) => {
                locks.wait_for_lvcreate(kernel, subject.id.vg(), patience)?;
                known = None;
            }
            decision => return Ok((seen, decision, locks.volume)),
        }
    }
}

/// Whether the next levels would read the device, and it is not the volume's any more.
fn would_read_another(seen: &mut Look, wish: &Wish) -> Result<bool> {
    let decision = seen.settle_up_to(Level::Lvm, wish)?;
    Ok(matches!(decision, Decision::Look(_)) && !seen.is_still_its_device())
}
