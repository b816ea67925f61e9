use std::sync::Arc;

use anyhow::{Context, Result};

use super::prepare::Ready;
use super::superblock::{self, Family};
use crate::config::Limits;
use crate::device::Device;
use crate::host::{Command, Host, Lock, Output, ToolError};

/// e2fsck(8): "operational error".
const OPERATIONAL: i32 = 8;

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
    let preen = || -> Result<Output, ToolError> {
        // fsck(8): 1 is "errors corrected", 2 is "reboot", which only a mounted root would need.
        let command = Command::writes("e2fsck", limits.check)
            .stdin(Arc::clone(&lock.file()))
            .args(["-p"])
            .accept(&[0, 1, 2, 3])
            .operand(&device.path);
        host.run(&command)
    };
    let mut outcome = preen();
    if outcome.as_ref().is_err_and(is_half_written) && is_like_its_backup(host, device, ready) {
        complete(host, limits, device, lock)?;
        outcome = preen();
    }
    outcome.map(drop).with_context(|| {
        format!(
            "checking the filesystem of {}; if it has errors, save what is needed and repair it \
             with `e2fsck -f {}`",
            device.id,
            device.path.display()
        )
    })
}

/// e2fsck writes the changed words of a superblock one by one, its checksum last. Killed in
/// between, it leaves one that neither it nor the kernel takes.
fn is_half_written(error: &ToolError) -> bool {
    matches!(error, ToolError::Failed { code: OPERATIONAL, stderr, .. }
        if stderr.contains("Superblock checksum does not match"))
}

/// Whether the copy of the superblock in the first group knows the same filesystem.
fn is_like_its_backup(host: &Host, device: &Device, ready: &Ready) -> bool {
    let file = host.kernel.open_device(&device.path, false);
    file.and_then(|file| superblock::is_like_its_backup(&file, &ready.uuid))
        .unwrap_or(false)
}

/// Writes the superblock as it is, with the checksum that belongs to it, and says in it that the
/// filesystem was not cleanly unmounted: so whatever becomes of this call, e2fsck looks at all of
/// it before it is mounted.
///
/// The copy itself would not do (`e2fsck -b`): its group descriptors are as old as the filesystem,
/// and e2fsck then reads inode tables that nothing has cleared yet. What a removed volume left
/// there looks like damage.
fn complete(host: &Host, limits: &Limits, device: &Device, lock: &Lock) -> Result<()> {
    // -n: without regard to checksums.
    let command = Command::writes("debugfs", limits.check)
        .stdin(Arc::clone(&lock.file()))
        .args(["-n", "-w", "-R", "set_super_value state 0"])
        .operand(&device.path);
    host.run(&command).map(drop).with_context(|| {
        format!(
            "completing the superblock of {}, which a killed e2fsck left half written",
            device.id
        )
    })
}
