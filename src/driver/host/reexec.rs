//! Starts this executable again in this process.

use std::ffi::{CString, OsStr};
use std::io::{self, PipeReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::prctl;

use super::kernel::leave_no_core;

/// Starts this executable again in the same process, as `program`, with these arguments and these bytes on standard
/// input. Pid, environment and the other streams stay the same. From then on, neither the process nor its tools leave a
/// core. Returns only an error.
pub fn reexec(program: &OsStr, args: &[&str], stdin: &[u8]) -> io::Error {
    match prepared(program, args, stdin) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepared(program: &OsStr, args: &[&str], stdin: &[u8]) -> io::Result<process::Command> {
    leave_no_core().map_err(|e| io::Error::new(e.kind(), format!("leaving no core: {e}")))?;
    let pipe = OwnedFd::from(pipe_of(stdin)?);
    // This path works even if an upgrade has just replaced the file.
    let mut command = process::Command::new("/proc/self/exe");
    command.arg0(program).args(args).stdin(pipe);
    Ok(command)
}

/// The reading end of a pipe that contains these bytes.
pub fn pipe_of(bytes: &[u8]) -> io::Result<PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    // Nobody reads yet, so the pipe must take all bytes. Source: fcntl(2), F_SETPIPE_SZ.
    let size = i32::try_from(bytes.len()).map_err(io::Error::other)?;
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(size.max(1)))?;
    writer.write_all(bytes)?;
    Ok(reader)
}

/// Gives this process the name of `program` again: after the restart the kernel calls it `exe`. People see the name in
/// messages, and `pgrep` searches for it.
pub fn take_name_of(program: &OsStr) {
    let name = Path::new(program).file_name().unwrap_or(program);
    if let Ok(name) = CString::new(name.as_bytes()) {
        // A failure does not matter: it is only a name.
        let _ = prctl::set_name(&name);
    }
}
