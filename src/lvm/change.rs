//! lvchange(8), lvcreate(8), lvextend(8).

use std::num::NonZeroU64;
use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};

use super::record::{CREATING, Tags};
use super::report::Volume;
use super::wait::explain;
use super::words::words;
use crate::config::{Limits, VolumeGroup};
use crate::host::{Command, Host, Lock, ToolError};
use crate::names::{LvId, LvName, VgName};
use crate::size::Bytes;

fn run(host: &Host, command: &Command, vg: &VgName) -> Result<()> {
    let done = host.run(&command.clone().words(words));
    done.map(drop)
        .map_err(|error| explain(host, Some(vg), error))
}

/// Activates a volume on this host, also one that is marked to be left out at boot, as thin
/// snapshots are.
///
/// # Errors
/// LVM's reason, e.g. a missing disk.
pub fn activate(host: &Host, limits: &Limits, id: &LvId) -> Result<()> {
    let command = Command::writes("lvchange", limits.activate)
        .args(["--activate", "y", "--ignoreactivationskip"])
        .operand(id.to_string());
    run(host, &command, id.vg()).with_context(|| format!("activating {id}"))
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
    // LVM takes no odd bytes, and rounds up to whole extents in any case.
    const SECTOR: NonZeroU64 = NonZeroU64::new(512).unwrap();
    let Some(rounded) = size.round_up(SECTOR) else {
        bail!("{size} is more than LVM can count");
    };
    let bytes = format!("{}b", rounded.get());
    let command = Command::writes("lvcreate", limits.make).stdin(Arc::clone(&lock.file()));
    // The tag comes with the volume, in one change of LVM's metadata, and before anything is wiped.
    let mut command = command.args(["--yes", "--addtag", CREATING, "--name", id.lv().as_str()]);
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

/// Whether a volume that could not be activated, for this reason, has never come to be, because
/// lvcreate was killed. No other command makes up for that:
/// - a thin volume that is in LVM's metadata, but not in the pool;
/// - a RAID volume whose own metadata was not cleared. LVM has never activated it.
///
/// The reason alone proves little: a killed `lvchange --resync` leaves a RAID volume just so. That
/// the record says "creating" and nothing else tells that nobody has used it yet.
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
    // lvcreate marks a RAID volume so until its parts are ready.
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
        bail!(
            "{id} was being made a moment ago, and is in use now; it is left as it is. If this \
             comes again, see `lvs -a -o +lv_tags {id}`"
        );
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
    use super::super::report::Report;
    use super::*;

    /// A volume as LVM shows it.
    fn volume(layout: &str, pool: &str, more: &[(&str, &str)]) -> Volume {
        let mut row = vec![
            ("vg_name", "vg"),
            ("lv_name", "lv"),
            ("lv_uuid", "a-b"),
            ("lv_size", "4194304"),
            ("lv_time", "1"),
            ("lv_tags", CREATING),
            ("lv_active", ""),
            ("lv_skip_activation", "skip activation"),
            ("lv_permissions", "writeable"),
            ("lv_health_status", ""),
            ("lv_device_open", ""),
            ("lv_layout", layout),
            ("lv_role", "public"),
            ("pool_lv", pool),
            ("data_percent", ""),
            ("metadata_percent", ""),
            ("vg_extent_size", "4194304"),
            ("vg_free", "0"),
        ];
        for (field, value) in more {
            row.retain(|(other, _)| other != field);
            row.push((field, value));
        }
        let row: std::collections::BTreeMap<_, _> = row.into_iter().collect();
        let json = serde_json::json!({ "report": [{ "lv": [row] }] }).to_string();
        let report = Report::parse(json.as_bytes()).unwrap();
        report.volumes().unwrap().remove(0)
    }

    fn failed(stderr: &str) -> Error {
        Error::from(ToolError::Failed {
            line: "lvchange".to_owned(),
            code: 5,
            stderr: stderr.to_owned(),
        })
    }

    #[test]
    fn only_a_volume_that_nobody_can_have_used_counts_as_unborn() {
        let thin = failed("device-mapper: reload ioctl on  (254:5) failed: No data available");
        let raid = failed("Cannot activate LV vg/lv with visible SubLVs.");
        for (layout, pool, error) in [("thin,sparse", "pool", &thin), ("raid,raid1", "", &raid)] {
            assert!(is_unborn(&volume(layout, pool, &[]), error), "{layout}");
            for used in [
                ("lv_tags", "flexvolume.created"),
                ("lv_tags", "flexvolume.creating,flexvolume.fs=ext4:u"),
                ("lv_tags", "flexvolume.creating,flexvolume.making=ext4"),
                ("lv_tags", ""),
                ("lv_active", "active"),
                ("lv_device_open", "open"),
                ("lv_layout", "linear"),
            ] {
                assert!(
                    !is_unborn(&volume(layout, pool, &[used]), error),
                    "{used:?}"
                );
            }
            let other = failed("Cannot process volume group vg");
            assert!(!is_unborn(&volume(layout, pool, &[]), &other), "{layout}");
        }
        let ready = volume("raid,raid1", "", &[("lv_skip_activation", "")]);
        assert!(!is_unborn(&ready, &raid));
    }
}
