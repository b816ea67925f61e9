use std::cell::{OnceCell, RefCell};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{AccessFlags, Pid, access};

use crate::names::{Shown, folded_to};

use super::close_last::{CLOSE_LAST, own_devices};
use super::reader::{self, READ_DEVICES};
use super::selinux;
use super::trust::{require_roots, require_roots_to_run};
use super::{
    Command, Effect, Kernel, Output, Program, Progress, Signals, ToolError, Tools, holders,
};

/// More than any report: 10,000 logical volumes take about 4 MiB.
const MOST_STDOUT: usize = 16 << 20;
/// How much of standard error is kept.
const MOST_STDERR: usize = 64 << 10;
/// How much of it is shown, with a gap in its middle.
const SHOWN: usize = 1024;
/// How long a writer may take to obey SIGTERM at its own limit.
const GRACE_AT_LIMIT: Duration = Duration::from_secs(5);
/// How long a writer may take when the driver itself is stopped: kubelet waits 10 s, people less.
const GRACE_AT_STOP: Duration = Duration::from_secs(2);
/// How long a SIGKILL may take before the process counts as stuck in the kernel.
const GRACE_AT_KILL: Duration = Duration::from_secs(1);

/// The variables of this process's environment that tools inherit: they tell LVM how to work on this node.
const KEPT: [&str; 2] = [
    // Where lvm.conf is, with the node's filter, system ID and locks: without these LVM would touch what is
    // not this node's. Source: lvm(8).
    "LVM_SYSTEM_DIR",
    // In a container there is no udevd, and LVM would wait for one. Source: lvm2 libdm/libdm-common.c.
    "DM_DISABLE_UDEV",
];

/// Runs real child processes: each in a process group of its own, with both pipes drained and a
/// deadline.
pub struct Processes<'a> {
    signals: &'a Signals,
    progress: Progress,
    directories: Vec<PathBuf>,
    search_path: OnceCell<OsString>,
    /// The process that reads devices, once it has answered.
    reader: RefCell<Option<Watched<'a>>>,
}

impl<'a> Processes<'a> {
    /// Looks for tools in `directories`, in this order, and nowhere else.
    pub fn new(signals: &'a Signals, directories: Vec<PathBuf>, progress: Progress) -> Self {
        Self {
            signals,
            progress,
            directories,
            search_path: OnceCell::new(),
            reader: RefCell::default(),
        }
    }

    /// The first tool of this name that only root can change.
    fn find(&self, tool: &str) -> Result<PathBuf, ToolError> {
        let kernel = Kernel::new(self.signals);
        let files = self.directories.iter().map(|dir| dir.join(tool));
        let mut distrust = None;
        for file in files {
            let problem = match access(&file, AccessFlags::X_OK) {
                Ok(()) => require_roots_to_run(&kernel, &file).err(),
                Err(Errno::EACCES) => Some(format!(
                    "{} may not be run: Permission denied{}",
                    file.shown(),
                    selinux::hint()
                )),
                Err(_) => continue,
            };
            if problem.is_none() {
                return Ok(file);
            }
            distrust = distrust.or(problem);
        }
        let tool = tool.to_owned();
        if let Some(problem) = distrust {
            return Err(ToolError::Distrusted { tool, problem });
        }
        let directories = std::env::join_paths(&self.directories).unwrap_or_default();
        let directories = directories.to_string_lossy().into_owned();
        Err(ToolError::Missing { tool, directories })
    }

    /// The `PATH` of tools: directories that only root can write.
    fn search_path(&self) -> &OsStr {
        self.search_path.get_or_init(|| {
            let kernel = Kernel::new(self.signals);
            let all = self.directories.iter();
            let trusted = all.filter(|dir| require_roots(&kernel, dir).is_ok());
            std::env::join_paths(trusted).unwrap_or_default()
        })
    }

    fn path(&self, program: &Program) -> Result<PathBuf, ToolError> {
        match program {
            Program::Myself(_) => Ok(PathBuf::from("/proc/self/exe")),
            Program::Driver(path) => Ok(path.clone()),
            Program::Tool(tool) => self.find(tool),
        }
    }

