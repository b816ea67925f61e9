use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// Turns the signals that matter into something that poll(2) can wait for.
///
/// The handlers are installed, not the signals blocked: a blocked mask would be inherited by every
/// tool and make it deaf to SIGTERM.
pub struct Signals {
    stop: Arc<AtomicBool>,
    wake: UnixStream,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The kernel's, when no descriptor is left.
    pub fn install() -> io::Result<Self> {
        let (wake, notify) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] {
            signal_hook::low_level::pipe::register(signal, notify.try_clone()?)?;
        }
        Ok(Self { stop, wake })
    }

    /// Whether the driver has been told to stop.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Becomes readable when a signal has come.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Empties the wake-up pipe.
    pub fn drain(&self) {
        let mut sink = [0; 64];
        while matches!((&self.wake).read(&mut sink), Ok(n) if n > 0) {}
    }
}
