//! The only I/O of the driver: running a tool, the few system calls, the log.
//!
//! A test can replace the [`Tools`], and answer in LVM's place.

#![allow(clippy::disallowed_methods)] // this module does the driver's I/O with files and processes

mod close_last;
mod command;
pub mod config_file;
mod devices;
mod files;
pub mod holders;
mod kernel;
mod kernel_log;
mod lock;
mod log;
mod mounts;
mod paths;
mod process;
mod reader;
mod reexec;
mod search;
pub mod selinux;
pub mod trust;
mod uncached;
mod watched;

pub use close_last::{CLOSE_LAST, close_last};
pub use command::{Command, Effect, Node, Program};
pub use files::{at_most_a_mebibyte, open_regular};
pub use kernel::{Kernel, leave_no_core};
pub use kernel_log::{KernelLog, out_of_memory};
pub use lock::Lock;
pub use log::Log;
pub use mounts::{Lack, Space};
pub use paths::{DeviceNumber, proc_file};
pub use process::Processes;
pub use reader::{READ_DEVICES, file_to_clean, file_to_fill, own_path};
pub use reexec::{reexec, take_name_of};
pub use uncached::{Pages, Uncached};

use std::fmt;
use std::io::{self, Write};
use std::ops::Deref;
use std::time::{Duration, Instant};

use anyhow::Error;

use crate::config::Limits;

pub trait Tools {
    /// Runs a tool. Fails if the tool is missing, cannot start, exits with a code that [`Command`] does not accept, or
    /// outlives its limit. Fails also if the driver is told to stop meanwhile.
    fn run(&self, command: &Command) -> Result<Output, ToolError>;

    /// Why the tool cannot be run. `None`: it can be run.
    fn lacks(&self, _tool: &str) -> Option<ToolError> {
        None
    }

    /// Whether the tool exists, even if it may not be run.
    fn has(&self, tool: &str) -> bool {
        !matches!(self.lacks(tool), Some(ToolError::Missing { .. }))
    }
}

/// What a tool answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    pub stdout: Vec<u8>,
    /// The tool's standard error, shortened to one line.
    pub stderr: String,
}

impl Output {
    /// What the tool has printed on its standard output.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Why a tool gave no answer.
#[derive(Debug)]
pub enum ToolError {
    Missing {
        tool: String,
        directories: String,
    },
    /// The tool exists, but somebody other than root can change it.
    Distrusted {
        tool: String,
        problem: String,
    },
    /// The kernel refused to start the tool, or to let the driver watch it.
    Spawn {
        tool: &'static str,
        source: io::Error,
    },
    Failed {
        line: String,
        /// The tool's exit code. As in a shell, it is 128 + N if signal N ended the tool.
        code: i32,
        stderr: String,
    },
    TimedOut {
        line: String,
        limit: Duration,
        effect: Effect,
        /// The process id, if even SIGKILL did not end the process.
        stuck: Option<u32>,
    },
    /// A command of LVM has reached its limit while LVM checks a pool or a cache. It goes on.
    Checking {
        line: String,
        limit: Duration,
        check: holders::Process,
    },
    Stopped {
        line: String,
        effect: Effect,
    },
    /// The tool's answer contradicts its manual.
    Unintelligible {
        line: String,
        reason: String,
    },
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { tool, directories } => write!(
                f,
                "{tool} is not installed on this node (looked in {directories}); install it, or \
                 name its directory in `tool_dirs` of config.toml"
            ),
            Self::Distrusted { tool, problem } => write!(f, "{tool} is not run: {problem}"),
            Self::Spawn { tool, source } => {
                write!(f, "starting {tool}")?;
                if source.kind() == io::ErrorKind::WouldBlock {
                    f.write_str(
                        " (the kernel allows no more processes: see `systemctl show -p TasksMax,TasksCurrent kubelet`, or \
                         pids.max of the cgroup that kubelet runs in, `ulimit -u` and `sysctl kernel.pid_max`)",
                    )?;
                }
                Ok(())
            }
            Self::Failed { line, code, stderr } => {
                let colon = if stderr.is_empty() { "" } else { ": " };
                write!(f, "`{line}` failed with exit code {code}{colon}{stderr}")
            }
            Self::TimedOut {
                line,
                limit,
                effect,
                stuck,
            } => {
                write!(
                    f,
                    "`{line}` did not end within {} s and was stopped{}",
                    limit.as_secs(),
                    unfinished(*effect)
                )?;
                let Some(pid) = stuck else { return Ok(()) };
                write!(
                    f,
                    "; process {pid} does not even die of SIGKILL, so it waits in the kernel for a \
                     device: see `cat /proc/{pid}/stack` and the kernel's log"
                )
            }
            Self::Checking { line, limit, check } => {
                let (limit, age) = (limit.as_secs(), check.age.as_secs());
                write!(
                    f,
                    "LVM checks the metadata of a pool or a cache with {check}, since {age} s. `{line}` needs longer than \
                     {limit} s (`limits.activate` of config.toml) for that, and goes on: a later call finds it done"
                )
            }
            Self::Stopped { line, effect } => write!(
                f,
                "`{line}` was stopped because the driver was told to stop{}",
                unfinished(*effect)
            ),
            Self::Unintelligible { line, reason } => write!(
                f,
                "`{line}` answered something unexpected ({reason}); run it by hand to see it"
            ),
        }
    }
}

/// The words for a step that was stopped.
fn unfinished(effect: Effect) -> &'static str {
    match effect {
        Effect::Reads => "",
        Effect::Writes => "; the step may be unfinished",
    }
}

