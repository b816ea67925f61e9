use std::cell::OnceCell;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// Turns the signals that matter into something that poll(2) can wait for.
///
/// The handlers are installed, not the signals blocked: a blocked mask would be inherited by every
/// tool and make it deaf to SIGTERM.
pub struct Signals {
    stop: Arc<AtomicBool>,
    /// Made by the first that waits: most calls of kubelet are over before they wait for anything.
    wake: OnceCell<UnixStream>,
}

impl Signals {
    pub fn install() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let wake = OnceCell::new();
        Ok(Self { stop, wake })
    }

    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Becomes readable when a signal comes after this was first called. To be called before a
    /// child is started, or its end may be missed; [`Signals::stopping`] tells what came before.
    pub fn watch(&self) -> io::Result<BorrowedFd<'_>> {
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

    /// Waits until a signal comes, or one of these can be read; at most so long, None: without end.
    pub fn wait<'a>(
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
        let mut sink = [0; 64];
        while let Some(mut wake) = self.wake.get()
            && matches!(wake.read(&mut sink), Ok(n) if n > 0)
        {}
        Ok(())
    }
}
