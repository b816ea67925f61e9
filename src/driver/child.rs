//! Work that the driver does in a process of its own, because a disk may never answer.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};

use anyhow::{Context, Result, bail};

use crate::crypt;
use crate::fs::{
    CLEAN, EXAMINE, Extent, FLUSH, SUPERBLOCK, primary::read_primary, scan::clean_places,
    scan::examine,
};
use crate::host::{CLOSE_LAST, READ_DEVICES, Uncached, close_last, file_to_fill};
use crate::mount::work_alone;
use crate::names::folded;
use crate::reply::Printed;

/// Does the work that the first word names. `None`: the word names no work. If the work fails, the exit code is the
/// kernel's error number, or 255. Only `mount/alone.rs`, which changes mounts, reads that code.
pub fn run(words: &[OsString]) -> Option<Printed> {
    let done = match words.first()?.to_str()? {
        READ_DEVICES => read_devices(),
        CLOSE_LAST => close_last().map_err(Into::into),
        CLEAN => clean(words),
        _ => work_alone(words)?.map_err(Into::into),
    };
    let Err(error) = done else {
        return Some(Printed::default());
    };
    let errno = error.downcast_ref().and_then(io::Error::raw_os_error);
    let code = errno.and_then(|errno| u8::try_from(errno).ok());
    Some(Printed::failure(
        format!("{error:#}\n"),
        code.unwrap_or(u8::MAX),
    ))
}

/// `clean-new <size> device=<path>`: see [`clean_places`].
fn clean(words: &[OsString]) -> Result<()> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let [_, size, handed_on] = words[..] else {
        bail!("no such work");
    };
    // Only the driver hands a device on in this way. So nobody cleans a device by a mistake on the command line.
    let device = handed_on.strip_prefix("device=").context("no device")?;
    if !device.starts_with("/proc/self/fd/") {
        bail!("no such work");
    }
    Ok(clean_places(device, size.parse()?)?)
}

/// `read-devices`: answers each question on standard input, until there are no more.
fn read_devices() -> Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let (device, words) = words.split_first().unwrap_or((&"", &[]));
        // The closure owns the device, so the device is closed before the answer is written.
        let found = Uncached::open(device)
            .map_err(Into::into)
            .and_then(|device| read(&device, words));
        let answer = match found {
            Ok(found) => format!("+{}\n", found.trim_end()),
            Err(error) => format!("-{}\n", folded(&format!("{error:#}"))),
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(answer.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

/// Answers one question about a device, in JSON. The questions: `examine <size> <extent> [flush]`, `superblock
/// [flush]`, `luks`, and `luks-keys <file> [<start> <end>]…`. `<extent>` is an [`Extent`](crate::fs::Extent). Numbers
/// are decimal.
fn read(device: &Uncached, words: &[&str]) -> Result<String> {
    match *words {
        [EXAMINE, size, extent, ref more @ ..] => {
            let (extent, is_flushed) = (extent.parse()?, !more.is_empty());
            if is_flushed {
                flush(device)?;
            }
            if extent == Extent::Cached {
                device.fill_cache()?;
            }
            let seen = examine(device, number(size)?, extent);
            if is_flushed {
                flush(device)?;
            }
            Ok(serde_json::to_string(&seen)?)
        }
        [SUPERBLOCK, FLUSH] => {
            flush(device)?;
            Ok(serde_json::to_string(&read_primary(device)?)?)
        }
        [SUPERBLOCK] => Ok(serde_json::to_string(&read_primary(device)?)?),
        [crypt::KEYS, to, ref ends @ ..] => {
            let ends: Result<Vec<u64>> = ends.iter().map(|end| number(end)).collect();
            let (ends, to) = (ends?, file_to_fill(to)?);
            let (places, _) = ends.as_chunks();
            let places: Vec<_> = places.iter().map(|[start, end]| *start..*end).collect();
            crypt::copy_keys(device, &to, &places)?;
            Ok(serde_json::to_string(&())?)
        }
        [crypt::HEADER] => Ok(serde_json::to_string(&crypt::read(device)?)?),
        _ => bail!("no such question"),
    }
}

fn number(word: &str) -> Result<u64> {
    word.parse().context("reading a number")
}

fn flush(device: &Uncached) -> Result<()> {
    device.flush().context("flushing the disk")
}
