//! Nobody can tell what is on a device that cannot be read, so nothing is ever written to one.

use std::ops::Range;

use crate::prelude::*;
use crate::signatures::{luks, put};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn sector(at: u64) -> Range<u64> {
    at..at + 512
}

#[test]
fn a_volume_with_one_unreadable_sector_is_not_formatted() {
    const SIZE: u64 = 640 * MIB;
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("onesector", SIZE + 8 * MIB);
    let group = Group::on("sector", &[&disk.path()]);
    let volume = group.linear("data", "640m");
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
        let volume = volume.clone().fs(fs);
        println!("{fs}");
        node.refuses_mount(&volume, &["cannot be read at byte 0 "]);
    }
    let reader = volume.clone().read_only();
    node.refuses_mount(&reader, &["cannot be read at"]);
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
        let disk = Disk::new(&format!("awhile{fs}"), (size + 8) * MIB);
        let group = Group::on(&format!("away{fs}"), &[&disk.path()]);
        let volume = group.linear("data", &format!("{size}m")).fs(fs);
        node.write("pod", &volume, "kept");
        let tag = group.tags("data");
        let before = disk.fingerprint();
        // Without the record, too, it is the reading alone that must stop mkfs.
        for recorded in [true, false] {
            if !recorded {
                group.lv("lvchange", &["--deltag", &tag], "data");
            }
            for (case, bad) in [
                ("superblock", sector(superblock)),
                ("first 16 MiB", 0..16 * MIB),
                ("whole", 0..size * MIB),
            ] {
                disk.fail(bad);
                let case = format!("{fs}, {case}, recorded: {recorded}");
                println!("{case}");
                node.refuses_mount(&volume, &["cannot be read at byte"]);
            }
            disk.heal();
        }
        assert_eq!(disk.fingerprint(), before);
        assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
        assert_eq!(group.tags("data"), tag, "adopted as what it was");
    }
}

#[test]
fn a_group_is_found_again_after_its_disk_came_back() {
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("overlooked", 64 * MIB);
    let group = Group::on("passed", &[&disk.path()]);
    let volume = group.linear("data", "32m");
    node.write("pod", &volume, "kept");
    for word in ["LVM does not know passed/data", "no volume group passed"] {
        disk.fail_wholly();
        node.mount("pod", &volume).is_failure(&[word]);
        disk.heal();
        assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
        node.down("pod", &volume);
        group.lv("lvchange", &["-an"], "data");
    }
}

/// The lines of a config by which the driver finds this tool before the real one.
fn stand_in(tool: &str, script: &str) -> String {
    Tools::new().put(tool, script).config() + "[limits]\nquery = 120"
}

#[test]
fn a_volume_that_blkid_could_not_read_once_is_not_blank() {
    const SIZE: u64 = 16 * MIB;
    let disk = Disk::new("flaky", SIZE + 8 * MIB);
    let group = Group::on("moment", &[&disk.path()]);
    let volume = group.linear("data", "16m");
    let whole = || Some(0..SIZE);
    // blkid alone meets the errors; and with the cache emptied, each time that it is run.
    let script = format!(
        "blockdev --flushbufs {}\n{}/usr/sbin/blkid \"$@\"; code=$?\n{}exit $code\n",
        volume.device(),
        disk.failing(whole()),
        disk.failing(None)
    );
    let node = Node::with_config(Mode::MountOnly, &stand_in("blkid", &script));
    // One group of blocks, so that no backup tells of it.
    let device = volume.device();
    for (tool, args) in [
        ("mkfs.ext4", &["-q", "-F", "-b", "4096"][..]),
        ("mkswap", &[]),
        ("pvcreate", &["-qq", "-y", "--config", "devices/scan_lvs=1"]),
    ] {
        run("wipefs", &["-qa", &device]);
        run(tool, &[args, &[&device]].concat());
        let before = disk.fingerprint();
        println!("{tool}");
        node.refuses_mount(&volume, &["data at byte"]);
        assert_eq!(disk.fingerprint(), before);
    }
    assert_eq!(group.tags("data"), "");
}

#[test]
fn a_filesystem_that_blkid_could_not_read_is_found_by_the_second_look() {
    const SIZE: u64 = 16 * MIB;
    let disk = Disk::new("faltering", SIZE + 8 * MIB);
    let group = Group::on("second", &[&disk.path()]);
    let volume = group.linear("data", "16m");
    // Only the first run meets the errors.
    let script = format!(
        "[ -e /run/faltered ] && exec /usr/sbin/blkid \"$@\"\n: > /run/faltered\n\
         blockdev --flushbufs {}\n{}/usr/sbin/blkid \"$@\"; code=$?\n{}exit $code\n",
        volume.device(),
        disk.failing(Some(0..SIZE)),
        disk.failing(None)
    );
    let node = Node::with_config(Mode::MountOnly, &stand_in("blkid", &script));
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
    const SIZE: u64 = 32 * MIB;
    let disk = Disk::new("between", SIZE + 8 * MIB);
    let group = Group::on("late", &[&disk.path()]);
    let volume = group.linear("data", "32m");
    // Not zero everywhere: blkid is asked.
    put(&volume.device(), MIB, b"remains");
    let whole = || Some(0..SIZE);
    let before = disk.fingerprint();

    // After blkid: the driver's own reading meets them.
    let script = format!(
        "/usr/sbin/blkid \"$@\"; code=$?\n{}exit $code\n",
        disk.failing(whole())
    );
    let node = Node::with_config(Mode::MountOnly, &stand_in("blkid", &script));
    let words = ["cannot be read at byte 0 "];
    node.refuses_mount(&volume, &words);

    // The device's table is taken away: the volume has vanished.
    disk.heal();
    let script = format!(
        "/usr/sbin/blkid \"$@\"; code=$?\ndmsetup wipe_table {}\nexit $code\n",
        volume.device()
    );
    let node = Node::with_config(Mode::MountOnly, &stand_in("blkid", &script));
    node.refuses_mount(&volume, &words);
    group.lv("lvchange", &["--refresh"], "data");

    // At mkfs itself: it fails, nothing gets to the disk, and the call can be repeated.
    disk.heal();
    let script = format!("{}exec /usr/sbin/mkfs.ext4 \"$@\"\n", disk.failing(whole()));
    let node = Node::with_config(Mode::MountOnly, &stand_in("mkfs.ext4", &script));
    let words = ["making ext4 on late/data"];
    node.mount("pod", &volume).is_failure(&words);
    assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
    assert_eq!(disk.fingerprint(), before);
    disk.heal();
    Node::new(Mode::MountOnly).up("pod", &volume);
    group.assert_recorded("data", "ext4");
}
