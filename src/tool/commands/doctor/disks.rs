//! Checks of disks: those that LVM cannot use as they are, and those that other hosts may see too.

use super::facts::{Facts, Lvm, UsedDisk};
use super::findings::Finding;
use driver::host::own_name;
use driver::lvm::{Disk, Fault};
use driver::names::Shown;

pub fn disks(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let problem = lvm.used_disks.as_ref().err();
    problem.into_iter().map(Finding::warning).collect()
}

pub fn duplicate_disks(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let found = with(lvm, Fault::Duplicate).map(|Disk { vg, path, .. }| {
        let path = path.shown();
        Finding::failed(format!(
            "{path} says that it is a disk of this group, and so does another"
        ))
        .on(vg)
        .why("until that is mended, LVM neither activates nor changes a volume of the group")
        // LVM does not know either which of them is the copy.
        .run(format!(
            "lsblk -o NAME,SIZE,SERIAL,WWN, and for the one that is the copy: \
                 vgimportclone --basevgname {vg}-2 DISK; of two paths to one disk leave one \
                 out by `filter` in lvm.conf"
        ))
    });
    found.collect()
}

pub fn short_disks(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let found = with(lvm, Fault::Short).map(|Disk { vg, path, .. }| {
        let path = path.shown();
        Finding::warning(format!("{path} is smaller than LVM's metadata says"))
            .on(vg)
            .why("volumes at its end cannot be activated, and what was there is gone")
            .run(format!(
                "pvs -o pv_name,dev_size,pv_size {path}; lvs -a -o +devices {vg}"
            ))
    });
    found.collect()
}

pub fn missing_disks(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let missing = with(lvm, Fault::Missing).map(|Disk { vg, .. }| {
        Finding::failed("a disk is missing")
            .on(vg)
            .why("volumes on it cannot be activated, unless they are RAID or mirrored")
            .run(format!(
                "pvs -o pv_name,vg_name,pv_uuid,pv_missing; lsblk; dmesg; and bring it back. If it is \
                 lost: lvs -a -o +devices {vg}; lvconvert --repair for each RAID volume; for each other \
                 one what `{} check {vg}` says, and lvremove of what is to be restored from a backup; and \
                 then vgreduce --removemissing {vg}",
                own_name()
            ))
    });
    let returned = with(lvm, Fault::Returned).map(|Disk { vg, path, .. }| {
        let path = path.shown();
        Finding::failed(format!(
            "{path} is back, and LVM still takes it for missing"
        ))
        .on(vg)
        .why("the group was changed without it")
        .run(format!("vgextend --restoremissing {vg} {path}"))
    });
    missing.chain(returned).collect()
}

fn used(lvm: &Lvm) -> impl Iterator<Item = &UsedDisk> {
    lvm.used_disks.iter().flatten()
}

fn with(lvm: &Lvm, fault: Fault) -> impl Iterator<Item = &Disk> {
    let all = used(lvm).map(|used| &used.disk);
    all.filter(move |disk| disk.fault == Some(fault))
}

/// Disks whose free space LVM counts, and does not use.
pub fn unused_disks(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let well = used(lvm).map(|used| &used.disk);
    let well = well.filter(|disk| disk.fault.is_none() && !disk.is_allocatable);
    let found = well.map(|Disk { vg, path, .. }| {
        let path = path.shown();
        Finding::warning(format!(
            "{path} is not allocatable, so no volume is made or extended on it"
        ))
        .on(vg)
        .why("what is free on it counts as free in the group, and cannot be had")
        .run(format!("pvchange --allocatable y {path}"))
    });
    found.collect()
}

/// Groups that nothing keeps another host from using at the same time.
pub fn shared_disks(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let is_open = |disk: &Disk| disk.is_open && disk.fault != Some(Fault::Duplicate);
    let open = used(lvm).filter(|used| is_open(&used.disk));
    let found = open.filter_map(|UsedDisk { disk, shared_kind }| {
        let (vg, path, kind) = (&disk.vg, disk.path.shown(), (*shared_kind)?);
        let finding = Finding::warning(format!(
            "{vg} is on {path}, {kind} disk that other hosts may see, and LVM does not keep them \
             from using the group"
        ));
        let finding = finding.why("two hosts that mount one volume destroy its filesystem");
        Some(finding.on(vg).run(format!(
            "vgchange --systemid ID {vg} for one host (lvmsystemid(7)), or share it by \
             lvmlockd, as in docs/shared-groups.md"
        )))
    });
    found.collect()
}
