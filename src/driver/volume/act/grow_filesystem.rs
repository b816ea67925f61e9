//! Grows a filesystem, and compares its size with that of its device.

use std::path::Path;

use anyhow::{Context, Result};

use crate::failed_step::FailedStep;
use crate::fs;
use crate::host::Lock;
use crate::names::{Bytes, FsType};
use crate::volume::device::Pinned;
use crate::volume::subject::Subject;

/// Grows the filesystem on a device. Fails if the tool says that it succeeded, but the filesystem does not fill its
/// device. `mount`: where the filesystem is mounted, and the id of that mount. An id of `None`: the filesystem is an
/// ext that only grows unmounted, and is not mounted yet.
///
/// Reads the device only if the tool changed nothing, for example because there is nothing to grow.
pub fn grow_filesystem(
    subject: Subject,
    fs: FsType,
    on: &Pinned,
    (dir, mount): (&Path, Option<u64>),
    lock: &Lock,
) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let shown = || host.kernel.space(dir, mount?).ok().map(|space| space.bytes);
    let before = shown();
    fs::grow(host, fs, &on.node, dir, lock).map_err(|error| {
        FailedStep::Growth.of(
            host,
            error.into(),
            format!("growing the {fs} filesystem of {id}"),
        )
    })?;
    let after = shown();
    if before
        .zip(after)
        .is_some_and(|(before, after)| before < after)
    {
        return Ok(());
    }
    let found = fs::superblock_of(host, (&on.file, &on.device.path))
        .with_context(|| format!("comparing the size of the {fs} of {id} with its device's"))?;
    let device = on.device.size(host.kernel)?;
    match found.filter(|found| found.has_room(after, device.get())) {
        None => Ok(()),
        Some(found) => Err(FailedStep::Growth.error(format!(
            "the tool that grows {fs} said that it succeeded, but the {fs} of {id} has {} of the {} of its device. \
             Look in `dmesg` for the cause. The volume is large enough, and the next mount grows its filesystem",
            Bytes::new(found.covers(after)),
            device
        ))),
    }
}
