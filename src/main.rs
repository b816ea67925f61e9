//! Hands a call-out to the driver, and what a person types to the tool; prints the answer, and exits.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use driver::reply::Printed;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    let printed = match driver::words(&args) {
        Ok(words) => answer(&args, &words),
        Err(printed) => printed,
    };
    // Output for kubelet is not styled.
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

/// The driver answers call-outs of kubelet, which has no terminal. All else is a person's.
fn answer(args: &[OsString], words: &[OsString]) -> Printed {
    if !io::stderr().is_terminal()
        && let Some(printed) = driver::main(args, words)
    {
        return printed;
    }
    tool::main(args, words)
}

fn write(mut out: Box<dyn Write>, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}
