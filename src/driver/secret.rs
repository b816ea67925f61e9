//! A call that holds a secret, out of sight. All users of the host can read the arguments of a process, and
//! journald logs them. So such a call begins itself again, in the same process, with its words on standard input.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use anyhow::{Context, Error, Result};
use zeroize::Zeroizing;

use crate::calls;
use crate::host::{leave_no_core, reexec, take_name_of};

/// In the place of the words: `call-stdin [call-out]`.
pub const CALL_STDIN: &str = "call-stdin";

/// Begins the call again; `args` is all of argv. It returns only if that fails.
pub fn hide(args: &[OsString], words: &[OsString]) -> Error {
    // The process that is begun again, and its tools, inherit that.
    if let Err(error) = leave_no_core() {
        return Error::new(error)
            .context("keeping the call, which holds a secret, from leaving a core");
    }
    // Which call it is may be seen. Of the others, a secret that was cut in pieces may be in any.
    let call = words.first().and_then(calls::named).map(|(name, _)| name);
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

/// The words of the call that was begun again.
pub fn words(args: &[OsString]) -> Result<Vec<OsString>> {
    if let Some(program) = args.first() {
        take_name_of(program);
    }
    // More than the kernel takes as one word: a buffer that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(256 << 10));
    let read = std::io::stdin().read_to_end(&mut bytes);
    read.context("reading the words of the call from standard input")?;
    // Each word ends with a NUL, the last one too.
    bytes.pop();
    let words = bytes.split(|byte| *byte == 0);
    Ok(words
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect())
}
