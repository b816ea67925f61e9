//! Runs the commands of LVM that change volumes: lvchange(8), lvcreate(8), lvextend(8).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Error, Result};

use super::find::is_set_for;
use super::mapped::Mapped;
use super::record::{NEW, Tags};
use super::space::{disks_of, usable};
use super::suspended::resume_if_failed;
use super::volume::{Target, Volume};
use super::wait::find_cause;
use crate::failed_step::{FailedStep, has_own_words};
use crate::host::{Command, DeviceNumber, Host, Lock, Writing};
use crate::names::{Bytes, LvId, LvName, VgName};

/// With these settings, LVM prints its messages on standard error, in plain text, and makes the change, even if
/// lvm.conf(5) says otherwise. With `global/test=1`, LVM would report success and change nothing: a filesystem would
/// have no record.
///
/// The text has no space, since a script in the place of a tool may split its arguments at spaces.
const CONFIG: &str = "log{report_command_log=0}global{test=0}";

fn command(tool: &'static str, limit: Duration) -> Command {
    Command::writes(tool, limit).unseen(["--config", CONFIG])
}

fn run(host: &Host, command: &Command, vg: &VgName) -> Result<()> {
    find_cause(host, Some(vg), host.run(command).map(drop))
}

/// Changes the volume of this name if it has this UUID. LVM compares both under its own lock, so another volume that
/// got the name meanwhile is not changed. LVM reports success then, too. So a caller that needs the change looks again.
/// `more`: further conditions; empty, or begins with ` && `. Source: lvmreport(7), "Selection".
fn lvchange(
    host: &Host,
    (id, uuid): Target,
    more: &str,
    options: &[&str],
    lock: Option<&Lock>,
    (step, doing): (FailedStep, &str),
) -> Result<()> {
    let selected = format!("lv_uuid=\"{uuid}\"{more}");
    let mut command = command("lvchange", host.limits.activate)
        .unseen(["--select", &selected])
        .args(options);
    if let Some(lock) = lock {
        command = command.stdin(lock.file());
    }
    run(host, &command.operand(id.to_string()), id.vg())
        .map_err(|error| step.of(host, error, format!("{doing} {id}")))
}

/// These options also activate a volume that is marked to stay inactive at boot, as thin snapshots are. With a
/// snapshot, LVM activates the snapshot's origin, too, and asks before it does; `--yes` is the answer.
const ACTIVATE: [&str; 4] = ["--activate", "y", "--ignoreactivationskip", "--yes"];

const ACTIVATING: (FailedStep, &str) = (FailedStep::Activation, "activating");

/// Activates a volume on this host.
pub fn activate(host: &Host, target: Target, lock: &Lock) -> Result<()> {
    lvchange(host, target, "", &ACTIVATE, Some(lock), ACTIVATING)
}

/// Activates a volume if it still is as an earlier list of LVM says (`volume`). Under its own lock, LVM compares tags,
/// layout, role and health, and does nothing if one of them has changed. If the tags cannot be compared, this function
/// does nothing. Neither is an error, so the caller asks the kernel whether the volume is active.
pub fn activate_as_listed(host: &Host, volume: &Volume, lock: &Lock) -> Result<()> {
    /// The most characters of tags that are compared. Metadata that was written by hand may have tags of any length.
    const MOST: usize = 4096;
    // Source: lvm(8), "TAGS".
    let is_of_tag = |c: char| c.is_ascii_alphanumeric() || "_+.-/=!:&#".contains(c);
    let tags: Vec<&str> = volume.tags.split(',').collect();
    if volume.tags.len() > MOST || !tags.iter().all(|tag| tag.chars().all(is_of_tag)) {
        return Ok(());
    }
    let (layout, role) = (&volume.layout, &volume.role);
    let same = format!(
        " && lv_tags=[\"{}\"] && lv_layout=[\"{layout}\"] && lv_role=[\"{role}\"] && lv_health_status=\"{}\"",
        tags.join("\" && \""),
        volume.health
    );
    let target = volume.target();
    lvchange(host, target, &same, &ACTIVATE, Some(lock), ACTIVATING)
}

/// Deactivates a volume. LVM refuses while the volume is open.
pub fn deactivate(host: &Host, target: Target, lock: &Lock) -> Result<()> {
    let options = ["--activate", "n"];
    let doing = (FailedStep::Deactivation, "deactivating");
    lvchange(host, target, "", &options, Some(lock), doing)
}

/// Makes the kernel use the table that LVM's metadata describes, and resumes the volume. `device`: the volume's device.
pub fn refresh(host: &Host, target: Target, device: DeviceNumber, lock: &Lock) -> Result<()> {
    let doing = (FailedStep::Growth, "refreshing");
    let refreshed = lvchange(host, target, "", &["--refresh"], Some(lock), doing);
    resume_if_failed(host, target.0.vg(), device, refreshed)
}

pub fn retag(host: &Host, target: Target, tags: &Tags, lock: Option<&Lock>) -> Result<()> {
    let remove = tags.remove.iter().flat_map(|tag| ["--deltag", tag]);
    let add = tags.add.iter().flat_map(|tag| ["--addtag", tag]);
    let options: Vec<&str> = remove.chain(add).collect();
    if options.is_empty() {
        return Ok(());
    }
    let doing = (FailedStep::Tagging, "tagging");
    lvchange(host, target, "", &options, lock, doing)
}

