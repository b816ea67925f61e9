//! Hands a call-out to the driver, and a person's words to the tool. Prints the answer and exits.

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
    // `flexvolume-lvm status | head -1` ends early on purpose. kubelet reads standard error as a part of the answer.
    if let Some(error) = said.as_ref().err().filter(|_| printed.styled)
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = writeln!(io::stderr(), "writing to standard output: {error}");
    }
    // If standard output could not be written, for example because a disk is full, the exit code is not 0.
    let lost = u8::from(said.is_err());
    ExitCode::from(printed.code.max(lost))
}

/// The driver answers call-outs of kubelet, which has no terminal. The tool answers everything else.
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
