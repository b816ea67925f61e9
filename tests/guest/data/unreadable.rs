//! Devices that cannot be read. Nobody can tell what is on them, so nothing is ever written to them.

use std::ops::Range;

use crate::prelude::*;
use crate::signatures::luks;

fn sector(at: u64) -> Range<u64> {
    at..at + 512
}

#[test]
fn a_volume_with_one_unreadable_sector_is_not_formatted() {
    const SIZE: u64 = 640 * MIB;
    let node = Node::new(Mode::MountOnly);
    let (disk, group, volume) = Disk::with_data("sector", "ext4", 640);
    let before = disk.fingerprint();
    for (case, at) in [
        ("first sector", 0),
        ("second LUKS2 header", 4 * MIB),
        ("end of the head", 8 * MIB - 512),
        ("ext backup, blocks of 1 KiB, group 1", 8 * MIB + KIB),
        ("ext backup, blocks of 4 KiB, last group", 512 * MIB),
        ("begin of the tail", SIZE - 8 * MIB),
        ("second GPT header", SIZE - 512),
    ] {
        disk.fail(sector(at));
        let word = format!("sector/data cannot be read at byte {}", at - at % (4 * KIB));
        println!("{case}");
        node.refuses_mount(&volume, &[&word, "nothing was written"]);
    }
    disk.fail(0..SIZE);
    for fs in ["ext4", "xfs", "btrfs", ""] {
        println!("{fs}");
        node.refuses_mount(&volume.clone().fs(fs), &["cannot be read at byte 0 "]);
    }
    node.refuses_mount(&volume.clone().read_only(), &["cannot be read at"]);
    assert_eq!(group.tags("data"), "");

    disk.heal();
    assert_eq!(disk.fingerprint(), before);
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
    assert_ne!(disk.fingerprint(), before, "a fingerprint shows writes");
}

#[test]
fn a_filesystem_that_cannot_be_read_for_a_while_comes_back() {
    for (fs, size, superblock) in [("ext4", 64, KIB), ("xfs", 300, 0), ("btrfs", 128, 64 * KIB)] {
        let node = Node::new(Mode::MountOnly);
        let (disk, group, volume) = Disk::with_data(&format!("away{fs}"), fs, size);
        node.write("pod", &volume, "kept");
        let (tag, before) = (group.tags("data"), disk.fingerprint());
        // Without the record, too, it is the reading alone that must stop mkfs.
        for recorded in [true, false] {
            if !recorded {
                group.forget("data");
            }
            for bad in [sector(superblock), 0..16 * MIB, 0..size * MIB] {
                println!("{fs}, {bad:?}, recorded: {recorded}");
                disk.fail(bad);
                node.refuses_mount(&volume, &["cannot be read at byte"]);
            }
            disk.heal();
        }
        assert_eq!(disk.fingerprint(), before);
        node.finds(&volume, "kept");
        assert_eq!(group.tags("data"), tag, "adopted as what it was");
    }
}

#[test]
fn a_group_is_found_again_after_its_disk_came_back() {
    let node = Node::new(Mode::MountOnly);
    let (disk, group, volume) = Disk::with_data("passed", "ext4", 56);
    node.write("pod", &volume, "kept");
    for word in ["LVM does not know passed/data", "no volume group passed"] {
        disk.fail_wholly();
        node.mount("pod", &volume).is_failure(&[word]);
        disk.heal();
        node.finds(&volume, "kept");
        group.lv("lvchange", &["-an"], "data");
    }
}

/// A node that finds this script before the tool.
fn behind(tool: &str, script: &str) -> Node {
    let config = Tools::new().put(tool, script).config() + "[limits]\nquery = 120";
    Node::with_config(Mode::MountOnly, &config)
}

#[test]
fn a_volume_that_blkid_could_not_read_once_is_not_blank() {
    let (disk, group, volume) = Disk::with_data("moment", "ext4", 16);
    let device = volume.device();
    // blkid alone meets the errors; and with the cache emptied, each time that it is run.
    let script = format!(
        "blockdev --flushbufs {device}\n{}/usr/sbin/blkid \"$@\"; code=$?\n{}exit $code\n",
        disk.failing(Some(0..16 * MIB)),
        disk.failing(None)
    );
    let node = behind("blkid", &script);
    for make in [
        // One group of blocks, so that no backup tells of it.
        "mkfs.ext4 -q -F -b 4096",
        "mkswap",
        "pvcreate -qq -y --config devices/scan_lvs=1",
    ] {
        run("wipefs", &["-qa", &device]);
        sh(&format!("{make} {device}"));
        let before = disk.fingerprint();
        println!("{make}");
        node.refuses_mount(&volume, &["moment/data is not blank: there is "]);
        assert_eq!(disk.fingerprint(), before);
    }
    assert_eq!(group.tags("data"), "");
}

#[test]
fn a_filesystem_that_blkid_could_not_read_is_found_by_the_second_look() {
    let (disk, group, volume) = Disk::with_data("second", "ext4", 16);
    // Only the first run meets the errors.
    let script = format!(
        "[ -e /run/faltered ] && exec /usr/sbin/blkid \"$@\"\n: > /run/faltered\n\
         blockdev --flushbufs {}\n{}/usr/sbin/blkid \"$@\"; code=$?\n{}exit $code\n",
        volume.device(),
        disk.failing(Some(0..16 * MIB)),
        disk.failing(None)
    );
    let node = behind("blkid", &script);
    // blkid alone knows this mark.
    luks(&volume.device(), 2, 16 * KIB);
    // udev has looked at it, and puts nothing back into the cache.
    run("udevadm", &["settle"]);
    let before = disk.fingerprint();
    node.refuses_mount(&volume, &["LUKS2 header"]);
    assert_eq!(disk.fingerprint(), before);
    assert_eq!(group.tags("data"), "");
}

#[test]
fn errors_that_begin_between_blkid_and_mkfs_stop_the_call() {
    let (disk, group, volume) = Disk::with_data("late", "ext4", 32);
    let fails = disk.failing(Some(0..32 * MIB));
    // Not zero everywhere, and allowed: blkid is asked.
    put(&volume.device(), MIB, b"remains");
    let allow = ["allow-format", "late/data", "--yes"];
    Node::new(Mode::MountOnly).prints(&allow, "The next mount", 0);
    let before = disk.fingerprint();
    // After blkid the driver's own reading meets them; or the device's table is taken away: the volume has vanished.
    let vanishes = format!("dmsetup wipe_table {}\n", volume.device());
    for happens in [&fails, &vanishes] {
        disk.heal();
        let script = format!("/usr/sbin/blkid \"$@\"; code=$?\n{happens}exit $code\n");
        behind("blkid", &script).refuses_mount(&volume, &["cannot be read at byte 0 "]);
    }
    group.lv("lvchange", &["--refresh"], "data");

    // At mkfs itself: it fails, nothing gets to the disk, and the call can be repeated.
    disk.heal();
    let node = behind(
        "mkfs.ext4",
        &format!("{fails}exec /usr/sbin/mkfs.ext4 \"$@\"\n"),
    );
    node.mount("pod", &volume)
        .is_failure(&["making ext4 on late/data"]);
    assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
    assert_eq!(disk.fingerprint(), before);
    disk.heal();
    Node::new(Mode::MountOnly).up("pod", &volume);
    group.assert_recorded("data", "ext4");
}
