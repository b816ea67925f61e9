//! Work that the driver does in a process of its own, because a disk may never answer.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result};

use crate::fs::{EXAMINE, SUPERBLOCK, scan::examine, superblock::read_primary};
use crate::host::{CLOSE_LAST, Kernel, Signals, close_last};
use crate::mount::UNMOUNT;
use crate::reply::Printed;

pub fn run(words: &[OsString]) -> Option<Printed> {
    let work = words.first()?;
    if work == EXAMINE {
        Some(printed(examine_stdin(words)))
    } else if work == SUPERBLOCK {
        Some(printed(superblock_stdin()))
    } else if work == CLOSE_LAST {
        let closed = stdin().and_then(|device| Ok(close_last(&device)?));
        Some(printed(closed.map(|()| String::new())))
    } else if work == UNMOUNT {
        let code = unmount(words);
        Some(code.map_or_else(
            |(error, code)| failure(&error, code),
            |()| Printed::default(),
        ))
    } else {
        None
    }
}

fn printed(seen: Result<String>) -> Printed {
    seen.map_or_else(|error| failure(&error, 1), Printed::text)
}

fn stdin() -> Result<File> {
    Ok(File::from(std::io::stdin().as_fd().try_clone_to_owned()?))
}

/// `superblock-stdin`, with the device on standard input.
fn superblock_stdin() -> Result<String> {
    Ok(serde_json::to_string(&read_primary(&stdin()?)?)?)
}

fn failure(error: &anyhow::Error, code: u8) -> Printed {
    Printed::failure(format!("{error:#}\n"), code)
}

/// `examine-stdin <size> <time of creation> [flush]`, in decimal, with the device on standard input.
fn examine_stdin(words: &[OsString]) -> Result<String> {
    let number = |n: usize| -> Result<u64> {
        let word = words.get(n).and_then(|word| word.to_str());
        let word = word.context("too few arguments")?;
        word.parse().context("reading a number")
    };
    let device = stdin()?;
    let flush = || match words.get(3) {
        Some(_) => device.sync_all().context("flushing the disk"),
        None => Ok(()),
    };
    flush()?;
    let seen = examine(&device, number(1)?, number(2)?);
    flush()?;
    Ok(serde_json::to_string(&seen)?)
}

/// `unmount-alone -- <dir>`: one umount2(2). The exit code is the kernel's error.
fn unmount(words: &[OsString]) -> Result<(), (anyhow::Error, u8)> {
    let other = |error| (error, u8::MAX);
    let dir = words.get(2).context("too few arguments").map_err(other)?;
    let signals = Signals::install().map_err(|e| other(e.into()))?;
    Kernel::new(&signals)
        .unmount(Path::new(dir))
        .map_err(|error| {
            let code = error.raw_os_error();
            let code = code.and_then(|code| u8::try_from(code).ok());
            (error.into(), code.unwrap_or(u8::MAX))
        })
}