    /// The one place that makes a child process.
    fn spawn(&self, path: &Path, command: &Command) -> io::Result<Child> {
        let mut child = std::process::Command::new(path);
        if command.stays {
            child.arg(READ_DEVICES).stdin(Stdio::piped());
        } else {
            if let Program::Myself(work) = &command.program {
                child.arg(work);
            }
            let stdin = command.stdin.as_ref();
            let stdin = stdin.map(|file| file.try_clone().map(Stdio::from));
            child
                .args(&command.args)
                .stdin(stdin.transpose()?.unwrap_or_else(Stdio::null));
        }
        // Open in this process only until the tool has it.
        let held = command.held.as_ref().map(|file| file.try_clone());
        let held = held.transpose()?;
        if let Some(held) = &held {
            fcntl(held, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        let kept = KEPT.map(|name| Some((name, std::env::var_os(name)?)));
        child
            // By hand and from kubelet, in whatever environment these were started, a tool does the same.
            .env_clear()
            .envs(kept.into_iter().flatten())
            .env("PATH", self.search_path())
            // The words of messages are compared; and LVM would warn on stderr of the descriptors
            // that kubelet leaks to us.
            .env("LC_ALL", "C")
            .env("LVM_SUPPRESS_FD_WARNINGS", "1")
            .current_dir("/")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// A child that is at work on the command. `watch` comes before there is one, so that its end cannot come
    /// unnoticed.
    fn begin(&self, path: &Path, command: &Command) -> io::Result<Watched<'a>> {
        self.signals.watch()?;
        let reader = command.stays.then(|| self.reader.take()).flatten();
        let mut watched = match reader {
            Some(reader) => reader,
            None => Watched::new(self.spawn(path, command)?, self.signals)?,
        };
        if let Some(stdin) = &mut watched.child.stdin {
            reader::ask(stdin, command)?;
        }
        Ok(watched)
    }

    /// Tells a person that a tool runs for long.
    fn tell_wait(&self, command: &Command) {
        let mut holders = holders::of_lvm_lock(&Kernel::new(self.signals), None);
        // LVM's commands lock; what this one locks itself is not what it waits for.
        holders.retain(|holder| holder.command.to_string() != command.tool_name());
        let line = command.line();
        self.progress.say(&if holders.is_empty() {
            format!("waiting for `{line}`")
        } else {
            let holders = holders::name_them(&holders);
            format!("waiting for LVM's lock, held by {holders}: `{line}`")
        });
    }

    /// Stops a child that takes too long. Returns its pid if it does not even die of SIGKILL.
    fn stop(&self, watched: &mut Watched, effect: Effect, grace: Duration) -> Option<u32> {
        let stuck = watched.stop(effect, grace);
        for device in own_devices() {
            let command = Command::myself(CLOSE_LAST, Effect::Reads, Duration::ZERO);
            let command = command.stdin(Arc::new(device));
            // Without that process this one may have to wait for the disk, and nothing else is lost.
            let _ = self.spawn(Path::new("/proc/self/exe"), &command);
        }
        stuck
    }
}

impl Tools for Processes<'_> {
    fn has(&self, tool: &str) -> bool {
        !matches!(self.find(tool), Err(ToolError::Missing { .. }))
    }

    fn lacks(&self, tool: &str) -> Option<String> {
        self.find(tool).err().map(|error| error.to_string())
    }

    fn run(&self, command: &Command) -> Result<Output, ToolError> {
        let line = || command.line();
        if self.signals.stopping() {
            return Err(ToolError::Stopped {
                line: line(),
                effect: Effect::Reads,
            });
        }
        let spawn_error = |source| ToolError::Spawn {
            tool: command.tool_name(),
            source,
        };
        let path = self.path(&command.program)?;
        let mut watched = self.begin(&path, command).map_err(spawn_error)?;
        let started = Instant::now();
        let mut wait = |limit| {
            let end = watched.wait(started.checked_add(limit), true);
            end.map_err(spawn_error)
        };
        let (limit, effect) = (command.limit, command.effect);
        let tells = self.progress.waits() && Progress::PATIENCE < limit;
        let mut end = wait(if tells { Progress::PATIENCE } else { limit })?;
        if tells && matches!(end, End::Deadline) {
            self.tell_wait(command);
            end = wait(limit)?;
        }
        let status = match end {
            End::Exited(status) => status,
            End::Answered => {
                let answer = reader::answer(&std::mem::take(&mut watched.stdout));
                self.reader.replace(Some(watched));
                return answer.map_err(|stderr| ToolError::Failed {
                    line: line(),
                    code: 1,
                    stderr,
                });
            }
            End::Deadline => {
                let (stuck, line) = (self.stop(&mut watched, effect, GRACE_AT_LIMIT), line());
                return Err(ToolError::TimedOut {
                    line,
                    limit,
                    effect,
                    stuck,
                });
            }
            End::Stopping => {
                self.stop(&mut watched, effect, GRACE_AT_STOP);
                let line = line();
                return Err(ToolError::Stopped { line, effect });
            }
            End::Flooded if command.beginning => {
                let stdout = std::mem::take(&mut watched.stdout);
                self.stop(&mut watched, effect, GRACE_AT_LIMIT);
                return Ok(Output {
                    stdout,
                    cut: true,
                    ..Output::default()
                });
            }
            End::Flooded => {
                self.stop(&mut watched, effect, GRACE_AT_LIMIT);
                let (line, reason) = (command.whole_line(), "more than 16 MiB".to_owned());
                return Err(ToolError::Unintelligible { line, reason });
            }
        };
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| signal.saturating_add(128)))
            .unwrap_or(-1);
        if command.accepted.contains(&code) {
            Ok(Output {
                code,
                stderr: one_line(&watched.stderr),
                stdout: watched.stdout,
                cut: false,
            })
        } else {
            Err(ToolError::Failed {
                line: line(),
                code,
                stderr: watched.complaint(),
            })
        }
    }
}

