//! lvchange(8), lvcreate(8), lvextend(8).

use std::num::NonZeroU64;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::record::{NEW, Tags};
use super::report::Volume;
use super::wait::explain;
use super::words::words;
use crate::config::{Limits, VolumeGroup};
use crate::host::{Command, Host, Lock};
use crate::names::{Bytes, LvId, LvName, VgName};

fn run(host: &Host, command: &Command, vg: &VgName) -> Result<()> {
    let done = host.run(&command.clone().words(words));
    done.map(drop)
        .map_err(|error| explain(host, Some(vg), error))
}

/// Activates a volume on this host, also one that is marked to be left out at boot, as thin
/// snapshots are.
pub fn activate(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let command = Command::writes("lvchange", limits.activate)
        .args(["--activate", "y", "--ignoreactivationskip"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("activating {id}"))
}

/// Deactivates a volume. LVM refuses while it is open.
pub fn deactivate(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let command = Command::writes("lvchange", limits.activate)
        .args(["--activate", "n"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("deactivating {id}"))
}

/// Gives the kernel the table that LVM's metadata says, and resumes the volume.
pub fn refresh(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let command = Command::writes("lvchange", limits.activate)
        .args(["--refresh"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("refreshing {id}"))
}

pub fn retag(
    host: &Host,
    limits: &Limits,
    id: &LvId,
    tags: &Tags,
    lock: Option<&Lock>,
) -> Result<()> {
    if tags.add.is_empty() && tags.remove.is_empty() {
        return Ok(());
    }
    let mut command = Command::writes("lvchange", limits.activate);
    if let Some(lock) = lock {
        command = command.stdin(Arc::clone(&lock.file()));
    }
    for tag in &tags.remove {
        command = command.args(["--deltag", tag]);
    }
    for tag in &tags.add {
        command = command.args(["--addtag", tag]);
    }
    run(host, &command.operand(id.to_string()), id.vg()).with_context(|| format!("tagging {id}"))
}

/// Makes a volume of at least `size`, in `pool` if one is given. Signatures that a removed volume
/// left in its place are wiped, as only a volume that was made just now allows. The volume comes
/// with the tag [`NEW`].
pub fn create(
    host: &Host,
    limits: &Limits,
    id: &LvId,
    size: Bytes,
    pool: Option<&LvName>,
    policy: &VolumeGroup,
    lock: &Lock,
) -> Result<()> {
    // LVM takes no odd bytes, and rounds up to whole extents in any case.
    const SECTOR: NonZeroU64 = NonZeroU64::new(512).unwrap();
    let Some(rounded) = size.round_up(SECTOR) else {
        bail!("{size} is more than LVM can count");
    };
    let bytes = format!("{}b", rounded.get());
    let command = Command::writes("lvcreate", limits.make).stdin(Arc::clone(&lock.file()));
    // The tag comes with the volume, in one change of LVM's metadata, and before anything is wiped.
    let mut command = command.args(["--yes", "--addtag", NEW, "--name", id.lv().as_str()]);
    command = match pool {
        // Where nothing was written, a thin volume reads as zeroes.
        Some(pool) => command.args(["--virtualsize", &bytes, "--thinpool", pool.as_str()]),
        None => command.args(["--size", &bytes, "--wipesignatures", "y", "--zero", "y"]),
    };
    let command = command
        .args(&policy.lvcreate_options)
        .operand(id.vg().as_str());
    run(host, &command, id.vg()).with_context(|| format!("creating {id} with {size}"))
}

/// Makes a volume at least `size` large; one that already is stays as it is.
pub fn extend(host: &Host, limits: &Limits, volume: &Volume, size: Bytes) -> Result<()> {
    if volume.size >= size {
        return Ok(());
    }
    let Some(rounded) = size.round_up(volume.extent) else {
        bail!("{size} is more than LVM can count");
    };
    let command = Command::writes("lvextend", limits.resize)
        .args(["--size".to_owned(), format!("{}b", rounded.get())])
        .operand(volume.id.to_string());
    run(host, &command, volume.id.vg()).with_context(|| {
        format!(
            "growing {} from {} to {rounded} ({} free in {})",
            volume.id,
            volume.size,
            volume.free,
            volume.id.vg()
        )
    })
}
