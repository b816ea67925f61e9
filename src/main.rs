//! Hands a call-out to the driver, and what a person types to the tool; prints the answer, and exits.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    // kubelet has no terminal, so a person runs this.
    let is_a_persons = io::stderr().is_terminal();
    let printed = driver::words(&args).map_or_else(
        |printed| printed,
        |words| {
            let answered = (!is_a_persons).then(|| driver::main(&args, &words));
            answered
                .flatten()
                .unwrap_or_else(|| tool::main(&args, &words))
        },
    );
    let write = |mut out: Box<dyn Write>, text: &str| -> io::Result<()> {
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
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
