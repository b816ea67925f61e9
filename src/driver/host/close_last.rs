//! Closes devices in the place of a process that must not wait for the close.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use nix::unistd::getppid;

/// The first word of the command line that runs [`close_last`].
///
/// The last close of a block device waits for each page that is being read from the device, and no signal ends that
/// wait (source: the kernel's block/bdev.c, `blkdev_flush_mapping`). A killed reader leaves such pages. So if a tool
/// was stopped, the driver starts a process that keeps the driver's devices open and closes them last. Then the driver
/// itself can end while the disk does not answer.
pub const CLOSE_LAST: &str = "close-last";

/// The block devices that a process has open: the number of each, and its link in `/proc/pid/fd`. An error: the process
/// is ending, or has ended.
fn devices_of(process: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let links = fs::read_dir(process.join("fd"))?.flatten();
    let links: Vec<_> = links.map(|link| link.path()).collect();
    if links.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let devices = links.into_iter().filter_map(|link| {
        let metadata = fs::metadata(&link).ok()?;
        let is_device = metadata.file_type().is_block_device();
        is_device.then(|| (metadata.rdev(), link))
    });
    Ok(devices.collect())
}

/// The block devices that this process has open, each opened once more.
pub fn own_devices() -> Vec<File> {
    let mut devices = devices_of(Path::new("/proc/self")).unwrap_or_default();
    devices.sort();
    devices.dedup_by_key(|(number, _)| *number);
    let files = devices.into_iter().map(|(_, link)| File::open(link));
    files.flatten().collect()
}

/// `close-last`, with the device on standard input: ends after the parent has closed that device.
pub fn close_last() -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(100);
    let parent = getppid();
    let number = fs::metadata("/proc/self/fd/0")?.rdev();
    let process = Path::new("/proc").join(parent.to_string());
    loop {
        // Sleeps also after the descriptor is gone, since the close itself takes a moment longer.
        let is_open = devices_of(&process).map(|all| all.iter().any(|(open, _)| *open == number));
        sleep(PAUSE);
        // If the parent is ending, its devices are known to be closed only when it has ended.
        if getppid() != parent || matches!(is_open, Ok(false)) {
            return Ok(());
        }
    }
}
