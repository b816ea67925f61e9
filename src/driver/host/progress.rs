use std::io::Write;
use std::time::Duration;

use super::{Command, Kernel, Output, ToolError, holders};

/// Progress on standard error while a person waits. kubelet would read that as part of the reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    steps: bool,
    waits: bool,
    /// Progress in one line of the terminal, which is drawn again every second.
    draws: bool,
}

impl Progress {
    /// How long to stay silent first.
    pub const PATIENCE: Duration = Duration::from_secs(2);

    /// How often the line is drawn.
    pub const PAUSE: Duration = Duration::from_secs(1);

    /// For a person. `steps`: each step is told. `is_terminal`: the person sees standard error at once.
    /// `draws`: that terminal can draw a line again.
    pub fn to_a_person(steps: bool, is_terminal: bool, draws: bool) -> Self {
        Self {
            steps,
            waits: steps || is_terminal,
            draws: is_terminal && draws,
        }
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

    /// A tool runs for long. Returns how long after its start to speak again.
    pub fn still_runs(self, kernel: &Kernel, command: &Command, took: Duration) -> Duration {
        let mut holders = holders::of_lvm_lock(kernel, None);
        // LVM's commands lock; what this one locks itself is not what it waits for.
        holders.retain(|holder| holder.command.to_string() != command.tool_name());
        let line = command.line();
        let line = if holders.is_empty() {
            format!("waiting for `{line}`")
        } else {
            let holders = holders::name_them(&holders);
            format!("waiting for LVM's lock, held by {holders}: `{line}`")
        };
        if !self.draws {
            self.say(&line);
            return command.limit;
        }
        self.shows(&format!("{} s: {line}", took.as_secs()));
        command.limit.min(took.saturating_add(Self::PAUSE))
    }

    /// Draws the line. A line wider than the terminal is cut off, not wrapped.
    pub fn shows(self, line: &str) {
        self.draw(&format!("\x1b[?7l{line}\x1b[?7h"));
    }

    fn draw(self, line: &str) {
        if self.draws {
            let _ = std::io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
        }
    }

    /// Ends the line: nothing is waited for any more.
    pub fn done(self) {
        self.draw("");
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
