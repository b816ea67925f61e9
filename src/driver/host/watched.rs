//! A child process and its output.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{Effect, Kernel};
use crate::names::folded_to;

/// The longest standard output that is accepted. A report of 10,000 logical volumes takes about 4 MiB.
const MOST_STDOUT: usize = 16 << 20;
/// How much of standard error is kept.
const MOST_STDERR: usize = 64 << 10;
/// How much of standard error is shown. The middle of a longer text is cut out.
const SHOWN: usize = 1024;
/// How long a SIGKILL may take before the process counts as stuck in the kernel.
const GRACE_AT_KILL: Duration = Duration::from_secs(1);

pub(super) enum End {
    Exited(ExitStatus),
    /// The child printed a line, and is still running.
    Answered,
    Deadline,
    Stopping,
    Flooded,
}

/// A child whose pipes are drained while the driver waits for it.
pub(super) struct Watched<'a> {
    pub child: Child,
    kernel: &'a Kernel,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl<'a> Watched<'a> {
    pub fn new(child: Child, kernel: &'a Kernel) -> io::Result<Self> {
        let watched = Self {
            child,
            kernel,
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        for fd in watched.pipes() {
            fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(watched)
    }

    fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let stdout = self.child.stdout.iter().map(AsFd::as_fd);
        stdout.chain(self.child.stderr.iter().map(AsFd::as_fd))
    }

    /// Waits until the child exits, the deadline passes (if there is one) or, if `may_stop`, the driver is
    /// told to stop.
    ///
    /// Does not wait for the pipes to close: the child's own children may keep them open.
    pub fn wait(&mut self, deadline: Option<Instant>, may_stop: bool) -> io::Result<End> {
        loop {
            if !self.read_pipes()? {
                return Ok(End::Flooded);
            }
            if self.child.stdin.is_some() && self.stdout.ends_with(b"\n") {
                return Ok(End::Answered);
            }
            if let Some(status) = self.child.try_wait()? {
                // The child's last output is in the pipes by now. A pipe holds 64 KiB, and each pass reads at least 1
                // KiB.
                for _ in 0..64 {
                    self.read_pipes()?;
                }
                return Ok(End::Exited(status));
            }
            if may_stop && self.kernel.time_left().is_some() {
                return Ok(End::Stopping);
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(End::Deadline);
            }
            self.kernel.wait(self.pipes(), left)?;
        }
    }

    /// Reads all that is in both pipes. `false`: standard output is too long.
    fn read_pipes(&mut self) -> io::Result<bool> {
        if let Some(pipe) = &mut self.child.stdout {
            if !read_available(pipe, &mut self.stdout, MOST_STDOUT)? {
                self.child.stdout = None;
            }
            if self.stdout.len() > MOST_STDOUT {
                return Ok(false);
            }
        }
        if let Some(pipe) = &mut self.child.stderr {
            if !read_available(pipe, &mut self.stderr, MOST_STDERR.saturating_mul(2))? {
                self.child.stderr = None;
            }
            // The middle of a longer text is dropped: the reason is at its beginning or its end.
            let surplus = self.stderr.len().saturating_sub(MOST_STDERR);
            if surplus > 0 {
                let middle = MOST_STDERR / 2;
                self.stderr.drain(middle..middle.saturating_add(surplus));
            }
        }
        Ok(true)
    }

    /// The child's error messages, on one line. If standard error is empty, those on standard output: e2fsck prints its
    /// messages there.
    pub fn complaint(&self) -> String {
        match one_line(&self.stderr) {
            nothing if nothing.is_empty() => one_line(&self.stdout),
            complaint => complaint,
        }
    }

    /// Ends the child and its whole process group. Returns the child's pid if even SIGKILL does not end it.
    pub fn stop(&mut self, effect: Effect, grace: Duration) -> Option<u32> {
        let steps = [(Signal::SIGTERM, grace), (Signal::SIGKILL, GRACE_AT_KILL)];
        let skip = usize::from(effect == Effect::Reads);
        for (signal, grace) in steps.into_iter().skip(skip) {
            let pid = i32::try_from(self.child.id()).ok()?;
            // ESRCH: the group has just ended.
            let _ = killpg(Pid::from_raw(pid), signal);
            let deadline = Instant::now().checked_add(grace);
            loop {
                match self.wait(deadline, false) {
                    Ok(End::Exited(_)) | Err(_) => return None,
                    Ok(End::Deadline | End::Stopping) => break,
                    // The child still prints: its output is dropped, and the wait goes on. The deadline is checked
                    // here, too, for a child that prints without a pause.
                    Ok(End::Flooded) if deadline.is_some_and(|d| Instant::now() >= d) => break,
                    Ok(End::Answered | End::Flooded) => self.stdout.clear(),
                }
            }
        }
        Some(self.child.id())
    }
}

/// Reads until the pipe is empty or `into` has `most` bytes. `false`: the other end is closed.
fn read_available(pipe: &mut impl Read, into: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let mut chunk = [0; 8192];
    while into.len() <= most {
        match pipe.read(&mut chunk) {
            Ok(0) => return Ok(false),
            Ok(n) => into.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Folds a tool's error message into one line, without the usage text that follows the reason.
pub(super) fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let usage = lines.iter().position(|line| line.starts_with("Usage:"));
    let reason = usage.filter(|at| *at > 0).and_then(|at| lines.get(..at));
    folded_to(&reason.unwrap_or(&lines).join("; "), SHOWN)
}
