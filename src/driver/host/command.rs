//! A run of a tool: the program, its arguments, and the files that it inherits.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::reexec::pipe_of;
use super::{READ_DEVICES, own_name};
use crate::names::{folded, quoted};

/// The executable: a tool of the host, this executable, or a driver that is to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Tool(&'static str),
    /// This executable, for work that may hang in the kernel and therefore needs a process of its own.
    Myself(&'static str),
    /// A driver's executable, called as kubelet calls it, with the config beside that executable.
    Driver(PathBuf),
}

/// Whether a tool changes anything. This decides how the tool is stopped at its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The tool only reads. It gets SIGKILL at once.
    Reads,
    /// The tool changes a volume. It gets SIGTERM first, so that it can leave the volume whole.
    Writes,
}

/// The device of a volume, for a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The kernel's own node of the device. While somebody has the device open, the node leads to no other device.
    pub(crate) path: PathBuf,
    /// The device's name in a command that people see. When they repeat the command, the node's number may belong to
    /// another device.
    pub(crate) name: PathBuf,
}

/// One run of one tool: an argv, never a shell line.
#[derive(Debug, Clone)]
pub struct Command {
    pub(super) program: Program,
    pub(super) args: Vec<OsString>,
    /// The arguments as people see them.
    shown: Vec<OsString>,
    pub(super) limit: Duration,
    pub(super) effect: Effect,
    pub(super) accepted: &'static [i32],
    pub(super) stdin: Option<Arc<File>>,
    /// An open file that the tool inherits beside its standard streams.
    pub(super) held: Option<Arc<File>>,
    /// A file of the driver's own that an option names by this descriptor.
    pub(super) handed_on: Option<Arc<OwnedFd>>,
    /// Whether the process that answers this command stays for the next one: see [`Self::asks`].
    pub(super) stays: bool,
    has_operands: bool,
}

impl Command {
    /// A run of a tool that changes nothing, by itself or because of its arguments. The tool crate can run only the
    /// tools that have a public function here.
    pub(crate) fn reads(tool: &'static str, limit: Duration) -> Self {
        Self::new(Program::Tool(tool), limit, Effect::Reads)
    }

    pub(crate) fn writes(tool: &'static str, limit: Duration) -> Self {
        Self::new(Program::Tool(tool), limit, Effect::Writes)
    }

    pub fn journalctl(limit: Duration) -> Self {
        Self::reads("journalctl", limit)
    }

    pub(crate) fn myself(work: &'static str, effect: Effect, limit: Duration) -> Self {
        Self::new(Program::Myself(work), limit, effect)
    }

    /// Asks this executable about a device. Another process answers, and stays for this call's next questions. If the
    /// device does not answer, that process is left behind.
    pub(crate) fn asks(work: &'static str, device: Arc<File>, limit: Duration) -> Self {
        Self {
            stays: true,
            ..Self::myself(work, Effect::Reads, limit).stdin(device)
        }
    }

    pub fn driver(path: impl Into<PathBuf>, limit: Duration) -> Self {
        Self::new(Program::Driver(path.into()), limit, Effect::Reads)
    }

    fn new(program: Program, limit: Duration, effect: Effect) -> Self {
        Self {
            program,
            args: Vec::new(),
            shown: Vec::new(),
            limit,
            effect,
            accepted: &[0],
            stdin: None,
            held: None,
            handed_on: None,
            stays: false,
            has_operands: false,
        }
    }

    /// Adds options. They come from the driver or its config, never from a pod.
    pub fn args<I: IntoIterator<Item: Into<OsString>>>(mut self, args: I) -> Self {
        let first = self.args.len();
        self = self.unseen(args);
        self.shown.extend(self.args.iter().skip(first).cloned());
        self
    }

