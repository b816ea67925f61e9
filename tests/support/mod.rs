//! Shared by the tests: the driver on a machine of stand-in tools, its calls, and their replies.
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![allow(unused_imports, unused_macros, dead_code)] // Each of the tests takes what it needs.

pub mod driver;
pub mod machine;
pub mod reply;
pub mod running;
pub mod sample;
pub mod schema;
pub mod tools;
pub mod trace;
pub mod volume;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Which call-outs kubelet makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// All, from `attach` to `detach`.
    Attach,
    /// `mount` and `unmount` only.
    MountOnly,
}

impl Mode {
    /// A name for the volume of a case that is the same in both modes.
    pub fn lv(self) -> &'static str {
        match self {
            Self::Attach => "attached",
            Self::MountOnly => "mounted",
        }
    }

    /// The name of a case in this mode.
    pub fn case(self, case: &str) -> String {
        format!("{case}-{}", self.lv())
    }
}

pub const BOTH_MODES: [Mode; 2] = [Mode::Attach, Mode::MountOnly];

/// Makes an executable file. Another process writes it: if this one did, a test that forks at that
/// moment would keep the file open for writing for a while, and nobody could run it ("Text file
/// busy").
#[track_caller]
pub fn put(file: &Path, content: impl Into<Vec<u8>>) {
    assert_cmd::Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(file)
        .write_stdin(content)
        .assert()
        .success();
}

/// Ends a test whose tools are not on this machine, and names the package of Debian that has them.
macro_rules! needs {
    ($package:literal, $($tool:literal),+) => {
        if !$crate::support::tools::is_here($package, &[$($tool),+]) {
            return;
        }
    };
}
pub(crate) use needs;

/// Ends a test that needs other users, or tools that belong to root, if there are none. Prints which script runs the
/// test with them.
macro_rules! needs_root {
    () => {
        if !$crate::support::driver::is_root_of_this_machine() {
            return;
        }
    };
}
pub(crate) use needs_root;

/// Runs a tool of the host, which must succeed, and returns what it printed, without the ends.
#[track_caller]
pub fn run(tool: &str, args: &[&str]) -> String {
    let output = assert_cmd::Command::new(tool)
        .args(args)
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{tool} {args:?}: {}: {stdout}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout.trim().to_owned()
}

/// Runs a command line like [`run`]. None of its words contains a space.
#[track_caller]
pub fn sh(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    run(words[0], &words[1..])
}

/// Runs these lines in a shell, which ends at the first that fails.
#[track_caller]
pub fn bash(lines: &str) -> String {
    run("bash", &["-c", &format!("set -e -o pipefail; {lines}")])
}

/// The command that begins with `begins`, among those that `doctor` prints.
#[track_caller]
pub fn told<'a>(said: &'a str, begins: &str) -> &'a str {
    let lines = said.lines().map(str::trim);
    let mut commands = lines.map(|line| line.trim_start_matches("run: ").trim_matches('`'));
    let command = commands.find(|command| command.starts_with(begins));
    command.unwrap_or_else(|| panic!("no {begins} in {said}"))
}

/// Runs a command on a terminal, and answers yes to all its questions, which may be dozens. Its exit code does not
/// count: the test checks afterwards whether the command has helped.
pub fn agreeing(command: &str) {
    let types = format!("yes | head -n 99 | script -qec {command:?} /dev/null || true");
    bash(&types);
}

/// Runs this command line when the value is dropped.
pub struct Finally(pub String);

impl Drop for Finally {
    fn drop(&mut self) {
        sh(&self.0);
    }
}

/// A process that is killed when it is dropped.
pub struct Process(pub Child);

impl Process {
    /// Runs a shell line in this directory.
    pub fn new(line: &str, dir: &Path) -> Self {
        let mut shell = Command::new("sh");
        Self(shell.args(["-c", line]).current_dir(dir).spawn().unwrap())
    }

    /// A file of the process below /proc.
    pub fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string()).join(file)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Waits until this is so. The limit only ends a test that would never end.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(1200);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Looks again until the result is right, for 3 seconds at most, and returns the last result. On a busy machine, a list
/// for people has no time to read all volumes.
pub fn at_last<T>(mut look: impl FnMut() -> T, is_right: impl Fn(&T) -> bool) -> T {
    let mut found = look();
    for _ in 0..30 {
        if is_right(&found) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        found = look();
    }
    found
}

/// Whether a process with this id runs. One that has ended and waits to be collected does not.
pub fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

pub fn host_name() -> String {
    nix::unistd::gethostname().unwrap().into_string().unwrap()
}
