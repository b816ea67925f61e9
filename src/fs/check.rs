use std::sync::Arc;

use anyhow::{Context, Result};

use super::prepare::Ready;
use super::superblock::{Family, first_backup};
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
    let preen = |superblock: &[String]| -> Result<Output, ToolError> {
        // fsck(8): 1 is "errors corrected", 2 is "reboot", which only a mounted root would need.
        let command = Command::writes("e2fsck", limits.check)
            .stdin(Arc::clone(&lock.file()))
            .args(["-p"])
            .args(superblock)
            .accept(&[0, 1, 2, 3])
            .operand(&device.path);
        host.run(&command)
    };
    let mut outcome = preen(&[]);
    if outcome.as_ref().is_err_and(is_half_written)
        && let Some(backup) = backup(host, device, ready)
    {
        outcome = preen(&backup);
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

/// The options for the copy of the superblock that e2fsck takes by itself when a person runs it,
/// and that it then writes back as the first one.
fn backup(host: &Host, device: &Device, ready: &Ready) -> Option<[String; 4]> {
    let file = host.kernel.open_device(&device.path, false).ok()?;
    let (block, size) = first_backup(&file, &ready.uuid).ok()??;
    Some(["-b", &block.to_string(), "-B", &size.to_string()].map(str::to_owned))
}
