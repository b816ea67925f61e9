//! Runs the tools as child processes.

use super::close_last::{CLOSE_LAST, own_devices};
use super::holders::check_in;
use super::reader::{READ_DEVICES, answer, ask};
use super::search::find;
use super::trust::require_roots;
use super::watched::{End, Watched, one_line};
use super::{Command, Effect, Kernel, Output, Program, ToolError, Tools};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::cell::{OnceCell, RefCell};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a writing tool may take to end after SIGTERM, if it has reached its limit.
const GRACE_AT_LIMIT: Duration = Duration::from_secs(5);

/// The same time if the driver itself is told to stop, and the limit of a step that takes something back then: kubelet
/// waits 10 s for the driver, people wait less.
const GRACE_AT_STOP: Duration = Duration::from_secs(2);

/// The exit code of a tool that a SIGTERM has ended: see [`ToolError::Failed`].
const SIGTERMED: i32 = 128 + 15;

/// The variables of this process's environment that tools inherit: they tell LVM how to work on this node.
const KEPT: [&str; 2] = [
    // The directory of lvm.conf, with the node's filter, system ID and locks. With another lvm.conf, LVM could change
    // disks that are not this node's. Source: lvm(8).
    "LVM_SYSTEM_DIR",
    // Set in a container without udevd. Otherwise LVM would wait for udevd. Source: lvm2 libdm/libdm-common.c.
    "DM_DISABLE_UDEV",
];

/// Runs real child processes: each in a process group of its own, with both pipes drained and a
/// deadline.
pub struct Processes<'a> {
    kernel: &'a Kernel,
    directories: Vec<PathBuf>,
    search_path: OnceCell<OsString>,
    /// The process that reads devices, kept after its first answer.
    reader: RefCell<Option<Watched<'a>>>,
}

impl<'a> Processes<'a> {
    /// Looks for tools in `directories`, in this order, and nowhere else.
    pub fn new(kernel: &'a Kernel, directories: Vec<PathBuf>) -> Self {
        Self {
            kernel,
            directories,
            search_path: OnceCell::new(),
            reader: RefCell::default(),
        }
    }

    /// The `PATH` of tools: those directories that only root can write to.
    fn search_path(&self) -> &OsStr {
        self.search_path.get_or_init(|| {
            let all = self.directories.iter();
            let trusted = all.filter(|dir| require_roots(dir).is_ok());
            std::env::join_paths(trusted).unwrap_or_default()
        })
    }