impl std::error::Error for ToolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The host for those commands of people that change tags. Only [`crate::with_hosts`] makes one.
pub struct Writing<'a>(pub(crate) &'a Host<'a>);

impl<'a> Deref for Writing<'a> {
    type Target = Host<'a>;

    fn deref(&self) -> &Host<'a> {
        self.0
    }
}

/// Everything with which a call-out acts: the tools and the kernel of this machine, and the log.
pub struct Host<'a> {
    pub tools: &'a dyn Tools,
    pub kernel: &'a Kernel,
    pub limits: &'a Limits,
    /// Collects what the call does, for its one line in the log.
    pub log: Log,
    /// Whether each step is printed on standard error, for a person. kubelet would read that as a part of the reply.
    pub is_verbose: bool,
    /// Whether this is for a command that only looks. Then a tool that changes anything is refused.
    pub is_looking: bool,
}

impl<'a> Host<'a> {
    pub fn new(tools: &'a dyn Tools, kernel: &'a Kernel, limits: &'a Limits) -> Self {
        Self {
            tools,
            kernel,
            limits,
            log: Log::default(),
            is_verbose: false,
            is_looking: false,
        }
    }

    /// Runs a tool, and logs it with its duration as a step of this call.
    pub fn run(&self, command: &Command) -> Result<Output, ToolError> {
        if self.is_looking && command.effect == Effect::Writes {
            return Err(ToolError::Spawn {
                tool: command.tool_name(),
                source: io::Error::other("a command that only looks does not run it"),
            });
        }
        self.say(|| format!("+ {}", command.line()));
        let started = Instant::now();
        let result = self.tools.run(command);
        let took = started.elapsed();
        self.log.step(command.tool_name(), took, result.is_ok());
        self.say(|| {
            let how = match &result {
                Ok(output) if output.code == 0 => String::new(),
                Ok(output) => format!(", exit code {}", output.code),
                Err(error) => format!(", failed: {error}"),
            };
            format!("  {} ms{how}", took.as_millis())
        });
        result
    }

    /// Takes back the steps before `error`, also if the driver was told to stop. If that fails, the returned error says
    /// both failures.
    pub fn after_undo(&self, error: Error, undo: impl FnOnce() -> anyhow::Result<()>) -> Error {
        match self.kernel.undo(undo) {
            // The word at the end of the message is that of the first error.
            Ok(()) => error,
            Err(second) => error.context(format!(
                "undoing a step failed too ({second:#}), after this"
            )),
        }
    }

    fn say(&self, line: impl FnOnce() -> String) {
        if self.is_verbose {
            // An error is ignored: perhaps nobody reads standard error.
            let _ = io::stderr().write_all(format!("{}\n", line()).as_bytes());
        }
    }
}

/// The name of the command for people, on hosts that have one.
pub const NAME: &str = "flexvolume-lvm";
/// The packages install a shell script as the command for people. The script sets this variable, and runs the driver by
/// its path.
const CALLED: &str = "FLEXVOLUME_LVM_CALLED";
/// A file with the path of the driver that the packages' script has installed.
const PACKAGED: &str = "/var/lib/flexvolume-lvm/installed";

/// Whether a person called the driver by the name of the command, which a shell finds in `PATH`.
pub fn is_called_by_name() -> bool {
    let program = std::env::args_os().next();
    program.is_some_and(|program| program == NAME) || std::env::var_os(CALLED).is_some()
}

/// The word with which a person calls this driver: the name of the command, or the driver's path. `lvm` alone is LVM's
/// own command.
pub fn own_name() -> String {
    if is_called_by_name() {
        return NAME.to_owned();
    }
    let Ok(exe) = std::env::current_exe() else {
        return "lvm".to_owned();
    };
    // The kernel adds this to the path if an upgrade has replaced the file.
    let shown = exe.to_string_lossy();
    let exe = shown.trim_end_matches(" (deleted)");
    let packaged = std::fs::read_to_string(PACKAGED).unwrap_or_default();
    let is_packaged = packaged.trim_end() == exe;
    if is_packaged { NAME } else { exe }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tools of which every run succeeds.
    struct All;

    impl Tools for All {
        fn run(&self, _: &Command) -> Result<Output, ToolError> {
            Ok(Output::default())
        }
    }

    #[test]
    fn a_command_that_only_looks_runs_no_tool_that_writes() {
        let (kernel, limits) = (Kernel::new().unwrap(), Limits::default());
        let mut host = Host::new(&All, &kernel, &limits);
        host.is_looking = true;
        let limit = limits.query;
        assert!(host.run(&Command::reads("lvs", limit)).is_ok());
        let refused = host.run(&Command::writes("lvchange", limit)).unwrap_err();
        let refused = format!("{:#}", anyhow::Error::new(refused));
        assert!(refused.contains("only looks"), "{refused}");
    }

    #[test]
    fn an_error_says_its_cause_once() {
        let error = anyhow::Error::new(ToolError::Spawn {
            tool: "lvs",
            source: io::Error::from_raw_os_error(13),
        });
        assert_eq!(
            format!("{error:#}"),
            "starting lvs: Permission denied (os error 13)"
        );
    }

    #[test]
    fn a_stopped_writer_is_said_to_be_unfinished() {
        let error = ToolError::TimedOut {
            line: "mkfs.ext4 /dev/x".into(),
            limit: Duration::from_secs(9),
            effect: Effect::Writes,
            stuck: None,
        };
        assert_eq!(
            error.to_string(),
            "`mkfs.ext4 /dev/x` did not end within 9 s and was stopped; the step may be unfinished"
        );
    }
}
