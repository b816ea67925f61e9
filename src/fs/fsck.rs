use std::path::Path;

use anyhow::Result;

use super::superblock::{Family, Superblock};
use crate::host::{Command, Host, Lock, ToolError};
use crate::names::FsType;

/// Checks an ext before it is mounted for writing, and repairs what is safe to repair. `all`: also
/// if it is clean, which resize2fs wants before it grows one that is not mounted.
///
/// Only ext is checked: e2fsck replays the journal and is done at once if that was all. xfs and
/// btrfs recover when they are mounted, and repairing them before that destroys data.
pub fn check(host: &Host, device: &Path, all: bool, lock: &Lock) -> Result<(), ToolError> {
    // e2fsck(8): 1 is "errors corrected", 2 is "reboot", which only a mounted root would need.
    let command = Command::writes("e2fsck", host.limits.check)
        .stdin(lock.file())
        .args(["-p"])
        .args(all.then_some("-f"))
        .accept(&[0, 1, 2, 3])
        .operand(device);
    host.run(&command).map(drop)
}

/// Whether what is there is the half of a filesystem, which nobody has ever mounted, that a killed
/// mkfs left.
pub fn was_cut_short(host: &Host, device: &Path, fs: FsType, found: &Superblock) -> Result<bool> {
    Ok(match Family::of(fs) {
        family if family != found.family => false,
        // mkfs.xfs clears this last of all, after everything else is on the disk.
        Family::Xfs => found.in_progress,
        // mkfs.btrfs writes its magic number last; a superblock with it is a whole filesystem.
        Family::Btrfs => false,
        // mke2fs writes the superblock last, but only its own check can say that a power cut
        // left the rest. Once mounted, there may be data: then it is never made again.
        Family::Ext => found.never_mounted && !is_sound(host, device)?,
    })
}

fn is_sound(host: &Host, device: &Path) -> Result<bool> {
    let command = Command::reads("e2fsck", host.limits.check)
        .args(["-n", "-f"])
        .operand(device);
    match host.run(&command) {
        Ok(_) => Ok(true),
        Err(ToolError::Failed { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
