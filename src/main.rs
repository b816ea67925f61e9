//! Prints what the library has to say, and exits.

use std::io::Write;
use std::process::ExitCode;

use flexvolume_lvm::cli;

fn main() -> ExitCode {
    let printed = cli::main(&std::env::args_os().collect::<Vec<_>>());
    // kubelet may have gone and closed its end: there is nobody left to tell.
    let _ = std::io::stdout().write_all(printed.stdout.as_bytes());
    let _ = std::io::stderr().write_all(printed.stderr.as_bytes());
    ExitCode::from(printed.code)
}