impl Writing<'_> {
    /// Changes a volume's tags.
    pub fn retag(&self, target: Target, tags: &Tags, lock: Option<&Lock>) -> Result<()> {
        retag(self, target, tags, lock)
    }
}

/// Creates a volume of `size`, in `pool` if one is given. The volume gets the tag [`NEW`]. Without a pool, lvcreate
/// wipes signatures that a removed volume left on the same extents. That is safe only now, since nobody can have used
/// the new volume.
///
/// `options`: further options for lvcreate. `disks`: the disks that the volume may be on; if empty, any disk.
pub fn create(
    host: &Host,
    id: &LvId,
    (size, disks): (Bytes, &[PathBuf]),
    pool: Option<&LvName>,
    options: &[String],
    lock: &Lock,
) -> Result<()> {
    let bytes = format!("{}b", size.get());
    // One change of LVM's metadata creates the volume with its tag, before anything is wiped.
    let command = command("lvcreate", host.limits.make)
        .stdin(lock.file())
        .args(["--yes", "--addtag", NEW, "--name", id.lv().as_str()])
        .args(match pool {
            // A thin volume reads as zeros where nothing was written, so lvcreate need not zero or wipe it.
            Some(pool) => vec!["--virtualsize", &bytes, "--thinpool", pool.as_str()],
            None => vec!["--size", &bytes, "--wipesignatures", "y", "--zero", "y"],
        })
        .args(options)
        .operand(id.vg().as_str());
    let command = disks.iter().fold(command, Command::operand);
    let device = pool.and_then(|pool| device_of_pool(host, id, pool));
    let mut created = run(host, &command, id.vg());
    if let Some(device) = device {
        created = resume_if_failed(host, id.vg(), device, created);
    }
    created
        .map_err(|error| FailedStep::Creation.of(host, error, format!("creating {id} with {size}")))
}

/// The device below all volumes of `pool`, which is in the group of `id`. `None`: it is suspended, or does not exist.
/// Source: lvm2 `lib/activate/dev_manager.c`, `lv_layer`.
fn device_of_pool(host: &Host, id: &LvId, pool: &LvName) -> Option<DeviceNumber> {
    let pool = LvId::new(id.vg().clone(), pool.clone());
    let path = format!("/dev/mapper/{}-tpool", pool.dm_name());
    let number = host.kernel.device_number(Path::new(&path)).ok()??;
    let is_suspended = Mapped::of(number).suspended(host.kernel).is_some();
    (!is_suspended).then_some(number)
}

/// Extends a volume. `device`: the volume's device, which is not suspended before. `disks`: the disks on which the
/// volume may take space; if empty, any disk.
pub fn extend(
    host: &Host,
    volume: &Volume,
    device: DeviceNumber,
    (size, disks): (Bytes, &[PathBuf]),
    lock: &Lock,
) -> Result<()> {
    let (id, vg) = (&volume.id, volume.id.vg());
    let command = command("lvextend", host.limits.resize)
        .stdin(lock.file())
        .args(["--size".to_owned(), format!("{}b", size.get())])
        .operand(id.to_string());
    let command = disks.iter().fold(command, Command::operand);
    let extended = resume_if_failed(host, vg, device, run(host, &command, vg));
    extended.map_err(|error| not_extended(host, volume, size, error))
}

/// The error of a failed lvextend, with the free space and the reason that LVM's words may not say.
fn not_extended(host: &Host, volume: &Volume, size: Bytes, error: Error) -> Error {
    let (id, vg) = (&volume.id, volume.id.vg());
    let is_moved = is_set_for(host, id, "lv_allocation_locked");
    // `vg_free` also counts space that LVM may not allocate, so the disks are asked. If LVM has just hung, it is
    // not asked again.
    let disks = is_moved.as_ref().ok().and_then(|_| disks_of(host, vg).ok());
    let free = disks.map_or(volume.group.free, |disks| usable(&disks));
    let now = volume.device_size();
    let advice = if !has_own_words(&error) {
        String::new()
    } else if volume.has_role("thickorigin") {
        format!(
            ": it has a snapshot, and LVM does not grow such a volume while it is in use; find the \
                 snapshot with `lvs -o lv_name,origin {vg}`, and if nobody needs it, remove it with `lvremove`"
        )
    } else if is_moved.unwrap_or(false) {
        format!(
            ": pvmove is moving it, and LVM does not grow such a volume; wait until that ends (`lvs -a -o \
                 lv_name,move_pv,copy_percent {vg}`), or end it with `pvmove --abort`"
        )
    } else if volume.spread.images > 1 {
        format!(
            ": it is spread over {} disks, and LVM takes an equal part of the room from each; see how much each disk \
                 has (`vgs -o pv_name,pv_free {vg}`)",
            volume.spread.images
        )
    } else {
        String::new()
    };
    let doing = format!("growing {id} from {now} to {size} ({free} free in {vg}){advice}");
    FailedStep::Growth.of(host, error, doing)
}
