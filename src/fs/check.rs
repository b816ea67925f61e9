use std::sync::Arc;

use anyhow::{Context, Result};

use super::prepare::Ready;
use super::superblock::Family;
use crate::config::Limits;
use crate::device::Device;
use crate::host::{Command, Host, Lock};

/// Checks a filesystem before it is mounted for writing, and repairs what is safe to repair.
///
/// Only ext is checked: e2fsck replays the journal and is done at once if that was all. xfs and
/// btrfs recover when they are mounted, and repairing them before that destroys data.
///
/// # Errors
/// When the filesystem has errors that need a person.
pub fn check(
    host: &Host,
    limits: &Limits,
    device: &Device,
    ready: &Ready,
    lock: &Lock,
) -> Result<()> {
    if Family::of(ready.fs) != Family::Ext {
        return Ok(());
    }
    // fsck(8): 1 is "errors corrected", 2 is "reboot", which only a mounted root would need.
    let command = Command::writes("e2fsck", limits.check)
        .stdin(Arc::clone(&lock.file()))
        .args(["-p"])
        .accept(&[0, 1, 2, 3])
        .operand(&device.path);
    host.run(&command).map(drop).with_context(|| {
        format!(
            "checking the filesystem of {}; if it has errors, save what is needed and repair it \
             with `e2fsck -f {}`",
            device.id,
            device.path.display()
        )
    })
}