    /// The only function that starts a child process.
    fn spawn(&self, path: &Path, command: &Command) -> io::Result<Child> {
        let mut child = process::Command::new(path);
        if command.stays {
            child.arg(READ_DEVICES).stdin(Stdio::piped());
        } else {
            if let Program::Myself(work) = &command.program {
                child.arg(work);
            }
            child.args(&command.args).stdin(match &command.stdin {
                Some(file) => Stdio::from(file.try_clone()?),
                None => Stdio::null(),
            });
        }
        // This copy of the descriptor is closed once the tool has it.
        let copy = command.held.as_ref().map(|file| file.try_clone());
        let held = copy.transpose()?;
        if let Some(held) = &held {
            fcntl(held, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        // The command owns this descriptor, and is dropped when its tool has ended.
        if let Some(handed_on) = &command.handed_on {
            fcntl(handed_on, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        let kept = KEPT.map(|name| Some((name, std::env::var_os(name)?)));
        child
            // Without other variables, a tool does the same whether a person or kubelet called the driver.
            .env_clear()
            .envs(kept.into_iter().flatten())
            .env("PATH", self.search_path())
            // The driver compares words of tools' messages, so they must be English. LVM would also warn of descriptors
            // that kubelet leaks to the driver.
            .env("LC_ALL", "C")
            .env("LVM_SUPPRESS_FD_WARNINGS", "1")
            .current_dir("/")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Starts a child with the command, or hands the command to the reader. `watch` comes first: otherwise the child's
    /// end could be missed.
    fn begin(&self, path: &Path, command: &Command) -> io::Result<Watched<'a>> {
        self.kernel.watch()?;
        let reader = command.stays.then(|| self.reader.take()).flatten();
        let mut watched = match reader {
            Some(reader) => reader,
            None => Watched::new(self.spawn(path, command)?, self.kernel)?,
        };
        if let Some(stdin) = &mut watched.child.stdin {
            ask(stdin, command)?;
        }
        Ok(watched)
    }

    /// Waits until a process ends or answers, up to the command's limit. A process that takes something back goes on
    /// for a moment if the driver is told to stop.
    fn wait(&self, command: &Command, watched: &mut Watched<'a>) -> io::Result<End> {
        if self.kernel.time_left().is_none() {
            match watched.wait(after(command.limit), true)? {
                End::Stopping if self.kernel.is_undoing() => {}
                end => return Ok(end),
            }
        }
        let left = self.kernel.time_left().unwrap_or_default();
        let limit = command.limit.min(GRACE_AT_STOP).min(left);
        Ok(match watched.wait(after(limit), false)? {
            End::Deadline => End::Stopping,
            end => end,
        })
    }

    /// Waits until a tool's process ends, up to the command's limit. Returns its output, or how it failed.
    fn end(&self, command: &Command, mut watched: Watched<'a>) -> Result<Output, ToolError> {
        let (effect, limit) = (command.effect, command.limit);
        let end = self.wait(command, &mut watched);
        match end.map_err(|error| not_spawned(command, error))? {
            End::Exited(status) => output(command, watched, status),
            End::Answered => {
                let answer = answer(&std::mem::take(&mut watched.stdout));
                self.reader.replace(Some(watched));
                answer.map_err(|why| failed(command, 1, why))
            }
            End::Deadline => {
                // If it were stopped, the next call would begin the same check anew, and would not end it either. It
                // holds the volume's lock until it ends.
                if let Some(check) = check_in(self.kernel, watched.child.id()) {
                    let line = command.line();
                    return Err(ToolError::Checking { line, limit, check });
                }
                Err(ToolError::TimedOut {
                    stuck: self.stop(&mut watched, effect, GRACE_AT_LIMIT),
                    line: command.line(),
                    limit,
                    effect,
                })
            }
            End::Stopping => {
                // A process that takes something back has had its time.
                let is_late = self.kernel.is_undoing();
                let grace = if is_late {
                    Duration::ZERO
                } else {
                    GRACE_AT_STOP
                };
                self.stop(&mut watched, effect, grace);
                let line = command.line();
                Err(ToolError::Stopped { line, effect })
            }
            End::Flooded => {
                self.stop(&mut watched, effect, GRACE_AT_LIMIT);
                let (line, reason) = (command.whole_line(), "more than 16 MiB".to_owned());
                Err(ToolError::Unintelligible { line, reason })
            }
        }
    }

    fn run_once(&self, path: &Path, command: &Command) -> Result<Output, ToolError> {
        match self.begin(path, command) {
            Ok(watched) => self.end(command, watched),
            Err(error) => Err(not_spawned(command, error)),
        }
    }

    /// Stops a child that takes too long. Returns the child's pid if even SIGKILL does not end it.
    fn stop(&self, watched: &mut Watched, effect: Effect, grace: Duration) -> Option<u32> {
        let stuck = watched.stop(effect, grace);
        for device in own_devices() {
            let command =
                Command::myself(CLOSE_LAST, Effect::Reads, Duration::ZERO).stdin(Arc::new(device));
            // If this fails, the driver may have to wait for the disk. Nothing else is lost.
            let _ = self.spawn(Path::new("/proc/self/exe"), &command);
        }
        stuck
    }
}

impl Tools for Processes<'_> {
    fn lacks(&self, tool: &str) -> Option<ToolError> {
        find(tool, &self.directories).err()
    }

    fn run(&self, command: &Command) -> Result<Output, ToolError> {
        if self.kernel.stopping() {
            let (line, effect) = (command.line(), Effect::Reads);
            return Err(ToolError::Stopped { line, effect });
        }
        let path = match &command.program {
            Program::Myself(_) => PathBuf::from("/proc/self/exe"),
            Program::Driver(path) => path.clone(),
            Program::Tool(tool) => find(tool, &self.directories)?,
        };
        match self.run_once(&path, command) {
            // systemd sends its SIGTERM to the tools, too, and to those that are started while it does.
            Err(ToolError::Failed {
                code: SIGTERMED, ..
            }) if self.kernel.is_undoing() => self.run_once(&path, command),
            ended => ended,
        }
    }
}

fn after(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

/// The output of a process. Fails if the command does not accept the exit code.
fn output(command: &Command, watched: Watched, status: ExitStatus) -> Result<Output, ToolError> {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| signal.saturating_add(128)))
        .unwrap_or(-1);
    if !command.accepted.contains(&code) {
        return Err(failed(command, code, watched.complaint()));
    }
    Ok(Output {
        code,
        stderr: one_line(&watched.stderr),
        stdout: watched.stdout,
    })
}

fn failed(command: &Command, code: i32, stderr: String) -> ToolError {
    let line = command.line();
    ToolError::Failed { line, code, stderr }
}

fn not_spawned(command: &Command, source: io::Error) -> ToolError {
    let tool = command.tool_name();
    ToolError::Spawn { tool, source }
}
