//! Disks that are lost in the middle of something, or whose beginning was overwritten. LVM calls a volume partial, or
//! knows it no more, and all its data is there.

use crate::page::{about, blocks};
use crate::prelude::*;

const PAGE: &str = include_str!("../../../docs/on-call.md");

#[test]
fn a_volume_whose_snapshot_is_lost_keeps_its_data_by_what_the_page_says() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("snaplost", 2, 200 * MIB);
    let [here, away] = [0, 1].map(|number| disks[number].path());
    sh(&format!(
        "lvcreate -qq -y -W y -L 32m -n data snaplost {here}"
    ));
    let volume = Volume::new(&group, "data");
    node.write("pod", &volume, "before");
    sh(&format!(
        "lvcreate -qq -y -s -n earlier -L 16m snaplost/data {away}"
    ));
    node.write("pod", &volume, "kept");
    group.lv("lvchange", &["-an"], "data");
    disks[1].fail_wholly();
    node.refuses_mount(&volume, &["had only a snapshot, `lvremove` that"]);
    let row = about(PAGE, "partial").replace('`', "\n");
    let removes = told(&row, "lvremove ").replace("VG/SNAPSHOT", "snaplost/earlier");
    agreeing(&removes);
    node.finds(&volume, "kept");
}

/// As after `wipefs`, or after a partition table on the wrong disk. The second time, no volume is active.
#[test]
fn a_disk_whose_beginning_was_overwritten_is_known_again_by_what_the_page_says() {
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("beheaded-disk", 200 * MIB);
    let group = Group::on("beheaded", &[&disk.path()]);
    let [volume, other] = ["data", "other"].map(|lv| group.linear(lv, "32m"));
    node.write("pod", &volume, "kept");
    node.write("pod", &other, "kept");
    for (is_active, word) in [(true, "[unknown]"), (false, "[no-group]")] {
        if is_active {
            node.up("pod", &volume);
        } else {
            run("vgchange", &["-qq", "-an", "beheaded"]);
        }
        put(&disk.path(), 0, &[0; 16 << 10]);
        sh("pvscan -qq --cache");
        node.refuses_mount(&other, &[word]);
        let row = about(PAGE, word.trim_matches(['[', ']']));
        let repairs = told(&row.replace('`', "\n"), "pvck --repair ").to_owned();
        agreeing(
            &repairs
                .replace("VG", "beheaded")
                .replace("DISK", &disk.path()),
        );
        node.finds(&other, "kept");
        if is_active {
            node.down("pod", &volume);
        }
        node.finds(&volume, "kept");
    }
}

#[test]
fn a_volume_whose_pvmove_lost_its_new_disk_keeps_its_data_by_what_the_page_says() {
    let node = Node::new(Mode::MountOnly);
    // A tag that is written meanwhile notes in LVM's metadata that the disk is missing.
    for (name, is_noted) in [("movelost", false), ("movenoted", true)] {
        println!("{name}");
        let (disks, group) = Disk::several(name, 2, 200 * MIB);
        let [old, new] = [0, 1].map(|number| disks[number].path());
        for lv in ["data", "other"] {
            sh(&format!("lvcreate -qq -y -W y -L 32m -n {lv} {name} {old}"));
        }
        let volume = Volume::new(&group, "data");
        node.write("pod", &volume, "kept");
        let uuid = sh(&format!("pvs --noheadings -o pv_uuid {new}"));
        bash(&format!(
            "pvmove -qq -b -i +100 -n data {old} {new}; vgchange -qq -an {name}"
        ));
        disks[1].fail_wholly();
        sh("pvscan -qq --cache");
        if is_noted {
            group.lv("lvchange", &["--addtag", "noted"], "other");
        }
        node.refuses_mount(&volume, &["After a pvmove: docs/on-call.md", "[partial]"]);
        let spare = Disk::new(&format!("{name}-spare"), 200 * MIB);
        let (_, section) = PAGE
            .split_once("### a disk was lost during pvmove\n")
            .unwrap();
        let block = blocks(section, "sh").swap_remove(0);
        let path = spare.path();
        for line in block.lines() {
            // Such an ID may contain the other words.
            let words = [
                ("VG", name),
                ("DISK", &*path),
                ("LV", "data"),
                ("UUID", &*uuid),
            ];
            let typed = words
                .iter()
                .fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
            agreeing(&typed);
        }
        node.finds(&volume, "kept");
        // All of it is on the new disk.
        let devices = sh(&format!("lvs --noheadings -o devices {name}/data"));
        assert!(devices.contains(&path), "{devices}");
        drop(group);
    }
}

/// LVM activates no such RAID without a disk, and advises a mode that hides what is lost.
#[test]
fn a_raid_with_checksums_that_lost_a_disk_is_mounted_after_what_the_page_says() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("checksums", 2, 200 * MIB);
    sh("lvcreate -qq -y -W y --type raid1 -m1 --raidintegrity y -L 32m -n data checksums");
    let volume = Volume::new(&group, "data");
    node.write("pod", &volume, "kept");
    eventually("both images", || {
        sh("lvs --noheadings -o sync_percent checksums/data") == "100.00"
    });
    group.lv("lvchange", &["-an"], "data");
    disks[1].fail_wholly();
    sh("pvscan -qq --cache");
    let refused = node.mount("pod", &volume);
    let lvms = "Integrity must be removed before degraded or partial activation of raid";
    refused.is_failure(&["activating", lvms]);
    let (_, advice) = PAGE.split_once(lvms).unwrap();
    let advice = advice.replace('`', "\n");
    let removes = told(&advice, "lvconvert --raidintegrity n ");
    agreeing(&removes.replace("VG/LV", "checksums/data"));
    node.finds(&volume, "kept");
}
