//! Signals: the driver notices that it is told to stop, and waits.

use std::cell::{Cell, OnceCell};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::SIGXFSZ;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// The time from the signal that tells the driver to stop until its last step begins. A step that is killed may take
/// one second more. kubelet waits 10 s for the driver.
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
    ///
    /// With SIGXFSZ caught, a write beyond the limit of file sizes (`ulimit -f`) is an error, and does not kill the call.
    /// A tool does not inherit that.
    pub fn new() -> io::Result<Self> {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
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
        let known = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok();
        let size = known.flatten().and_then(|size| size.try_into().ok());
        size.unwrap_or(4096)
    }

    pub fn host_name(&self) -> String {
        nix::unistd::gethostname()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
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
