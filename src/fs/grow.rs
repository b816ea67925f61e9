use std::path::Path;

use crate::host::{Command, Host, Lock, ToolError};
use crate::names::FsType;

/// Grows a filesystem to the size of its volume. Nothing to grow is success. All but ext2 have to be
/// mounted at `mount_point`.
pub fn grow(
    host: &Host,
    fs: FsType,
    device: &Path,
    mount_point: &Path,
    lock: &Lock,
) -> Result<(), ToolError> {
    let tool = |name| Command::writes(name, host.limits.resize).stdin(lock.file());
    let command = match fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => tool("resize2fs").operand(device),
        FsType::Xfs => tool("xfs_growfs").args(["-d"]).operand(mount_point),
        FsType::Btrfs => tool("btrfs")
            .args(["filesystem", "resize"])
            .operand("max")
            .operand(mount_point),
    };
    host.run(&command).map(drop)
}
