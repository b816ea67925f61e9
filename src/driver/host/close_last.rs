//! Closes the devices of a process that must not wait for them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use nix::unistd::getppid;

/// The first word of the command line that runs [`close_last`].
///
/// The last close of a block device waits for each page that is being read from it, and no signal ends
/// that wait (source: the kernel's block/bdev.c, `blkdev_flush_mapping`). A reader that is killed leaves
/// such pages. So where a tool was stopped, a process of its own closes the devices of this process
/// last, and this process can end while the disk does not answer.
pub const CLOSE_LAST: &str = "close-last";

/// The numbers and the descriptors' links of the block devices that a process has open. An error: it is
/// ending, or has ended.
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
        // Also after the descriptor has gone: the close itself takes a moment longer.
        let is_open = devices_of(&process).map(|all| all.iter().any(|(open, _)| *open == number));
        sleep(PAUSE);
        // Of a process that is ending, only its end tells that all is closed.
        if getppid() != parent || matches!(is_open, Ok(false)) {
            return Ok(());
        }
    }
}
