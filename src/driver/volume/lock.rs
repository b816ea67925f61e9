//! The locks of volumes and of groups. Calls for one volume take its lock, so that they run one after the other. Calls
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

/// The directory of the locks. A reboot empties /run, and no lock should outlast a reboot.
pub const LOCK_DIR: &str = "/run/flexvolume-lvm";

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
            let path = path.shown();
            // The directory itself may be missing.
            format!("opening the lock file {path} (see `df /run; df -i /run`)")
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
            let path = path.shown();
            return Err(FailedStep::Stopped.error(format!(
                "the driver was told to stop while it waited for {path}"
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
