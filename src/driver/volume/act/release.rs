//! Deactivates a volume after its last use, if its group is shared with other nodes or the config says so.

use std::time::Duration;

use anyhow::{Error, Result, bail};

use super::close::close_unused;
use crate::config::Config;
use crate::host::{Host, Lock};
use crate::lvm::{self, Found, GroupLeases, LeaseState, Volume};
use crate::names::{LvId, ObjectName};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::look::Look;
use crate::volume::subject::Subject;

/// `status` and the metrics hold the lock of one volume for less than this time. If the lock is still held after it, a
/// call holds the lock.
pub const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// Deactivates the volumes that `volume` names, as [`release`] does. `volume` is kubelet's name of a volume, or a
/// device that a person names.
pub fn release_named(host: &Host, config: &Config, volume: &str, deactivate: bool) -> Result<()> {
    let mut ids = Vec::from_iter(LvId::from_device(volume));
    if ids.is_empty()
        && let Ok(name) = ObjectName::of_volume(volume)
    {
        match lvm::tagged(host, &lvm::volume_tag(&name)) {
            // Other nodes may wait for the volume.
            Err(error) if lvm::is_any_shared(host.kernel) => return Err(error),
            Err(error) => log_left_active(host, &error),
            Ok(found) => ids.extend(found.into_iter().map(|volume| volume.id)),
        }
        for id in &ids {
            host.log.about("volume", &id.to_string());
        }
    }
    for id in &ids {
        release(Subject { host, config, id }, deactivate, config.limits.lock)?;
    }
    Ok(())
}

/// Deactivates a volume of a shared group that could not be mounted here, since its pod may go to another node.
/// If another call works on the volume, the volume stays active.
pub fn give_up(subject: Subject) {
    let kernel = subject.host.kernel;
    if let Err(error) = kernel.undo(|| release(subject, false, LONGEST_LOOK)) {
        log_left_active(subject.host, &error);
    }
}

/// Deactivates a volume that nothing uses, if its group is shared, or if the config asks for that (`deactivate`). While
/// a volume of a shared group is active here, no other node can use it. In a shared group, waits up to `patience` for a
/// call that works on the volume. Tries again if the device is open, since udev opens it briefly after an unmount.
pub fn release(subject: Subject, deactivate: bool, patience: Duration) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let kernel = host.kernel;
    let may_be_shared = lvm::may_be_shared(host, id.vg());
    if !(deactivate || may_be_shared) || Look::idle(subject)?.is_none() {
        return Ok(());
    }
    let found = match may_be_shared.then(|| lvm::find(host, id)).transpose() {
        // The volume is unmounted, and its pod must be able to end while LVM is silent.
        Err(error) if !lvm::is_shared(kernel, id.vg()) => {
            log_left_active(host, &error);
            return Ok(());
        }
        found => found?,
    };
    let row = found.and_then(Found::volume);
    let volume = row.filter(|volume| volume.lock.is_some());
    let device = Device::find(kernel, id)?;
    let target = match (&volume, &device) {
        // Locks it even without a device: the lvchange of a killed call may be about to activate it.
        (Some(volume), _) => volume.target(),
        (None, Some(device)) if deactivate => device.target(),
        _ => return Ok(()),
    };
    let patience = if volume.is_some() {
        patience
    } else {
        patience.min(LONGEST_LOOK)
    };
    let held = match lock::hold(kernel, target, patience) {
        // The call that has the lock brings the volume up for the next pod, or deactivates it itself. The end of this
        // pod need not wait for that call.
        Err(error) if volume.is_none() && error.is::<lock::Busy>() => {
            log_left_active(host, &error);
            return Ok(());
        }
        held => held?,
    };
    if let Some(volume) = &volume
        && !is_to_give(subject, volume, &held)?
    {
        return Ok(());
    }
    deactivate_idle(subject, volume.is_some(), target, &held)
}

fn log_left_active(host: &Host, why: &Error) {
    host.log.about("left-active", &format!("{why:#}"));
}

/// Whether this node has to give a volume of a shared group back to the other nodes: it has the volume's device, or
/// only lvmlockd's lock, which a killed LVM command may leave. In the second case, activates a thin volume first. Fails
/// if LVM could not give the lock back.
fn is_to_give(subject: Subject, volume: &Volume, held: &Lock) -> Result<bool> {
    let Subject { host, config, id } = subject;
    let Some(lock) = &volume.lock else {
        return Ok(true);
    };
    let locks = GroupLeases::ask(host, id.vg(), config.limits.query).of(Some(lock));
    if Device::find(host.kernel, id)?.is_none() {
        if lock.of.is_none() || locks != LeaseState::Held {
            return Ok(false);
        }
        // LVM deactivates a pool only together with an active thin volume.
        if volume.pool.is_some() {
            lvm::activate(host, volume.target(), held)?;
        }
    } else if locks != LeaseState::Lost
        // LVM would deactivate the volume, report success, and keep the cluster's lock. With a lost lease there is no
        // lock to keep.
        && let Some(obstacle) = locks.obstacle(id.vg())
    {
        bail!("{id} is not in use here any more, but cannot be given to other nodes: {obstacle}");
    }
    Ok(true)
}

/// Deactivates the volume, if nothing uses it. `is_shared`: other nodes wait for the volume, so if it stays active, the
/// call fails.
fn deactivate_idle(
    subject: Subject,
    is_shared: bool,
    target: lvm::Target,
    held: &Lock,
) -> Result<()> {
    const APART: Duration = Duration::from_millis(500);
    let host = subject.host;
    // LVM itself retries for 5 s (`activation/retry_deactivation`). The driver tries longer only if another node waits
    // for the volume.
    let mut tries: u32 = if is_shared { 5 } else { 1 };
    while Look::idle(subject)?.is_some() {
        let closed = close_unused(subject, held);
        tries = tries.saturating_sub(1);
        match closed.and_then(|()| lvm::deactivate(host, target, held)) {
            Err(_) if tries > 0 && !host.kernel.pause(APART) => {}
            // The volume is unmounted here, and no other node waits for it. The pod must be able to end even if a
            // process still has the volume mounted in its own mount namespace.
            Err(error) if !is_shared => {
                log_left_active(host, &error);
                break;
            }
            done => return done,
        }
    }
    Ok(())
}