enum End {
    Exited(ExitStatus),
    /// It said a line, and stays.
    Answered,
    Deadline,
    Stopping,
    Flooded,
}

struct Watched<'a> {
    child: Child,
    signals: &'a Signals,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl<'a> Watched<'a> {
    fn new(child: Child, signals: &'a Signals) -> io::Result<Self> {
        let watched = Self {
            child,
            signals,
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
    fn wait(&mut self, deadline: Option<Instant>, may_stop: bool) -> io::Result<End> {
        loop {
            if !self.read_pipes()? {
                return Ok(End::Flooded);
            }
            if self.child.stdin.is_some() && self.stdout.ends_with(b"\n") {
                return Ok(End::Answered);
            }
            if let Some(status) = self.child.try_wait()? {
                // Anything it wrote just before it exited is in the pipes by now. A pipe holds
                // 64 KiB, of which at least one is taken at a time.
                for _ in 0..64 {
                    self.read_pipes()?;
                }
                return Ok(End::Exited(status));
            }
            if may_stop && self.signals.stopping() {
                return Ok(End::Stopping);
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(End::Deadline);
            }
            self.signals.wait(self.pipes(), left)?;
        }
    }

    /// Takes what both pipes hold. `false`: standard output is longer than any answer.
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
            // Of more, the middle is thrown away: the reason comes first or last.
            let surplus = self.stderr.len().saturating_sub(MOST_STDERR);
            if surplus > 0 {
                let middle = MOST_STDERR / 2;
                self.stderr.drain(middle..middle.saturating_add(surplus));
            }
        }
        Ok(true)
    }

    /// Its complaint, on one line. e2fsck complains on standard output.
    fn complaint(&self) -> String {
        match one_line(&self.stderr) {
            nothing if nothing.is_empty() => one_line(&self.stdout),
            complaint => complaint,
        }
    }

    /// Ends the child and all of its group, as [`Processes::stop`].
    fn stop(&mut self, effect: Effect, grace: Duration) -> Option<u32> {
        let steps = [(Signal::SIGTERM, grace), (Signal::SIGKILL, GRACE_AT_KILL)];
        let skip = usize::from(effect == Effect::Reads);
        for (signal, grace) in steps.into_iter().skip(skip) {
            let pid = i32::try_from(self.child.id()).ok()?;
            // ESRCH: it has just gone.
            let _ = killpg(Pid::from_raw(pid), signal);
            let deadline = Instant::now().checked_add(grace);
            loop {
                match self.wait(deadline, false) {
                    Ok(End::Exited(_)) | Err(_) => return None,
                    Ok(End::Deadline | End::Stopping) => break,
                    // It still prints: throw that away and go on waiting. What prints without a
                    // pause would otherwise never let anybody look at the clock.
                    Ok(End::Flooded) if deadline.is_some_and(|d| Instant::now() >= d) => break,
                    Ok(End::Answered | End::Flooded) => self.stdout.clear(),
                }
            }
        }
        Some(self.child.id())
    }
}

/// Reads until nothing is left or `most` bytes are held. `false` if the other end is closed.
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

/// Folds a tool's complaint into one line, without the usage that follows the reason.
fn one_line(bytes: &[u8]) -> String {
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
