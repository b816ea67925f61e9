//! Steps of a call that failed: a word for each kind, and why the step's tool ended.

use std::fmt;
use std::time::Duration;

use anyhow::Error;

use crate::config::Limits;
use crate::host::{Host, ToolError, out_of_memory};

/// Why a call failed, if no [`Reason`](crate::volume::Reason) refused it. The word ends the call's message, and is in
/// docs/on-call.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FailedStep {
    Config,
    Options,
    /// Another call has the lock.
    Busy,
    /// The driver was told to stop.
    Stopped,
    /// A tool is missing, or is not root's.
    NoTool,
    Creation,
    Activation,
    Tagging,
    Mkfs,
    LuksFormat,
    Unlock,
    Fsck,
    Mount,
    Growth,
    Unmount,
    Close,
    Deactivation,
    CallFailed,
}

/// A text of an error chain that says which step failed.
#[derive(Debug)]
struct InStep {
    step: FailedStep,
    text: String,
}

impl fmt::Display for InStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for InStep {}

impl FailedStep {
    /// An error of this kind.
    pub fn error(self, text: impl fmt::Display) -> Error {
        let (step, text) = (self, text.to_string());
        InStep { step, text }.into()
    }

    /// Adds to an error which step failed: `doing` is a text such as "activating vg/lv". If something else than the
    /// step itself ended the step's tool, adds what that was.
    pub fn of(self, host: &Host, error: Error, doing: impl fmt::Display) -> Error {
        let ended = self.ended(host, &error);
        let (step, text) = (self, doing.to_string());
        let failed = error.context(InStep { step, text });
        match ended {
            Some(ended) => failed.context(ended),
            None => failed,
        }
    }

    /// Why a call fails with this word, and what helps: paragraphs in Markdown, as docs/on-call.md has them.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Config => include_str!("failed_step/config.md"),
            Self::Options => include_str!("failed_step/options.md"),
            Self::Busy => include_str!("failed_step/busy.md"),
            Self::Stopped => include_str!("failed_step/stopped.md"),
            Self::NoTool => include_str!("failed_step/no-tool.md"),
            Self::Creation => include_str!("failed_step/creation.md"),
            Self::Activation => include_str!("failed_step/activation.md"),
            Self::Tagging => include_str!("failed_step/tagging.md"),
            Self::Mkfs => include_str!("failed_step/mkfs.md"),
            Self::LuksFormat => include_str!("failed_step/luks-format.md"),
            Self::Unlock => include_str!("failed_step/unlock.md"),
            Self::Fsck => include_str!("failed_step/fsck.md"),
            Self::Mount => include_str!("failed_step/mount.md"),
            Self::Growth => include_str!("failed_step/growth.md"),
            Self::Unmount => include_str!("failed_step/unmount.md"),
            Self::Close => include_str!("failed_step/close.md"),
            Self::Deactivation => include_str!("failed_step/deactivation.md"),
            Self::CallFailed => include_str!("failed_step/call-failed.md"),
        }
    }

    /// Which step failed, by the error of a call.
    pub fn of_error(error: &Error) -> Self {
        match error.downcast_ref() {
            Some(ToolError::Stopped { .. }) => Self::Stopped,
            Some(ToolError::Missing { .. } | ToolError::Distrusted { .. }) => Self::NoTool,
            Some(
                ToolError::Spawn { .. }
                | ToolError::Failed { .. }
                | ToolError::TimedOut { .. }
                | ToolError::Checking { .. }
                | ToolError::Unintelligible { .. },
            )
            | None => {
                let failed = error.downcast_ref::<InStep>();
                failed.map_or(Self::CallFailed, |failed| failed.step)
            }
        }
    }

    /// What ended the step's tool, if not the step itself. `None`: the tool's own words say why.
    fn ended(self, host: &Host, error: &Error) -> Option<String> {
        let Some(ToolError::TimedOut { limit, .. }) = error.downcast_ref() else {
            return ended_by_code(error);
        };
        let (key, _) = self.limit(host.limits).filter(|(_, is)| is == limit)?;
        Some(format!(
            "`limits.{key}` of config.toml allows this step {} s: raise it if the step only needs longer",
            limit.as_secs()
        ))
    }

    /// The key of the config that limits the step, and its value.
    fn limit(self, limits: &Limits) -> Option<(&'static str, Duration)> {
        match self {
            Self::Activation | Self::Tagging | Self::Unlock | Self::Close | Self::Deactivation => {
                Some(("activate", limits.activate))
            }
            Self::Creation | Self::Mkfs | Self::LuksFormat => Some(("make", limits.make)),
            Self::Fsck => Some(("check", limits.check)),
            Self::Mount | Self::Unmount => Some(("mount", limits.mount)),
            Self::Growth => Some(("resize", limits.resize)),
            Self::Config
            | Self::Options
            | Self::Busy
            | Self::Stopped
            | Self::NoTool
            | Self::CallFailed => None,
        }
    }
}

/// The error in words. If a signal has ended its tool, or the tool is broken, the words begin with that.
pub fn in_words(error: &Error) -> String {
    let ended = ended_by_code(error);
    let ended = ended.map_or_else(String::new, |ended| format!("{ended}: "));
    format!("{ended}{error:#}")
}

/// Whether the step's tool itself says why the step failed: nothing else ended the tool.
pub fn has_own_words(error: &Error) -> bool {
    matches!(error.downcast_ref(), None | Some(ToolError::Failed { .. }))
        && ended_by_code(error).is_none()
}

