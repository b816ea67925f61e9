//! lvchange(8), lvcreate(8), lvextend(8).

use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};

use super::record::{CREATING, Tags};
use super::report::Volume;
use super::wait::explain;
use crate::config::{Limits, VolumeGroup};
use crate::host::{Command, Host, Lock, ToolError};
use crate::names::{LvId, LvName, VgName};
use crate::size::Bytes;

/// Runs a changing LVM command.
fn run(host: &Host, command: &Command, vg: &VgName) -> Result<()> {
    let done = host.run(command);
    done.map(drop)
        .map_err(|error| explain(host, Some(vg), error))
}

/// Activates a volume on this host, also one that is marked to be left out at boot, as thin
/// snapshots are.
///
/// An LVM command that was killed may have activated parts of a RAID volume. LVM does not go on
/// from there, so they are deactivated first; it refuses that for what is in use.
///
/// # Errors
/// LVM's reason, e.g. a missing disk.
pub fn activate(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let mut parts = Vec::new();
    loop {
        let command = Command::writes("lvchange", limits.activate)
            .args(["--activate", "y", "--ignoreactivationskip"])
            .operand(id.to_string());
        let Err(error) = run(host, &command, id.vg()) else {
            return Ok(());
        };
        let activating = || format!("activating {id}");
        let part = active_part(id, &error).filter(|part| !parts.contains(part));
        let Some(part) = part else {
            return Err(error).with_context(activating);
        };
        let command = Command::writes("lvchange", limits.activate)
            .args(["--activate", "n"])
            .operand(part.as_str());
        run(host, &command, id.vg())
            .with_context(|| format!("deactivating {part}, which a killed command left active"))
            .with_context(activating)?;
        parts.push(part);
    }
}

/// The part of a RAID volume that is active and keeps LVM from activating the volume: "Activation
/// of logical volume vg/lv is prohibited while logical volume `vg/lv_rmeta_0` is active."
fn active_part(id: &LvId, error: &Error) -> Option<String> {
    let Some(ToolError::Failed { stderr, .. }) = error.downcast_ref() else {
        return None;
    };
    let (_, rest) = stderr.split_once("is prohibited while logical volume ")?;
    let part = rest.split(' ').next()?;
    let kind = part.strip_prefix(&format!("{id}_"))?;
    let number = ["rmeta_", "rimage_"]
        .iter()
        .find_map(|kinds| kind.strip_prefix(kinds))?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| part.to_owned())
}

/// Deactivates a volume. LVM refuses while it is open.
///
/// # Errors
/// LVM's reason.
pub fn deactivate(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let command = Command::writes("lvchange", limits.activate)
        .args(["--activate", "n"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("deactivating {id}"))
}

/// Gives the kernel the table that LVM's metadata says, and resumes the volume.
///
/// # Errors
/// LVM's reason.
pub fn refresh(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let command = Command::writes("lvchange", limits.activate)
        .args(["--refresh"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("refreshing {id}"))
}

/// Changes the tags of a volume.
///
/// # Errors
/// LVM's, e.g. when the group cannot be written because a disk is missing.
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
/// with the tag [`CREATING`].
///
/// # Errors
/// LVM's, e.g. no space.
pub fn create(
    host: &Host,
    limits: &Limits,
    id: &LvId,
    size: Bytes,
    pool: Option<&LvName>,
    policy: &VolumeGroup,
    lock: &Lock,
) -> Result<()> {
    let bytes = format!("{}b", size.get());
    let command = Command::writes("lvcreate", limits.make).stdin(Arc::clone(&lock.file()));
    // The tag comes with the volume, in one change of LVM's metadata, and before anything is wiped.
    let mut command = command.args(["--yes", "--addtag", CREATING, "--name", id.lv().as_str()]);
    command = match pool {
        // A thin volume reads as zeroes until it is written: nothing can be left in it.
        Some(pool) => command.args(["--virtualsize", &bytes, "--thinpool", pool.as_str()]),
        None => command.args(["--size", &bytes, "--wipesignatures", "y", "--zero", "y"]),
    };
    let command = command
        .args(&policy.lvcreate_options)
        .operand(id.vg().as_str());
    run(host, &command, id.vg()).with_context(|| format!("creating {id} with {size}"))
}

/// Whether a volume that could not be activated, for this reason, has never come to be, because
/// lvcreate was killed. No other command makes up for that, and nothing can be on such a volume:
/// - a thin volume that is in LVM's metadata, but not in the pool;
/// - a RAID volume whose own metadata was not cleared. LVM has never activated it.
#[must_use]
pub fn is_unborn(volume: &Volume, error: &Error) -> bool {
    let Some(ToolError::Failed { stderr, .. }) = error.downcast_ref() else {
        return false;
    };
    let words = if volume.layout.contains("raid") {
        // As LVM 2.03.16 says it. With other words, the volume waits for an operator's lvremove.
        "with visible SubLVs"
    } else {
        // ENODATA. Source: Linux drivers/md/dm-thin-metadata.c, dm_pool_open_thin_device.
        "No data available"
    };
    stderr.contains(words) && is_never_used(volume)
}

/// Whether the driver began to make this volume, and nothing was ever done with it.
fn is_never_used(volume: &Volume) -> bool {
    let is_thin = volume.layout.contains("thin") && volume.pool.is_some();
    // lvcreate marks a RAID volume so until its parts are ready, and no other command does both.
    let is_raid = volume.layout.contains("raid") && volume.skip == "skip activation";
    let has_content = volume.record.content_tags().next().is_some();
    let is_idle = !volume.active && !volume.open;
    (is_thin || is_raid) && volume.record.creating && !has_content && is_idle
}

/// Removes a volume that has never come to be, so that it can be made again.
///
/// # Errors
/// When it is anything else, or LVM's reason.
pub fn remove_unborn(host: &Host, limits: &Limits, volume: &Volume, lock: &Lock) -> Result<()> {
    let id = &volume.id;
    if !is_never_used(volume) {
        bail!("{id} is not what a killed lvcreate has left");
    }
    let command = Command::writes("lvremove", limits.make)
        .stdin(Arc::clone(&lock.file()))
        .args(["--yes"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("removing the unfinished {id}"))
}

/// Makes a volume at least `size` large; one that already is stays as it is.
///
/// # Errors
/// When there is no space, or LVM's reason.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_of_the_volume_itself_is_deactivated_for_it() {
        let id = LvId::parse("vg/lv").unwrap();
        let cases = [
            ("vg/lv_rmeta_0", Some("vg/lv_rmeta_0")),
            ("vg/lv_rimage_12", Some("vg/lv_rimage_12")),
            ("vg/lv_rimage_", None),
            ("vg/lv_rimage_0x", None),
            ("vg/lv_tmeta", None),
            ("vg/lv2_rmeta_0", None),
            ("other/lv_rmeta_0", None),
        ];
        for (part, want) in cases {
            let error = Error::from(ToolError::Failed {
                line: "lvchange".to_owned(),
                code: 5,
                stderr: format!(
                    "Activation of logical volume vg/lv is prohibited while logical volume {part} \
                     is active."
                ),
            });
            assert_eq!(active_part(&id, &error).as_deref(), want, "{part}");
        }
    }
}
