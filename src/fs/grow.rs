use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Error, Result};

use crate::config::Limits;
use crate::device::Device;
use crate::host::{Command, Host, Lock, ToolError};
use crate::names::Bytes;
use crate::names::FsType;

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
        .map_err(explain)
        .with_context(|| format!("growing the {fs} filesystem of {}", device.id))?;
    Ok(())
}

/// ext2 has no journal, and the kernel grows none of them while they are mounted.
fn explain(error: ToolError) -> Error {
    let is_ext2s =
        matches!(&error, ToolError::Failed { stderr, .. } if stderr.contains("online resizing"));
    let error = Error::from(error);
    if is_ext2s {
        return error.context(
            "this filesystem does not grow while it is mounted: end its pods, then run `e2fsck -f` \
             and `resize2fs` on it by hand, or use ext4",
        );
    }
    error
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
