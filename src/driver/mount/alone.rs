//! Changes mounts in another process, which can be left behind if a disk does not answer.
//!
//! A filesystem's last unmount writes back all data that is not on the disk yet. Only the kernel knows which unmount is
//! the last: others may unmount meanwhile, and an unmount may take copies of the mount with it. A change of a mount's
//! flags waits while somebody has the filesystem frozen. Such a change also needs a copy of the mount namespace. When
//! that copy ends, the last mount of another volume may end with it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::str::FromStr;

use anyhow::Result;
use nix::libc::{EBUSY, EINVAL, ENOENT, ENOSPC, ESTALE};
use nix::mount::MsFlags;

use crate::failed_step::FailedStep;
use crate::host::{Command, Effect, Host, Kernel, Lock};
use crate::names::Shown;

/// The driver runs itself with these subcommands; they are not for people. `unmount-alone -- <dir>`: one umount2(2).
pub const UNMOUNT: &str = "unmount-alone";
/// `bind-alone <mount id> <flags> -- <from> <to>`: see [`Kernel::bind_with`].
pub const BIND: &str = "bind-alone";
/// `replace-alone <mount id> <flags> -- <dir>`: see [`Kernel::replace_mount`].
pub const REPLACE: &str = "replace-alone";

pub fn unmount(host: &Host, dir: &Path) -> Result<io::Result<()>> {
    let command = Command::myself(UNMOUNT, Effect::Writes, host.limits.mount);
    run(host, command.operand(dir))
        .map_err(|error| FailedStep::Unmount.of(host, error, format!("unmounting {}", dir.shown())))
}

/// Binds the mount with this id, which is at `from`, to `to`, with these flags and no others.
pub fn bind(
    host: &Host,
    (from, id): (&Path, u64),
    to: &Path,
    flags: MsFlags,
    lock: &Lock,
) -> Result<io::Result<()>> {
    run(
        host,
        with(host, BIND, id, flags, lock).operand(from).operand(to),
    )
}

/// Replaces the mount with this id at `dir` by a new one with these flags and no others.
pub fn replace(
    host: &Host,
    dir: &Path,
    id: u64,
    flags: MsFlags,
    lock: &Lock,
) -> Result<io::Result<()>> {
    run(host, with(host, REPLACE, id, flags, lock).operand(dir))
}

fn with(host: &Host, work: &'static str, id: u64, flags: MsFlags, lock: &Lock) -> Command {
    Command::myself(work, Effect::Writes, host.limits.mount)
        .stdin(lock.file())
        .args([id.to_string(), flags.bits().to_string()])
}

/// Runs the process. The inner result is the kernel's answer: success, or an error that the caller may handle.
fn run(host: &Host, command: Command) -> Result<io::Result<()>> {
    let output = host.run(&command.accept(&[0, ENOENT, EBUSY, EINVAL, ENOSPC, ESTALE]))?;
    Ok(match output.code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    })
}

/// Does, in the child process, the work that the first word names. `None`: the word names no work of this file.
pub fn work(words: &[OsString]) -> Option<io::Result<()>> {
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let (work, words) = words.split_first()?;
    Some(match work.to_str()? {
        UNMOUNT => match *words {
            [_, dir] => Kernel::new().and_then(|kernel| kernel.unmount(Path::new(dir))),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        },
        BIND | REPLACE => change(words),
        _ => return None,
    })
}

fn change(words: &[&OsStr]) -> io::Result<()> {
    let [id, flags, _, at, to @ ..] = words else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let (id, flags) = (number(id)?, MsFlags::from_bits_retain(number(flags)?));
    let (kernel, at) = (Kernel::new()?, Path::new(at));
    match to {
        [] => kernel.replace_mount(at, id, flags),
        [to] => kernel.bind_with(at, id, Path::new(to), flags),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn number<T: FromStr>(word: &OsStr) -> io::Result<T> {
    let number = word.to_str().and_then(|word| word.parse().ok());
    number.ok_or(io::ErrorKind::InvalidInput.into())
}
