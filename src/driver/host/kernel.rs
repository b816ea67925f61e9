//! The system calls that the driver makes itself.

use std::cell::OnceCell;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
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

/// The few system calls that the driver makes itself, and the files that it reads.
///
/// Every error is the kernel's, without a path: the caller knows what it wanted.
pub struct Kernel {
    stop: Arc<AtomicBool>,
    /// Made by the first that waits: most calls of kubelet are over before they wait for anything.
    wake: OnceCell<UnixStream>,
}

#[allow(clippy::unused_self)] // having the kernel is what allows a function to use it
impl Kernel {
    /// The handlers of signals are installed, not the signals blocked: a blocked mask would be inherited by every
    /// tool and make it deaf to SIGTERM.
    pub fn new() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let wake = OnceCell::new();
        Ok(Self { stop, wake })
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

    /// Reads a small file of /proc, /sys or the driver's own directory.
    pub fn read(&self, path: &Path) -> io::Result<String> {
        // Lossy: a mount point may be named in bytes that are not UTF-8, and must not hide others.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if path.starts_with("/sys") {
            // The kernel gives all of an attribute at once. Source: Linux' Documentation/filesystems/sysfs.rst.
            let mut page = [0; 4096];
            let length = File::open(path)?.read(&mut page)?;
            return Ok(text(page.get(..length).unwrap_or_default()));
        }
        fs::read(path).map(|bytes| text(&bytes))
    }

    /// Reads what the kernel tells of another process, and at most 16 MiB of that: the process itself may
    /// have made it long. Nothing if there is no such process or file.
    pub fn read_of(&self, pid: u32, name: &str) -> String {
        const MOST: u64 = 16 << 20;
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(proc_file(pid, name)) {
            // Bytes read before an error count: a process may end at any time.
            let _ = file.take(MOST).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads a file that a person writes: a regular one of at most 1 MiB, so that nothing in its
    /// place (a FIFO, a device) can hold up the call.
    pub fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        at_most_a_mebibyte(open_regular(path)?)
    }

    /// Reads a regular file, at most one byte more than `most`. What is read is in memory once, and wiped.
    pub fn read_secret(&self, path: &Path, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        let file = open_regular(path)?;
        // As large as it ever gets: a buffer that grows would leave copies behind.
        let most = most.saturating_add(1);
        let mut bytes = Zeroizing::new(Vec::with_capacity(most));
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the last `most` bytes of a file, or all of a shorter one.
    pub fn read_end(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
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

    /// The names in a directory one by one, however many there are. None if it cannot be read.
    pub fn entries(&self, dir: &Path) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        let entries = entries.map_while(io::Result::ok);
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
    }

    pub fn link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    /// Where a path leads without links. Only for what must answer anyway, as kubelet's own directory.
    pub fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    /// The number of the block device at `path`, if there is one. Paths outside /dev are not looked at:
    /// a server that has died could keep the answer for ever.
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

    /// A file without a name, for cryptsetup, which ends with its last descriptor. It is in LVM's directory of /run,
    /// since SELinux lets cryptsetup read files there, and not those of `memfd_create(2)`. Before LVM has made that
    /// directory, memory has to do.
    pub(crate) fn unnamed_file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options.custom_flags(OFlag::O_TMPFILE.bits());
        options.open("/run/lvm").or_else(|_| {
            let flags = MemfdFlags::CLOEXEC;
            // A node may allow only files that nobody can run, which kernels before 6.3 do not know. Source:
            // the kernel's Documentation/userspace-api/mfd_noexec.rst.
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

    /// When a file last changed, in seconds since the epoch, by the clock of then.
    pub fn changed(&self, path: &Path) -> Option<u64> {
        let changed = fs::metadata(path).ok()?.ctime();
        u64::try_from(changed).ok()
    }

    /// Opens a block device for reading. While it is open, its number is given to no other device. `exclusive`: fails
    /// with EBUSY while anything else (a mount, swap, another device) has claimed it. ENXIO: another device is at
    /// `path`.
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

    /// Makes a directory and those above it with mode 0750, as kubelet does.
    pub(crate) fn make_dirs(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o750).create(path)
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Becomes readable when a signal comes after this was first called. To be called before a
    /// child is started, or its end may be missed; [`Kernel::stopping`] tells what came before.
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

    /// Waits until a signal comes, or one of `others` can be read. Waits at most for `most`; `None`: without end.
    pub(super) fn wait<'a>(
        &'a self,
        others: impl Iterator<Item = BorrowedFd<'a>>,
        most: Option<Duration>,
    ) -> io::Result<()> {
        let timeout = most.map_or(PollTimeout::NONE, |most| {
            // Rounded up, so that the last millisecond is slept and not spun.
            let millis = most.as_millis().saturating_add(1);
            PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
        });
        // Without a descriptor for it, a signal still interrupts the wait.
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
        // The end of a child wakes as well, also of one that ended before; the rest is waited for.
        while !self.stopping()
            && let Some(left) = most.checked_sub(started.elapsed())
        {
            let _ = self.wait(std::iter::empty(), Some(left));
        }
        self.stopping()
    }
}

/// Takes out what signals have written, so that the next wait waits.
fn read_all(mut wake: impl Read) {
    let mut sink = [0; 64];
    while wake.read(&mut sink).is_ok_and(|length| length > 0) {}
}

/// Reads what a person writes, and no more than 1 MiB of it.
pub fn at_most_a_mebibyte(from: impl Read) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    from.take(MOST.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Neither this process nor a tool that it starts leaves a core from now on: memory may hold a passphrase.
/// A limit of one byte ends a core that would go to a program too, where 0 would not. Source: Linux'
/// fs/coredump.c, `do_coredump`.
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
