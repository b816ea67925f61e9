//! Hides a call's words if they hold a secret: all users of the host can read the arguments of a process, and journald
//! logs them.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;

use anyhow::{Context, Error, Result};
use zeroize::Zeroizing;

use crate::calls::named;
use crate::failed_step::FailedStep;
use crate::host::{reexec, take_name_of};
use crate::options::holds_secret;
use crate::reply::{Printed, Reply};

/// The first word of a call that was started again with its own words on standard input: `call-stdin [call-out]`.
const CALL_STDIN: &str = "call-stdin";

/// The words of this call: argv without the program, or the words on standard input if the call was started again.
///
/// # Errors
/// The answer to a call whose words cannot be read.
pub fn words(args: &[OsString]) -> Result<Vec<OsString>, Printed> {
    let words = args.get(1..).unwrap_or_default();
    if words.first().is_none_or(|first| first != CALL_STDIN) {
        return Ok(words.to_vec());
    }
    let words = hidden_words(args);
    words.map_err(|error| {
        Printed::text(format!(
            "{}\n",
            Reply::failure(&error, Some(FailedStep::CallFailed.into())).to_json()
        ))
    })
}

/// If the arguments of a call or command hold a secret, starts the driver again in the same process, with the words on
/// standard input. Then this function does not return. `args`: all of argv. `None`: they hold no secret. An error: the
/// secret could not be hidden.
pub fn hide_secret(args: &[OsString], words: &[OsString]) -> Option<Error> {
    args.iter().any(holds_secret).then(|| hide(args, words))
}

fn hide(args: &[OsString], words: &[OsString]) -> Error {
    // Only the name of the call-out stays visible. A secret that was cut in pieces may be in any other word.
    let call = words.first().and_then(named).map(|(name, _)| name);
    let seen: Vec<&str> = [CALL_STDIN].into_iter().chain(call).collect();
    let length = words.iter().map(|word| word.len().saturating_add(1)).sum();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    for word in words {
        bytes.extend_from_slice(word.as_encoded_bytes());
        bytes.push(0);
    }
    let program = args.first().map(OsString::as_os_str);
    Error::new(reexec(program.unwrap_or_default(), &seen, &bytes)).context(
        "the call holds a secret, and the driver could not take that off its command line; nothing was done or \
         logged",
    )
}

/// The words on standard input of a call that was started again.
fn hidden_words(args: &[OsString]) -> Result<Vec<OsString>> {
    if let Some(program) = args.first() {
        take_name_of(program);
    }
    // Larger than the longest word that the kernel accepts, so that the buffer does not grow: growing would leave
    // copies of a secret in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(256 << 10));
    let read = io::stdin().read_to_end(&mut bytes);
    read.context("reading the words of the call from standard input")?;
    // Each word ends with a NUL, the last one too.
    bytes.pop();
    let words = bytes.split(|byte| *byte == 0);
    Ok(words
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect())
}
