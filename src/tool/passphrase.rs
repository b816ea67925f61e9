//! A passphrase from a person: from a file, from standard input, or typed on a terminal that does not show it. Never
//! from the command line, which all users of the host can read.

use std::fs::File;
use std::io::{IsTerminal, Read, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use driver::crypt::read_key_file;
use driver::host::Host;
use driver::options::{LONGEST_PASSPHRASE, Passphrase};

/// Where a passphrase is to come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From<'a> {
    File(&'a Path),
    /// Standard input: a terminal is asked there.
    Input,
}

impl<'a> From<'a> {
    /// By the word of an option, and without it by a default of the node's. `-` is standard input.
    pub fn of(word: Option<&'a Path>, default: Option<&'a Path>) -> Self {
        match word {
            Some(word) if word == "-" => Self::Input,
            Some(word) => Self::File(word),
            None => default.map_or(Self::Input, Self::File),
        }
    }

    /// Reads it; `what` it is called on the terminal. `twice`: one that is new, and is to be typed twice.
    pub fn read(self, host: &Host, what: &str, twice: bool) -> Result<Passphrase> {
        let input = match self {
            Self::File(file) => return read_key_file(host, file),
            Self::Input => std::io::stdin(),
        };
        host.kernel
            .leave_no_core()
            .context("keeping this process from leaving a core")?;
        let is_terminal = input.is_terminal();
        // Not by the standard library's buffer, of which a copy would stay in memory.
        let input = input.as_fd().try_clone_to_owned().map(File::from);
        let input = input.context("opening standard input")?;
        let read = || -> Result<Passphrase> {
            if !is_terminal {
                return Passphrase::of(all_of(&input)?);
            }
            let typed = typed(&input, &format!("{what}: "))?;
            if twice && typed != self::typed(&input, &format!("{what}, once more: "))? {
                bail!("the two are not the same");
            }
            Ok(typed)
        };
        read().with_context(|| format!("reading the {}", what.to_lowercase()))
    }
}

/// Fails if both would be read from a standard input that is no terminal: where does one end?
pub fn require_two(first: From, second: From, option: &str) -> Result<()> {
    if first == From::Input && second == From::Input && !std::io::stdin().is_terminal() {
        bail!(
            "standard input can give only one of the two passphrases, with all its bytes: name the file of the \
             other with --key-file or {option}"
        );
    }
    Ok(())
}

/// All bytes up to the end, a newline too, as of a file.
fn all_of(input: &File) -> Result<Zeroizing<Vec<u8>>> {
    let most = LONGEST_PASSPHRASE.saturating_add(1);
    // As large as it ever gets: a buffer that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    input.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// One line that a person types, without the newline.
fn typed(input: &File, question: &str) -> Result<Passphrase> {
    /// No terminal gives a longer line. Source: termios(3), "Canonical and noncanonical mode".
    const LONGEST_LINE: usize = 4096;
    let mut terminal = std::io::stderr();
    // Before it asks: what is typed as soon as it has asked is an answer.
    let hidden = Hidden::on(input)?;
    terminal.write_all(question.as_bytes())?;
    wait_for(input)?;
    let mut line = Zeroizing::new(vec![0; LONGEST_LINE]);
    let length = (&*input).read(&mut line)?;
    line.truncate(length);
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    drop(hidden);
    terminal.write_all(b"\n")?;
    Passphrase::of(line)
}

/// Ends with an error when a signal comes: after `read` the kernel would go on waiting.
fn wait_for(input: &File) -> Result<()> {
    let mut inputs = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut inputs, PollTimeout::NONE) {
        Err(Errno::EINTR) => bail!("stopped; nothing was changed"),
        done => Ok(done.map(drop)?),
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn on(terminal: &'a File) -> Result<Self> {
        let before = tcgetattr(terminal).context("looking at the terminal")?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        // What was typed before the question is no answer to it.
        tcsetattr(terminal, SetArg::TCSAFLUSH, &hidden).context("hiding what is typed")?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // What is left undone is visible: the terminal stays silent.
        let _ = tcsetattr(self.terminal, SetArg::TCSAFLUSH, &self.before);
    }
}
