//! Finds and opens block devices.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use nix::fcntl::OFlag;
use nix::libc::{ENXIO, O_EXCL};

use super::kernel::Kernel;
use super::paths::{DeviceNumber, block_device};

#[allow(clippy::unused_self)] // only a function with a `Kernel` can make these calls
impl Kernel {
    /// The number of the block device at `path`, if there is one. Does not look at paths outside /dev, where a dead
    /// network server could make the call wait for ever.
    pub fn device_number(&self, path: &Path) -> io::Result<Option<DeviceNumber>> {
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        if !path.starts_with("/dev") || goes_up {
            return Ok(None);
        }
        match fs::metadata(path) {
            Ok(metadata) => Ok(block_device(&metadata)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens a block device for reading. While it is open, the kernel gives its number to no other device. `exclusive`:
    /// claims the device, and fails with EBUSY if a mount, swap or another device has claimed it. ENXIO: another device
    /// is at `path`.
    pub(crate) fn open_device(
        &self,
        path: &Path,
        number: DeviceNumber,
        exclusive: bool,
    ) -> io::Result<File> {
        let flags = if exclusive { O_EXCL } else { 0 };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags | OFlag::O_NONBLOCK.bits())
            .open(path)?;
        if block_device(&file.metadata()?) != Some(number) {
            return Err(io::Error::from_raw_os_error(ENXIO));
        }
        Ok(file)
    }
}
