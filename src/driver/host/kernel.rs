//! The system calls that the driver makes itself.

use std::cell::{Cell, OnceCell};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{ENXIO, O_EXCL};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use rustix::fs::{MemfdFlags, memfd_create};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use zeroize::Zeroizing;

use super::paths::{DeviceNumber, block_device, proc_file};

/// The time from the signal that tells the driver to stop until its last step begins. A step that is killed may take one
/// second more. kubelet waits 10 s for the driver.
const GRACE: Duration = Duration::from_secs(8);

/// The few system calls that the driver makes itself, and the files that it reads.
///
/// Every error is the kernel's, without a path: the caller adds the path.
pub struct Kernel {
    stop: Arc<AtomicBool>,
    /// When the driver first noticed that it was told to stop.
    told: OnceCell<Instant>,
    /// How many [`Kernel::undo`] run, one inside the other.
    undoing: Cell<u32>,
    /// The socket to which signals write. Made at the first wait, since most calls of kubelet end without a wait.
    wake: OnceCell<UnixStream>,
}

#[allow(clippy::unused_self)] // only a function with a `Kernel` can make these calls
impl Kernel {
    /// Installs handlers of signals. Blocking the signals instead would also block SIGTERM in every tool, which
    /// inherits the mask.
    pub fn new() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Self {
            stop,
            told: OnceCell::new(),
            undoing: Cell::new(0),
            wake: OnceCell::new(),
        })
    }

    pub fn page_size(&self) -> u64 {
        let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
        let size = size.ok().flatten().and_then(|size| size.try_into().ok());
        size.unwrap_or(4096)
    }

    pub fn host_name(&self) -> String {
        nix::unistd::gethostname()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Reads a file of /proc or /sys, or a file of LVM's archive.
    pub fn read(&self, path: &Path) -> io::Result<String> {
        // Bytes that are not UTF-8 are replaced: one mount point with such a name must not hide the other mounts.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if path.starts_with("/sys") {
            // One read gives a whole attribute. Source: Linux' Documentation/filesystems/sysfs.rst.
            let mut page = [0; 4096];
            let length = File::open(path)?.read(&mut page)?;
            return Ok(text(page.get(..length).unwrap_or_default()));
        }
        fs::read(path).map(|bytes| text(&bytes))
    }

    /// Reads at most 16 MiB of a file about another process in /proc, since that process may make the file long. Empty
    /// if there is no such process or file.
    pub fn read_of(&self, pid: u32, name: &str) -> String {
        const MOST: u64 = 16 << 20;
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(proc_file(pid, name)) {
            // A process may end at any time, so the bytes before an error are used.
            let _ = file.take(MOST).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads a file that a person writes. It must be a regular file of at most 1 MiB: a FIFO or a device could make the
    /// call wait.
    pub fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        at_most_a_mebibyte(open_regular(path)?)
    }

    /// Reads at most `most` + 1 bytes of a regular file. Only one copy of them is in memory, which is wiped when it is
    /// dropped.
    pub fn read_secret(&self, path: &Path, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        let file = open_regular(path)?;
        // The buffer has its full size from the beginning: growing would leave copies of a secret in memory.
        let most = most.saturating_add(1);
        let mut bytes = Zeroizing::new(Vec::with_capacity(most));
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the last `most` bytes of a regular file, or all of a shorter one.
    pub fn read_end(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut file = open_regular(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// The names in a directory, one by one, since there may be any number. No names if the directory cannot be read.
    pub fn entries(&self, dir: &Path) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        let entries = entries.map_while(io::Result::ok);
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
    }

    pub fn link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    /// The path without links. Only for paths that always answer, such as kubelet's own directory.
    pub fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    /// The number of the block device at `path`, if there is one. Does not look at paths outside /dev, where a dead
    /// network server could make the call wait for ever.
    pub fn device_number(&self, path: &Path) -> io::Result<Option<DeviceNumber>> {
        let goes_up = || path.components().any(|part| part == Component::ParentDir);
        if !path.starts_with("/dev") || goes_up() {
            return Ok(None);
        }
        match fs::metadata(path) {
            Ok(metadata) => Ok(block_device(&metadata)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// A file without a name, for cryptsetup. The file vanishes when its last descriptor is closed. It is in /run/lvm,
    /// since SELinux lets cryptsetup read files there, but not files of `memfd_create(2)`. If LVM has not made that
    /// directory yet, `memfd_create` is used.
    pub(crate) fn unnamed_file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options.custom_flags(OFlag::O_TMPFILE.bits());
        options.open("/run/lvm").or_else(|_| {
            let flags = MemfdFlags::CLOEXEC;
            // A node may allow only files that cannot be executed, which `NOEXEC_SEAL` makes. Kernels before 6.3 do not
            // know this flag. Source: the kernel's Documentation/userspace-api/mfd_noexec.rst.
            let file = match memfd_create("luks2-header", flags | MemfdFlags::NOEXEC_SEAL) {
                Err(rustix::io::Errno::INVAL) => memfd_create("luks2-header", flags),
                file => file,
            };
            Ok(file?.into())
        })
    }

    pub fn new_uuid(&self) -> io::Result<String> {
        let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        Ok(uuid.trim_end().to_owned())
    }

    pub fn exists(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok()
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

    /// Makes a directory and its missing parents with mode 0750, as kubelet does.
    pub(crate) fn make_dirs(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o750).create(path)
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    /// Whether no further step may begin: the driver was told to stop, and takes nothing back, or has no time left.
    pub fn stopping(&self) -> bool {
        self.time_left().is_some_and(|left| left.is_zero())
    }

    /// The time for further steps since the driver was told to stop: none, unless they take something back. `None`: the
    /// driver was not told to stop.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.stop.load(Ordering::Relaxed).then(|| {
            let told = self.told.get_or_init(Instant::now);
            let grace = if self.is_undoing() {
                GRACE
            } else {
                Duration::ZERO
            };
            grace.saturating_sub(told.elapsed())
        })
    }

    pub(super) fn is_undoing(&self) -> bool {
        self.undoing.get() > 0
    }

    /// Takes back what a call has begun. These steps run even if the driver is told to stop: for a moment each, and all
    /// of them until kubelet loses patience.
    pub fn undo<T>(&self, steps: impl FnOnce() -> T) -> T {
        self.undoing.set(self.undoing.get().saturating_add(1));
        let done = steps();
        self.undoing.set(self.undoing.get().saturating_sub(1));
        done
    }

    /// A descriptor that becomes readable when a signal comes. Signals from before the first call do not count, so this
    /// is called before a child is started: otherwise the child's end may be missed. [`Kernel::stopping`] also knows of
    /// an earlier signal.
    pub(super) fn watch(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(wake) = self.wake.get() {
            return Ok(wake.as_fd());
        }
        let (wake, notify) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] {
            signal_hook::low_level::pipe::register(signal, notify.try_clone()?)?;
        }
        Ok(self.wake.get_or_init(|| wake).as_fd())
    }

    /// Waits until a signal comes or one of `others` can be read, but not longer than `most`. `None`: no limit.
    pub(super) fn wait<'a>(
        &'a self,
        others: impl Iterator<Item = BorrowedFd<'a>>,
        most: Option<Duration>,
    ) -> io::Result<()> {
        let timeout = most.map_or(PollTimeout::NONE, |most| {
            // Rounded up: otherwise the callers would loop without sleeping during the last millisecond.
            let millis = most.as_millis().saturating_add(1);
            PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
        });
        // If `watch` fails, a signal still interrupts the wait.
        let all = self.watch().into_iter().chain(others);
        let mut all: Vec<PollFd> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut all, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if let Some(wake) = self.wake.get() {
            read_all(wake);
        }
        Ok(())
    }

    /// Waits for `most`. Returns early, with true, if the driver is told to stop.
    pub fn pause(&self, most: Duration) -> bool {
        let started = Instant::now();
        // The end of a child interrupts the wait, too, so this loop waits for the rest of the time.
        while !self.stopping()
            && let Some(left) = most.checked_sub(started.elapsed())
        {
            let _ = self.wait(std::iter::empty(), Some(left));
        }
        self.stopping()
    }
}

/// Reads the bytes that signals have written, so that the next wait does not return at once.
fn read_all(mut wake: impl Read) {
    let mut sink = [0; 64];
    while wake.read(&mut sink).is_ok_and(|length| length > 0) {}
}

/// Reads a person's text of at most 1 MiB.
pub fn at_most_a_mebibyte(from: impl Read) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    from.take(MOST.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Opens a regular file to read it: a FIFO may have no writer, and a device no end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// From now on, neither this process nor a tool that it starts leaves a core, since memory may hold a passphrase. The
/// limit is one byte: a limit of 0 does not prevent a core that is piped to a program. Source: Linux' fs/coredump.c,
/// `do_coredump`.
pub fn leave_no_core() -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_CORE, 1, 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_child_does_not_cut_a_pause_short() {
        const MOST: Duration = Duration::from_millis(200);
        let kernel = Kernel::new().unwrap();
        kernel.watch().unwrap();
        signal_hook::low_level::raise(signal_hook::consts::SIGCHLD).unwrap();
        let started = Instant::now();
        assert!(!kernel.pause(MOST));
        assert!(started.elapsed() >= MOST);
    }
}