/// What ended the error's tool, by its exit code. `None`: the tool itself, or no exit code tells.
fn ended_by_code(error: &Error) -> Option<String> {
    match error.downcast_ref()? {
        ToolError::Failed { line, code, .. } => by_code(line, *code),
        ToolError::Missing { .. }
        | ToolError::Distrusted { .. }
        | ToolError::Spawn { .. }
        | ToolError::TimedOut { .. }
        | ToolError::Checking { .. }
        | ToolError::Stopped { .. }
        | ToolError::Unintelligible { .. } => None,
    }
}

/// The exit code of a tool that a signal has ended is 128 more than the signal's number. As in a shell, 126 and 127
/// mean that a program cannot be run.
fn by_code(line: &str, code: i32) -> Option<String> {
    const SIGKILLED: i32 = 128 + 9;
    const SIGTERMED: i32 = 128 + 15;
    let tool = tool_of(line);
    let process = tool.rsplit('/').next().unwrap_or(tool);
    match code {
        SIGKILLED => Some(match out_of_memory(process) {
            Some(said) => format!(
                "the kernel killed {tool} for want of memory (\"{said}\"): leave more memory to it, by the node or by \
                 the limit of kubelet's service"
            ),
            None => format!(
                "{tool} was killed, and not by the driver: perhaps for want of memory (`dmesg`), or with kubelet"
            ),
        }),
        SIGTERMED => Some(format!(
            "{tool} got SIGTERM, and not from the driver, as when kubelet's service is stopped"
        )),
        126 | 127 => Some(format!(
            "{tool}, or a program or library that it needs, is missing or broken: run the command by hand, and \
             reinstall its package"
        )),
        129.. => Some(format!(
            "{tool} crashed: signal {} has ended it (`dmesg`, `coredumpctl`)",
            code.saturating_sub(128)
        )),
        _ => None,
    }
}

/// The program of a command line. A question to a child of the driver is shown as a pipe from `echo` to that child.
fn tool_of(line: &str) -> &str {
    let piped = line
        .starts_with("echo ")
        .then(|| line.rsplit(" | ").next())
        .flatten();
    piped.unwrap_or(line).split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Command, Effect, Kernel, Output, Tools};

    struct Nothing;

    impl Tools for Nothing {
        fn run(&self, _: &Command) -> Result<Output, ToolError> {
            Ok(Output::default())
        }
    }

    #[test]
    fn advice_goes_by_how_the_tool_ended() {
        let failed = |code| ToolError::Failed {
            line: "e2fsck -p -- /dev/vg/lv".into(),
            code,
            stderr: "words".into(),
        };
        let late = |secs| ToolError::TimedOut {
            line: "e2fsck -p -- /dev/vg/lv".into(),
            limit: Duration::from_secs(secs),
            effect: Effect::Writes,
            stuck: None,
        };
        let stopped = ToolError::Stopped {
            line: "e2fsck".into(),
            effect: Effect::Writes,
        };
        let missing = ToolError::Missing {
            tool: "e2fsck".into(),
            directories: "/sbin".into(),
        };
        let limit = Limits::default().check.as_secs();
        let cases = [
            (failed(4), "checking vg/lv: `e2fsck", true, FailedStep::Fsck),
            (failed(137), "e2fsck was killed", false, FailedStep::Fsck),
            (failed(143), "e2fsck got SIGTERM", false, FailedStep::Fsck),
            (
                failed(139),
                "e2fsck crashed: signal 11",
                false,
                FailedStep::Fsck,
            ),
            (failed(127), "e2fsck, or a program", false, FailedStep::Fsck),
            (
                late(limit),
                "`limits.check` of config",
                false,
                FailedStep::Fsck,
            ),
            // Not the step's own limit.
            (late(10), "checking vg/lv: `e2fsck", false, FailedStep::Fsck),
            (
                stopped,
                "checking vg/lv: `e2fsck",
                false,
                FailedStep::Stopped,
            ),
            (
                missing,
                "checking vg/lv: e2fsck is",
                false,
                FailedStep::NoTool,
            ),
        ];
        let (kernel, limits) = (Kernel::new().unwrap(), Limits::default());
        let host = Host::new(&Nothing, &kernel, &limits);
        for (error, begins, own_words, failure) in cases {
            let error = FailedStep::Fsck.of(&host, error.into(), "checking vg/lv");
            let text = format!("{error:#}");
            assert!(text.starts_with(begins), "{text}");
            assert_eq!(has_own_words(&error), own_words, "{text}");
            let error = error.context("and more");
            assert_eq!(FailedStep::of_error(&error), failure, "{text}");
        }
        let killed = in_words(&Error::from(failed(137)).context("asking"));
        assert!(killed.starts_with("e2fsck was killed"), "{killed}");
        let child = ToolError::Failed {
            line: "echo '[\"a | b\"]' | /opt/lvm read-devices".into(),
            code: 137,
            stderr: String::new(),
        };
        let killed = in_words(&child.into());
        assert!(killed.starts_with("/opt/lvm was killed"), "{killed}");
        let own = in_words(&Error::from(failed(4)).context("asking"));
        assert!(own.starts_with("asking: `e2fsck"), "{own}");
        let other = Error::msg("no step");
        assert_eq!(FailedStep::of_error(&other), FailedStep::CallFailed);
    }
}
