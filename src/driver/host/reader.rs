//! The process that reads devices for a call, and stays until the call ends. A read of a broken disk may never
//! end: then that process is left behind. It has a device open only while it answers, so that its parent can
//! count who else has.
//!
//! A question is a line: the path of the device, the work, and its arguments. An answer is a line: `+` and what
//! was found, or `-` and why nothing was.

use std::io::{self, BufRead, Write};
use std::os::fd::AsRawFd;
use std::process::{self, ChildStdin};

use super::{Command, Output, Uncached};
use crate::names::folded;

/// The first word of that process's command line.
pub const READ_DEVICES: &str = "read-devices";

/// Puts the question. The device is named by this process's descriptor, which keeps it from becoming another.
pub(super) fn ask(stdin: &mut ChildStdin, command: &Command) -> io::Result<()> {
    let device = command.stdin.as_ref();
    let device = device.ok_or(io::ErrorKind::InvalidInput)?.as_raw_fd();
    let question = command.question(&format!("/proc/{}/fd/{device}", process::id()));
    stdin.write_all(format!("{question}\n").as_bytes())
}

/// The findings, or why there are none.
pub(super) fn answer(line: &[u8]) -> Result<Output, String> {
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

/// `read-devices`: answers each question on standard input, until there are no more.
pub fn answer_each(
    work: impl Fn(&Uncached, &[&str]) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let (device, words) = words.split_first().unwrap_or((&"", &[]));
        let found = Uncached::open(device);
        // The device is closed before the answer.
        let found = found
            .map_err(Into::into)
            .and_then(|device| work(&device, words));
        let answer = match found {
            Ok(found) => format!("+{}\n", found.trim_end()),
            Err(error) => format!("-{}\n", folded(&format!("{error:#}"))),
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(answer.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}
