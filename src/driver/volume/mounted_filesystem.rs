//! What the kernel knows of the filesystem that it has mounted from a device. Reads no disk, and starts no process.

use std::path::Path;

use nix::libc::EIO;

use super::device::Device;
use crate::host::Kernel;
use crate::mount::{KubeletPath, Row};

/// How the kernel reacted to an error in a mounted filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The kernel counted the error, or made the filesystem read-only.
    Errors,
    /// The kernel shut the filesystem down: nothing in it can be read or written.
    ShutDown,
}

impl Device {
    /// Whether the kernel has the device's filesystem mounted. True also if no mount table shows this, as after
    /// `umount --lazy` while a file is open.
    pub fn has_filesystem(&self, kernel: &Kernel) -> bool {
        let (name, btrfs) = (self.kernel_name(), Path::new("/sys/fs/btrfs"));
        let is_in = |dir: &Path| kernel.exists(&dir.join(&name));
        if is_in(Path::new("/sys/fs/ext4")) || is_in(Path::new("/sys/fs/xfs")) {
            return true;
        }
        let uuids = kernel.list(btrfs).unwrap_or_default();
        let mut dirs = uuids.iter().map(|uuid| btrfs.join(uuid).join("devices"));
        dirs.any(|dir| is_in(&dir))
    }

    /// How the kernel reacted to an error in this device's filesystem. `mounts`: the filesystem's mounts. `None`: no
    /// error is seen. Reads no disk: a disk that hangs would block the call.
    pub fn failure(&self, kernel: &Kernel, mounts: &[&Row]) -> Option<Failure> {
        let first = mounts.first()?;
        let mut all = mounts.iter();
        if all.any(|row| !row.is_mount_read_only() && row.is_filesystem_read_only()) {
            return Some(Failure::Errors);
        }
        if first.fs_type.starts_with("ext")
            && let Some(has_errors) = self.has_ext_errors(kernel)
        {
            return has_errors.then_some(Failure::Errors);
        }
        // Only a mount in kubelet's directories is opened: these are on no network server that could hang. A mount of
        // the host is refused as such.
        let mut all = mounts.iter();
        let row = all.find(|row| KubeletPath::of(&row.mount_point) != KubeletPath::Other)?;
        is_shut_down(kernel, &row.mount_point, row.id).then_some(Failure::ShutDown)
    }

    /// Whether the kernel has counted errors in the device's ext filesystem since its last mount or check. Some
    /// versions of Linux show an aborted journal only here. `None`: the device has no mounted ext filesystem.
    pub fn has_ext_errors(&self, kernel: &Kernel) -> Option<bool> {
        let count = format!("/sys/fs/ext4/{}/errors_count", self.kernel_name());
        let count = kernel.read(Path::new(&count)).ok()?;
        Some(count.trim() != "0")
    }
}

/// Whether the filesystem of the mount `mount_id` at `path` was shut down. Reads no disk: the root of a mounted
/// filesystem is in memory.
pub fn is_shut_down(kernel: &Kernel, path: &Path, mount_id: u64) -> bool {
    let asked = kernel.ask_mount(path, mount_id);
    asked.is_err_and(|e| e.raw_os_error() == Some(EIO))
}
