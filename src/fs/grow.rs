use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::config::Limits;
use crate::device::Device;
use crate::host::{Command, Host, Lock};
use crate::names::FsType;
use crate::size::Bytes;

/// A filesystem that is this much smaller than its volume has not been grown along with it. Less
/// is what alignment and whole block groups leave unused.
const WORTH_GROWING: u64 = 1 << 20;

/// Grows a mounted filesystem to the size of its volume. Nothing to grow is success.
///
/// # Errors
/// The tool's.
pub fn grow(
    host: &Host,
    limits: &Limits,
    device: &Device,
    fs: FsType,
    mount_point: &Path,
    lock: &Lock,
) -> Result<()> {
    let tool = |name| Command::writes(name, limits.resize).stdin(Arc::clone(&lock.file()));
    let command = match fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => tool("resize2fs").operand(&device.path),
        FsType::Xfs => tool("xfs_growfs").args(["-d"]).operand(mount_point),
        FsType::Btrfs => tool("btrfs")
            .args(["filesystem", "resize"])
            .operand("max")
            .operand(mount_point),
    };
    host.run(&command)
        .with_context(|| format!("growing the {fs} filesystem of {}", device.id))?;
    Ok(())
}

/// Grows a filesystem that has just been mounted, if its volume was extended since.
///
/// `size` is what the filesystem covers, in bytes.
///
/// # Errors
/// The tool's.
pub fn grow_if_smaller(
    host: &Host,
    limits: &Limits,
    device: &Device,
    (fs, size): (FsType, Bytes),
    mount_point: &Path,
    lock: &Lock,
) -> Result<()> {
    let volume = device.size(host.kernel)?;
    if volume.get().saturating_sub(size.get()) < WORTH_GROWING {
        return Ok(());
    }
    grow(host, limits, device, fs, mount_point, lock)
}
