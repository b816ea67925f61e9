//! A call that has been begun and may be waited for, told to stop, or killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::eventually;
use super::reply::Reply;

pub struct Running {
    call: String,
    child: Child,
}

impl Running {
    pub fn new(mut command: Command) -> Self {
        let call = format!("{command:?}");
        let command = command.stdin(Stdio::null());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Self { call, child }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    /// Ends the driver alone, and not what it has started.
    #[track_caller]
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Waits until somebody else has killed the driver.
    #[track_caller]
    pub fn dies(mut self) {
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{status}");
    }

    /// Asks the driver to stop, and returns what it says.
    #[track_caller]
    pub fn stop(self) -> Reply {
        self.signal(Signal::SIGTERM);
        self.reply()
    }

    /// Waits for the end of the call, and of what holds its streams open, as kubelet does.
    #[track_caller]
    pub fn reply(self) -> Reply {
        Reply::of(&self.call, &self.child.wait_with_output().unwrap())
    }

    /// As [`Self::reply`]. A call that does not end is left behind, since it may wait in the kernel.
    #[track_caller]
    pub fn answer(mut self) -> Reply {
        // Longer than the limits of a call together. It only ends a test that would never end.
        let deadline = Instant::now() + Duration::from_secs(180);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "{} does not end", self.call);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.reply()
    }

    /// Waits until the driver listens to SIGTERM. Until then the driver has touched nothing. From then on, SIGTERM
    /// makes it end with a document.
    #[track_caller]
    pub fn listens(&self) -> &Self {
        // It listens to SIGHUP last. A handler that the kernel has is not yet one that does something.
        let status = format!("/proc/{}/status", self.child.id());
        eventually("listening to signals", || {
            let status = fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
            caught & (1 << (Signal::SIGHUP as u32 - 1)) != 0
        });
        self
    }
}
