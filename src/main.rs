//! Prints what the library has to say, and exits.

use std::io::{self, Write};
use std::process::ExitCode;

use flexvolume_lvm::cli;

fn main() -> ExitCode {
    let printed = cli::main(&std::env::args_os().collect::<Vec<_>>());
    let write = |mut out: Box<dyn Write>, text: &str| -> io::Result<()> {
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    // What kubelet reads stays as it is, byte for byte.
    let (out, err): (Box<dyn Write>, Box<dyn Write>) = if printed.styled {
        (Box::new(anstream::stdout()), Box::new(anstream::stderr()))
    } else {
        (Box::new(io::stdout()), Box::new(io::stderr()))
    };
    let said = write(out, &printed.stdout);
    let _ = write(err, &printed.stderr);
    // Output that was not written is a failure: a report on a full disk, for example.
    let lost = u8::from(said.is_err());
    ExitCode::from(printed.code.max(lost))
}
