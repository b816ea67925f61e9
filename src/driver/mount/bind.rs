//! Binds a mount to another directory.

use std::io;
use std::path::Path;

use anyhow::{Error, Result, anyhow};
use nix::libc::{EBUSY, ENOSPC};
use nix::mount::MsFlags;

use super::advice::{busy, too_many_mounts};
use super::alone;
use super::row::Row;
use crate::failed_step::FailedStep;
use crate::host::{Host, Kernel, Lock};
use crate::names::Shown;

/// Binds the mount `from` to `dir` with these [flags](super::restricting) from the beginning. Starts a process
/// only if `from` has other flags. A failure leaves no mount.
pub fn bind(host: &Host, from: &Row, dir: &Path, flags: MsFlags, lock: &Lock) -> Result<()> {
    let at = &from.mount_point;
    // A plain bind asks no disk.
    let bound = if flags == from.flags() {
        host.kernel.bind(at, from.id, dir)
    } else {
        alone::bind(host, (at, from.id), dir, flags, lock)?
    };
    bound.map_err(|error| {
        let doing = format!("binding {} to {}", at.shown(), dir.shown());
        FailedStep::Mount.of(host, explained(host.kernel, error), doing)
    })
}

/// The error of a bind, with an explanation if the kernel's code has several meanings.
fn explained(kernel: &Kernel, error: io::Error) -> Error {
    let is_full = error.raw_os_error() == Some(ENOSPC);
    let why = is_full.then(|| too_many_mounts(kernel)).flatten();
    let error = Error::from(error);
    match why {
        Some(why) => error.context(why),
        None => error,
    }
}

/// Replaces the mount `row` at `dir` by a new one with these [flags](super::restricting) and no others.
/// Changing the flags of the old mount would not change its copies at other places. Fails while a process has the old
/// mount open.
pub fn restrict(host: &Host, row: &Row, dir: &Path, flags: MsFlags, lock: &Lock) -> Result<()> {
    let replaced = alone::replace(host, dir, row.id, flags, lock).and_then(|replaced| {
        replaced.map_err(|e| match e.raw_os_error() {
            Some(EBUSY) => anyhow!(busy(host.kernel, dir, row.id)),
            _ => Error::from(e),
        })
    });
    replaced.map_err(|error| {
        let doing = format!("setting the flags of the mount at {}", dir.shown());
        FailedStep::Mount.of(host, error, doing)
    })
}
