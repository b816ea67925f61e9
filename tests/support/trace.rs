//! The system calls of a call, counted by strace: the numbers are the same on every machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The effects of one call of the driver.
#[derive(Debug, Default)]
pub struct Trace {
    /// The programs that the driver and its children ran, in the order of their pids. The driver itself is left out.
    pub programs: Vec<String>,
    /// How many processes and threads there were beside the driver's own process.
    pub others: usize,
    /// How many system calls the driver's own process made.
    pub calls: usize,
    /// How many bytes the driver's own process read from files and pipes.
    pub read: u64,
    /// The driver's output.
    pub stdout: String,
    /// The time from the driver's start to its end.
    pub took: Duration,
}

/// Runs `exe` under strace, which sees every system call of it and of its children.
pub fn trace(exe: &Path, args: &[&str]) -> Trace {
    follow(exe, args, &[])
}

/// Runs `exe` under strace, which sees only which programs are run: LVM makes thousands of other
/// system calls, and each would cost a millisecond in an emulated guest.
pub fn programs(exe: &Path, args: &[&str]) -> Trace {
    follow(exe, args, &["--seccomp-bpf", "-e", "trace=execve"])
}

fn follow(exe: &Path, args: &[&str], which: &[&str]) -> Trace {
    let dir = TempDir::new().unwrap();
    let begun = Instant::now();
    // One file for each process (-ff): lines of several processes never cut each other in two.
    let output = assert_cmd::Command::new("strace")
        .args(["-ff", "-qq", "-s", "0"])
        .args(which)
        .arg("-o")
        .arg(dir.path().join("trace"))
        .arg(exe)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("strace, which counts for this test: {e}"));
    let took = begun.elapsed();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    let mut files: Vec<(u32, String)> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let pid = path.extension().unwrap().to_str().unwrap().parse().unwrap();
            (pid, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort_unstable();
    let mut found = Trace {
        stdout: String::from_utf8(output.stdout).unwrap(),
        others: files.len() - 1,
        took,
        ..Trace::default()
    };
    let own = files
        .iter()
        .position(|(_, text)| program(text.lines().next().unwrap_or_default()) == exe.to_str())
        .unwrap_or_else(|| panic!("no process is {}", exe.display()));
    let (_, text) = files.remove(own);
    for line in text.lines() {
        found.calls += 1;
        let mut reading = ["read(", "pread64(", "recvfrom("].into_iter();
        if reading.any(|call| line.starts_with(call)) {
            found.read += result(line);
        }
    }
    for (_, text) in files {
        let ran = text.lines().filter(|line| line.ends_with(" = 0"));
        let names = ran.filter_map(|line| program(line)?.rsplit('/').next());
        found.programs.extend(names.map(str::to_owned));
    }
    found
}

/// The program that a line of the trace starts. `None`: the line is not about execve(2). (`-s 0` leaves a path whole.)
fn program(line: &str) -> Option<&str> {
    line.strip_prefix("execve(\"")?.split('"').next()
}

fn result(line: &str) -> u64 {
    let (_, value) = line.rsplit_once(" = ").unwrap_or_default();
    value.parse().unwrap_or(0)
}
