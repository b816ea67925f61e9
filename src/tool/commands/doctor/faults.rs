//! `flexvolume-lvm doctor` on disks that LVM cannot use as they are, and on mounts whose disks have failed.

use super::findings::Checks;
use crate::commands::survey::Walk;
use driver::lvm::{self, Fault};
use driver::mount::Row;
use driver::names::Shown;
use driver::volume::Reason;

pub fn look_at(checks: &mut Checks, walk: &Walk) {
    look_at_disks(checks, walk);
    look_at_mounts(checks, walk);
    look_at_space(checks, walk);
}

fn look_at_disks(checks: &mut Checks, walk: &Walk) {
    let faulty = match lvm::faulty_disks(walk.host) {
        Ok(faulty) => faulty,
        Err(error) => {
            checks.warning("disks", format!("{error:#}"));
            return;
        }
    };
    for (vg, path, fault) in faulty {
        let path = path.shown();
        let finding = match fault {
            Fault::Duplicate => checks
                .failed(
                    "duplicate-disks",
                    format!("{path} says that it is a disk of this group, and so does another"),
                )
                .why("until that is mended, LVM neither activates nor changes a volume of the group")
                // LVM does not know either which of them is the copy.
                .run(format!(
                    "lsblk -o NAME,SIZE,SERIAL,WWN, and for the one that is the copy: \
                     vgimportclone --basevgname {vg}-2 DISK; of two paths to one disk leave one \
                     out by `filter` in lvm.conf"
                )),
            Fault::Short => checks
                .warning(
                    "short-disks",
                    format!("{path} is smaller than LVM's metadata says"),
                )
                .why("volumes at its end cannot be activated, and what was there is gone")
                .run(format!(
                    "pvs -o pv_name,dev_size,pv_size {path}; lvs -a -o +devices {vg}"
                )),
            Fault::Missing => checks
                .failed("missing-disks", "a disk is missing")
                .why("volumes on it cannot be activated, unless they are RAID or mirrored")
                .run(format!(
                    "pvs -o pv_name,vg_name,pv_uuid,pv_missing; lsblk; dmesg; and bring it back. If it is \
                     lost: lvs -a -o +devices {vg}; lvconvert --repair for each RAID volume; lvremove the \
                     others, to restore them from a backup; and then vgreduce --removemissing {vg}"
                )),
            Fault::Returned => checks
                .failed(
                    "missing-disks",
                    format!("{path} is back, and LVM still takes it for missing"),
                )
                .why("the group was changed without it")
                .run(format!("vgextend --restoremissing {vg} {path}")),
        };
        finding.on(&vg);
    }
}

fn look_at_mounts(checks: &mut Checks, walk: &Walk) {
    for id in walk.lost() {
        checks
            .failed("mounts", Reason::Unknown.of(&id))
            .on(&id)
            .why("pods have it mounted")
            .run("pvs -a");
    }
    for volume in &walk.volumes {
        let id = &volume.id;
        if let Some(failed) = walk.failed(volume) {
            let finding = checks.failed("filesystem-errors", failed.of(id)).on(id);
            finding
                .why("pods cannot rely on what they write there")
                .run("dmesg");
        }
    }
}

/// Filesystems of pods in which nothing can be written any more.
fn look_at_space(checks: &mut Checks, walk: &Walk) {
    for volume in walk
        .volumes
        .iter()
        .filter(|one| walk.is_mounted_for_pods(one))
    {
        let Some(device) = walk.device(volume) else {
            continue;
        };
        let mounts = walk.mounts(device.number);
        // A question to one that is suspended may wait.
        let first = mounts
            .first()
            .filter(|_| device.suspended(walk.host.kernel).is_none());
        let at = |row: &Row| walk.host.kernel.space(&row.mount_point, row.id).ok();
        let Some((space, row)) = first.and_then(|row| Some((at(row)?, row))) else {
            continue;
        };
        let (what, option) = if space.is_full {
            ("it is full", "-h")
        } else if space.has_no_inodes {
            ("it has no inode left for another file", "-i")
        } else {
            continue;
        };
        checks
            .warning("space", what)
            .on(&volume.id)
            .why("its pods cannot write")
            .run(format!(
                "df {option} {}, and make room, or let its claim grow",
                row.mount_point.shown()
            ));
    }
}
