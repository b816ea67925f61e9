use std::io::Write;
use std::time::Duration;

use super::{Command, Output, ToolError};

/// Progress on standard error while a person waits. kubelet would read that as part of the reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    steps: bool,
    waits: bool,
}

impl Progress {
    /// How long to stay silent first.
    pub const PATIENCE: Duration = Duration::from_secs(2);

    /// For a person. `steps`: each step is told. `is_terminal`: the person sees standard error at once.
    pub fn to_a_person(steps: bool, is_terminal: bool) -> Self {
        let waits = steps || is_terminal;
        Self { steps, waits }
    }

    pub fn waits(self) -> bool {
        self.waits
    }

    pub fn say(self, line: &str) {
        if self.waits {
            // Nobody may be reading.
            let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }

    pub fn ended(self, command: &Command, result: &Result<Output, ToolError>, took: Duration) {
        if self.steps {
            let took = took.as_millis();
            let how = match result {
                Ok(output) if output.code == 0 => String::new(),
                Ok(output) => format!(", exit code {}", output.code),
                Err(error) => format!(", failed: {error}"),
            };
            self.say(&format!("+ {}\n  {took} ms{how}", command.line()));
        }
    }
}
