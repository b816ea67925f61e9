//! Prints what the library has to say, and exits.

use std::io::Write;
use std::process::ExitCode;

use flexvolume_lvm::cli;

fn main() -> ExitCode {
    let printed = cli::main(&std::env::args_os().collect::<Vec<_>>());
    let mut out = std::io::stdout();
    let said = out
        .write_all(printed.stdout.as_bytes())
        .and_then(|()| out.flush());
    let _ = std::io::stderr().write_all(printed.stderr.as_bytes());
    // Output that was not written is a failure: a report on a full disk, for example.
    let lost = u8::from(said.is_err());
    ExitCode::from(printed.code.max(lost))
}
