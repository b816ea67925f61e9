//! Unmounts a directory.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use nix::libc::{EBUSY, EINVAL, ENOENT};

use super::advice::busy;
use super::alone;
use super::table::mounted_at;
use crate::failed_step::FailedStep;
use crate::host::Host;
use crate::names::Shown;

/// The most mounts on one directory that `ensure_unmounted` unmounts. Nobody stacks more by accident.
const MOST_STACKED: usize = 64;

/// How often the unmount of a busy mount is tried again, each time after a [`PAUSE`]. Another call that binds from the
/// mount, or a container that has just ended, may keep the mount busy for a moment.
const PATIENCE: u32 = 4;

const PAUSE: Duration = Duration::from_millis(50);

/// Unmounts `dir` until nothing is mounted there. Succeeds also if the directory is missing or is no mount point, since
/// kubelet calls the driver even then.
pub fn ensure_unmounted(host: &Host, dir: &Path) -> Result<()> {
    let kernel = host.kernel;
    let mut patience = PATIENCE;
    for _ in 0..MOST_STACKED {
        let Some(id) = mounted_at(kernel, dir)? else {
            return Ok(());
        };
        match alone::unmount(host, dir)? {
            Ok(()) => {}
            // Somebody else has just unmounted it.
            Err(e) if matches!(e.raw_os_error(), Some(EINVAL | ENOENT)) => {}
            Err(e) if e.raw_os_error() == Some(EBUSY) => match patience.checked_sub(1) {
                Some(left) if !kernel.pause(PAUSE) => patience = left,
                _ => return Err(FailedStep::Unmount.error(busy(kernel, dir, id))),
            },
            Err(e) => {
                let doing = format!("unmounting {}", dir.shown());
                return Err(FailedStep::Unmount.of(host, e.into(), doing));
            }
        }
    }
    Err(FailedStep::Unmount.error(format!(
        "{} still has a mount after {MOST_STACKED} were taken off; see `findmnt {}`",
        dir.shown(),
        dir.quoted()
    )))
}