    /// Adds options that tell the tool how to answer. The command line for people leaves them out.
    pub fn unseen<I: IntoIterator<Item: Into<OsString>>>(mut self, args: I) -> Self {
        debug_assert!(!self.has_operands, "an option after an operand");
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an operand. Puts `--` before the first operand, so that no operand is read as an option.
    pub fn operand(self, operand: impl Into<OsString>) -> Self {
        let operand = operand.into();
        self.shown_as(operand.clone(), operand)
    }

    /// Adds the device of a volume as an operand. The command line for people has the device's name.
    pub fn device(self, node: &Node) -> Self {
        self.shown_as(node.path.clone().into(), node.name.clone().into())
    }

    fn shown_as(mut self, operand: OsString, shown: OsString) -> Self {
        if !self.has_operands {
            self = self.args(["--"]);
            self.has_operands = true;
        }
        self.args.push(operand);
        self.shown.push(shown);
        self
    }

    pub fn accept(mut self, codes: &'static [i32]) -> Self {
        self.accepted = codes;
        self
    }

    /// Gives the tool this open file as its standard input, which is /dev/null otherwise.
    ///
    /// A tool inherits a lock in this way: then the lock lasts as long as the tool, even if the driver is killed. A
    /// lock is a directory, of which the tool can read nothing.
    pub fn stdin(mut self, file: Arc<File>) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Lets the tool inherit a lock, if its standard input is needed for another file.
    pub fn holds(mut self, file: Arc<File>) -> Self {
        self.held = Some(file);
        self
    }

    /// Lets the tool open `file`, which has no name: this option gives the tool a path to the file. The command line
    /// for people leaves the option out, since they have no such file.
    pub(crate) fn hands_on(self, option: &str, file: File) -> Self {
        let number = file.as_raw_fd();
        let mut command = self.unseen([format!("{option}=/proc/self/fd/{number}")]);
        command.handed_on = Some(Arc::new(file.into()));
        command
    }

    /// Gives the tool these bytes as its standard input, through a pipe: nobody else can read them.
    pub(crate) fn secret(self, bytes: &[u8]) -> io::Result<Self> {
        let pipe = OwnedFd::from(pipe_of(bytes)?);
        Ok(self.stdin(Arc::new(File::from(pipe))))
    }

    pub fn tool_name(&self) -> &'static str {
        match self.program {
            Program::Tool(tool) => tool,
            Program::Myself(work) => work,
            Program::Driver(_) => "driver",
        }
    }

    pub(super) fn question(&self, device: &str) -> String {
        let args = self.args.iter().map(|arg| arg.to_string_lossy());
        let words = [device.into(), self.tool_name().into()].into_iter();
        words.chain(args).collect::<Vec<_>>().join(" ")
    }

    /// The command line, for people: it can be pasted into a shell.
    pub fn line(&self) -> String {
        self.line_of(&self.shown)
    }

    pub fn whole_line(&self) -> String {
        self.line_of(&self.args)
    }

    fn line_of(&self, args: &[OsString]) -> String {
        if let (true, Some(device)) = (self.stays, &self.stdin) {
            let path = fs::read_link(format!("/proc/self/fd/{}", device.as_raw_fd()));
            let question = self.question(&path.unwrap_or_default().to_string_lossy());
            let (question, me) = (quoted(question.as_ref()), quoted(own_name().as_ref()));
            return folded(&format!("echo {question} | {me} {READ_DEVICES}"));
        }
        let mut words = match &self.program {
            Program::Tool(tool) => vec![(*tool).to_owned()],
            Program::Myself(work) => vec![quoted(own_name().as_ref()), (*work).to_owned()],
            Program::Driver(path) => vec![quoted(path.as_os_str())],
        };
        words.extend(args.iter().map(|arg| quoted(arg)));
        folded(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_follow_a_double_dash_once() {
        let command = Command::reads("lvs", Duration::from_secs(1))
            .args(["--units", "b"])
            .operand("-vg/x")
            .operand("y");
        assert_eq!(command.line(), "lvs --units b -- -vg/x y");
    }

    #[test]
    fn a_line_can_be_pasted_into_a_shell() {
        let words = [
            "",
            "a b",
            "it's",
            "$(x)",
            "~",
            "/a~b",
            "a=b,c@d:%",
            "*",
            "<",
            "-o",
        ];
        let command = Command::reads("lvs", Duration::from_secs(1))
            .unseen(["--config", "a=\"%s\" b=0"])
            .args(words);
        assert_eq!(
            command.line(),
            r"lvs '' 'a b' 'it'\''s' '$(x)' '~' /a~b a=b,c@d:% '*' '<' -o"
        );
        let whole = command.whole_line();
        assert!(
            whole.starts_with("lvs --config 'a=\"%s\" b=0' '' "),
            "{whole}"
        );
    }
}
