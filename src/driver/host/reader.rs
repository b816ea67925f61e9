//! Writes the questions to the process that reads devices, and parses its answers.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{self, ChildStdin};

use nix::fcntl::OFlag;

use super::{Command, Output};
use crate::names::folded;

/// The first word on the command line of the process that reads devices. That process stays until the call ends. A read
/// of a broken disk may never end: then the driver leaves the process behind. The process has a device open only while
/// it answers, so that the driver can count the other openers.
///
/// A question is a line: the path of the device, the work, and its arguments. An answer is a line: `+` and the
/// findings, or `-` and an error.
pub const READ_DEVICES: &str = "read-devices";

/// Writes the question. The question names the device by a descriptor of this process, so that the name cannot mean
/// another device.
pub fn ask(stdin: &mut ChildStdin, command: &Command) -> io::Result<()> {
    let Some(device) = &command.stdin else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let question = command.question(&own_path(device));
    stdin.write_all(format!("{question}\n").as_bytes())
}

/// A path by which another process can open a file of this process, even if the file's name has changed.
pub fn own_path(file: &File) -> String {
    format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd())
}

/// Opens a file of the asking process, for findings that are too large for a line.
pub fn file_to_fill(path: &str) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// Opens a device of the driver's to write to it. Fails if anybody has claimed the device: a mount, for example.
pub fn file_to_clean(path: &str) -> io::Result<File> {
    let flags = OFlag::O_EXCL.bits();
    File::options().write(true).custom_flags(flags).open(path)
}

/// The findings in an answer, or its error.
pub fn answer(line: &[u8]) -> Result<Output, String> {
    match line.split_first() {
        Some((b'+', found)) => Ok(Output {
            stdout: found.to_vec(),
            ..Output::default()
        }),
        _ => Err(folded(&String::from_utf8_lossy(
            line.get(1..).unwrap_or_default(),
        ))),
    }
}
