//! The words of a call: argv, checked. Source: kubelet's `pkg/volume/flexvolume/driver-call.go`.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};

/// Each call-out with its arguments.
pub const ALL: [(&str, &str); 11] = [
    ("init", ""),
    ("attach", "<options> <node>"),
    ("detach", "<volume name> <node>"),
    ("waitforattach", "<device> <options>"),
    ("isattached", "<options> <node>"),
    ("mountdevice", "<directory> <device> <options>"),
    ("unmountdevice", "<directory>"),
    ("mount", "<directory> <options>"),
    ("unmount", "<directory>"),
    (
        "expandfs",
        "<options> <device> <directory> <new size> <old size>",
    ),
    (
        "expandvolume",
        "<options> <directory> <new size> <old size>",
    ),
];

pub fn named(name: impl AsRef<OsStr>) -> Option<(&'static str, &'static str)> {
    ALL.into_iter().find(|(known, _)| name.as_ref() == *known)
}

/// The option of a call-out by hand that prints each step on standard error.
pub const VERBOSE: &str = "--verbose";

/// Whether a person wrote it, by what kubelet never writes.
pub fn is_by_hand(words: &[OsString]) -> bool {
    let mut before: &OsStr = OsStr::new("");
    words.iter().any(|word| {
        let bytes = word.as_encoded_bytes();
        // Also one that lacks its value: kubelet's next word is a path, a number or JSON.
        let is_word = bytes.first().is_some_and(u8::is_ascii_alphabetic) || bytes.contains(&b'=');
        let is_pair = before == "-o" && is_word && !bytes.starts_with(b"{");
        before = word;
        is_pair
            || ["-", "-h", "--help", VERBOSE].iter().any(|own| word == own)
            || bytes.starts_with(b"@")
    })
}

/// A directory that kubelet names: absolute, and only going down. As of every word of a call, no message repeats it: a
/// secret may stand in the wrong place.
pub fn directory(word: &str) -> Result<PathBuf> {
    const LONGEST: usize = 4095; // PATH_MAX less its NUL
    let path = Path::new(word);
    let goes_down = path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && !word.split('/').any(|part| part == ".");
    let is_top = path.parent().is_none();
    if !goes_down || is_top || word.len() > LONGEST || word.contains(char::is_control) {
        bail!(
            "what the call names is not a directory to mount on: it must be an absolute path below /, without `.`, \
             `..` or control characters"
        );
    }
    // Without a slash at its end: mountinfo never has one.
    Ok(path.components().collect())
}

/// A device that kubelet passes on from `attach`, or nothing.
pub fn device(word: &str) -> Result<&str> {
    let is_path = word.starts_with("/dev/")
        && word.len() <= 4095
        && !word.contains(char::is_control)
        && !word.split('/').any(|part| part == "..");
    if !word.is_empty() && !is_path {
        bail!("what the call names is not a device: it must be a path below /dev, or empty");
    }
    Ok(word)
}
