//! The kernel's names for devices, mounts and processes.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber {
    pub major: u64,
    pub minor: u64,
}

impl FromStr for DeviceNumber {
    type Err = ();

    /// Parses a number as the kernel writes it: `254:0`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.trim_end().split_once(':').ok_or(())?;
        Ok(Self {
            major: major.parse().map_err(drop)?,
            minor: minor.parse().map_err(drop)?,
        })
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

pub(super) fn block_device(metadata: &Metadata) -> Option<DeviceNumber> {
    let number = metadata.rdev();
    let is_block_device = metadata.file_type().is_block_device();
    is_block_device.then(|| DeviceNumber {
        major: major(number),
        minor: minor(number),
    })
}

/// The path of a file in /proc about a process: `process` is an id or `self`.
pub fn proc_file(process: impl fmt::Display, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/{name}"))
}

/// Opens a path with `O_PATH`, which does not ask the filesystem there.
pub(super) fn open_path(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_PATH | OFlag::O_NOFOLLOW).bits())
        .open(path)
}

/// The number of the block device that a process has open as this file of `/proc/pid/fd`. `answers`: whether the
/// filesystem of the mount with this id always answers. If not, the file is not looked at.
pub(super) fn device_open_as(
    descriptor: &Path,
    answers: impl FnOnce(u64) -> bool,
) -> Option<DeviceNumber> {
    // Opened with `O_PATH` first: the process could replace the descriptor between the two questions.
    let held = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_PATH.bits())
        .open(descriptor)
        .ok()?;
    answers(mount_id_of(&held).ok()?)
        .then(|| block_device(&held.metadata().ok()?))
        .flatten()
}

/// The id of the mount that an open file is on. Source: proc(5), `/proc/pid/fdinfo`, since Linux 3.15.
pub(super) fn mount_id_of(file: &File) -> io::Result<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    info.lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))
        .and_then(|id| id.trim().parse().ok())
        .ok_or_else(|| io::Error::other("no mnt_id in /proc/self/fdinfo"))
}
