use std::path::Path;

use crate::host::{Command, Host, Lock, ToolError};
use crate::names::FsType;

/// Runs mkfs on a device that holds nothing. `again`: it may overwrite its own half.
pub fn mkfs(
    host: &Host,
    fs: FsType,
    device: &Path,
    more: &[&str],
    again: bool,
    lock: &Lock,
) -> Result<(), ToolError> {
    let (tool, options): (_, &[&str]) = match fs {
        FsType::Ext2 => ("mkfs.ext2", EXT_OPTIONS),
        FsType::Ext3 => ("mkfs.ext3", EXT_OPTIONS),
        FsType::Ext4 => ("mkfs.ext4", EXT_OPTIONS),
        // -K: no discard.
        FsType::Xfs => ("mkfs.xfs", &["-q", "-K"]),
        FsType::Btrfs => ("mkfs.btrfs", &["-q", "-K"]),
    };
    let mut command = Command::writes(tool, host.limits.make)
        .stdin(lock.file())
        .args(options);
    // mke2fs needs no -F for a device that is neither mounted nor busy, and with it would not look.
    if again && !fs.is_ext() {
        command = command.args(["-f"]);
    }
    host.run(&command.args(more).operand(device)).map(drop)
}

/// No blocks kept for root, which a pod's volume has no use for; tables and journal are cleared by
/// the kernel after mounting; no discard on a volume that was just allocated.
const EXT_OPTIONS: &[&str] = &[
    "-q",
    "-m",
    "0",
    "-E",
    "nodiscard,lazy_itable_init=1,lazy_journal_init=1",
];
