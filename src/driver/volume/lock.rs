//! The locks of volumes and of groups, and which of them a call holds. Calls for one volume take its lock, so that they run one after the other. Calls
//! that take space from a group take the group's lock.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::failed_step::FailedStep;
use crate::host::holders::{self, Process, name_them};
use crate::host::trust::require_roots;
use crate::host::{Kernel, Lock};
use crate::lvm::Target;
use crate::names::{LvUuid, Shown, VgName};
use crate::volume::device::Device;

/// The directory of the locks. A reboot empties /run, and no lock should outlast a reboot.
pub const LOCK_DIR: &str = "/run/flexvolume-lvm";

/// The locks that a call or a command holds.
#[derive(Default)]
pub struct HeldLocks {
    /// `None`: the volume is not active, or needs no lock.
    pub volume: Option<Lock>,
    /// The volume to which the lock in [`Self::volume`] belongs.
    of: Option<LvUuid>,
    /// The group's lock, held by a call that may create or extend the volume.
    pub group: Option<Lock>,
    /// See [`Self::wait_for_lvcreate`].
    lvcreate_ended: bool,
}

impl HeldLocks {
    /// The volume's lock, for a tool that changes the volume to inherit. An error if it is not held.
    pub fn of_volume(&self) -> Result<&Lock> {
        let lock = self.volume.as_ref();
        lock.context("the volume's lock is not held")
    }

    /// Whether a call may work on the volume of this active device: it holds the volume's lock and, if it is to grow
    /// the volume, the group's.
    pub fn are_enough(&self, device: &Device, is_to_grow: bool) -> bool {
        self.of.as_ref() == Some(&device.lv_uuid) && (!is_to_grow || self.group.is_some())
    }

    /// Takes the volume's lock and, if the volume is to grow, the group's, unless they are held. With the group's lock,
    /// nobody else takes the free space between LVM's answer and lvextend. Waits up to `limit` for each.
    pub fn hold(
        &mut self,
        kernel: &Kernel,
        target: Target,
        is_to_grow: bool,
        limit: Duration,
    ) -> Result<()> {
        let (id, uuid) = target;
        if self.of.as_ref() != Some(uuid) {
            // First gives up all other locks: nobody may wait for a lock while holding the group's.
            *self = Self::default();
            self.volume = Some(hold(kernel, target, limit)?);
            self.of = Some(uuid.clone());
        }
        if is_to_grow && self.group.is_none() {
            self.group = Some(hold_group(kernel, id.vg(), limit)?);
        }
        Ok(())
    }

    /// Waits for the group's lock, and gives it up at once: the lvcreate of a killed call, which may still wipe the
    /// volume, holds that lock until it ends.
    pub fn wait_for_lvcreate(
        &mut self,
        kernel: &Kernel,
        vg: &VgName,
        limit: Duration,
    ) -> Result<()> {
        drop(hold_group(kernel, vg, limit)?);
        self.lvcreate_ended = true;
        Ok(())
    }

    /// Whether it is certain that the lvcreate of a killed call has ended.
    pub fn show_end_of_lvcreate(&self) -> bool {
        self.lvcreate_ended || self.group.is_some()
    }
}

/// A lock was not released in time. The text names the processes that have it.
#[derive(Debug)]
pub struct Busy(String);

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Busy {}

/// The path of a volume's lock: `<LV UUID>.lock`. It contains the UUID, since a new volume may get the name of a
/// removed one.
pub fn path_of(uuid: &LvUuid) -> PathBuf {
    Path::new(LOCK_DIR).join(format!("{}.lock", uuid.plain()))
}

/// Takes the lock of a volume, active or not. Waits up to `limit`. If the lock is still held then, the error is
/// [`Busy`].
pub fn hold(kernel: &Kernel, (id, uuid): Target, limit: Duration) -> Result<Lock> {
    hold_file(kernel, &path_of(uuid), limit).with_context(|| format!("locking {id}"))
}

/// Takes the lock of a group, under which volumes are created and extended. A call takes it before it asks LVM for the
/// free space, and holds it until LVM has allocated the space. A call that needs both locks takes the volume's lock
/// first. While it holds the group's lock, it waits for no other lock.
pub fn hold_group(kernel: &Kernel, vg: &VgName, limit: Duration) -> Result<Lock> {
    let path = Path::new(LOCK_DIR).join(format!("group-{vg}.lock"));
    hold_file(kernel, &path, limit).with_context(|| format!("locking the group {vg}"))
}

fn hold_file(kernel: &Kernel, path: &Path, limit: Duration) -> Result<Lock> {
    // flock(2) cannot wait with a limit and be woken by a signal, so this loop tries again, less and less
    // often.
    let started = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        let lock = kernel.try_lock(path).with_context(|| {
            // The directory itself may be missing.
            format!(
                "opening the lock file {} (see `df /run; df -i /run`)",
                path.shown()
            )
        })?;
        if let Some(lock) = lock {
            // Anyone who can write to the directory can put another file in place of the lock.
            require_roots(Path::new(LOCK_DIR)).map_err(anyhow::Error::msg)?;
            return Ok(lock);
        }
        if started.elapsed() >= limit {
            return Err(Busy(held(path, &holders::of_file(kernel, path))).into());
        }
        if kernel.pause(pause) {
            return Err(FailedStep::Stopped.error(format!(
                "the driver was told to stop while it waited for {}",
                path.shown()
            )));
        }
        pause = pause.saturating_mul(2).min(Duration::from_millis(250));
    }
}

fn held(path: &Path, holders: &[Process]) -> String {
    let path = path.shown();
    let Some(longest) = holders.iter().map(|process| process.age.as_secs()).max() else {
        return format!("{path} was held by a process that has just gone; try again");
    };
    format!(
        "{path} is held by {}; the oldest was started {longest} s ago; wait for it to end, or find out why it hangs",
        name_them(holders)
    )
}
