//! What a tool answered, or why it gave no answer.

use std::fmt;
use std::io;
use std::time::Duration;

use super::Effect;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    pub stdout: Vec<u8>,
    /// Its standard error, shortened to one line.
    pub stderr: String,
}

#[derive(Debug)]
pub enum ToolError {
    Missing {
        tool: String,
        directories: String,
    },
    /// It is there, and somebody else than root can change it.
    Distrusted {
        tool: String,
        problem: String,
    },
    /// The kernel refused to start it, or to let it be watched.
    Spawn {
        tool: &'static str,
        source: io::Error,
    },
    Failed {
        line: String,
        /// Its exit code; 128 + N when signal N ended it, as a shell says.
        code: i32,
        stderr: String,
    },
    TimedOut {
        line: String,
        limit: Duration,
        effect: Effect,
        /// The process, if even SIGKILL did not end it.
        stuck: Option<u32>,
    },
    Stopped {
        line: String,
        effect: Effect,
    },
    /// Its answer contradicts its manual.
    Unintelligible {
        line: String,
        reason: String,
    },
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unfinished = |effect: &Effect| match effect {
            Effect::Reads => "",
            Effect::Writes => "; the step may be unfinished",
        };
        match self {
            Self::Missing { tool, directories } => write!(
                f,
                "{tool} is not installed on this node (looked in {directories}); install it, or \
                 name its directory in `tool_dirs` of config.toml"
            ),
            Self::Distrusted { tool, problem } => write!(f, "{tool} is not run: {problem}"),
            Self::Spawn { tool, .. } => write!(f, "starting {tool}"),
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
                let (limit, unfinished) = (limit.as_secs(), unfinished(effect));
                write!(
                    f,
                    "`{line}` did not end within {limit} s and was stopped{unfinished}"
                )?;
                let Some(pid) = stuck else { return Ok(()) };
                write!(
                    f,
                    "; process {pid} does not even die of SIGKILL, so it waits in the kernel for a \
                     device: see `cat /proc/{pid}/stack` and the kernel's log"
                )
            }
            Self::Stopped { line, effect } => write!(
                f,
                "`{line}` was stopped because the driver was told to stop{}",
                unfinished(effect)
            ),
            Self::Unintelligible { line, reason } => write!(
                f,
                "`{line}` answered something unexpected ({reason}); run it by hand to see it"
            ),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
