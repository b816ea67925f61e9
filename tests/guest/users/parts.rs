//! Filesystems with a part on another device, and copies of filesystems: the kernel and tools find both by UUIDs.

use crate::prelude::*;

const BOTH: [&str; 2] = ["one", "two"];

/// Mounts a device as a person does, and writes a page to it.
fn by_hand(device: &str, page: &str) {
    run("btrfs", &["device", "scan"]);
    sh(&format!("mount {device} /mnt"));
    write_synced("/mnt/page".as_ref(), page);
    run("umount", &["/mnt"]);
    run("btrfs", &["device", "scan"]);
}

fn forget_btrfs() {
    run("btrfs", &["device", "scan", "--forget"]);
}

fn snapshot(group: &Group, of: &str, name: &str) -> Volume {
    group.lv("lvcreate", &["-s", "-n", name, "-L", "32m"], of);
    run("udevadm", &["settle"]);
    Volume::new(group, name)
}

#[test]
fn a_btrfs_on_two_volumes_and_its_snapshot_are_mounted_by_no_name() {
    let group = Group::new("mixed");
    let node = Node::new(Mode::MountOnly);
    let volumes = BOTH.map(|lv| group.linear(lv, "128m").fs("btrfs"));
    let devices = volumes.each_ref().map(Volume::device);
    run("mkfs.btrfs", &["-q", &devices[0], &devices[1]]);
    by_hand(&devices[0], "original");
    let copy = snapshot(&group, "one", "of-one").fs("btrfs");
    for volume in volumes.iter().chain([&copy]) {
        for volume in [volume.clone(), volume.clone().read_only()] {
            node.refuses_mount(&volume, &["(btrfs) that is on several devices"]);
        }
    }
    node.prints(&["check", "mixed/one"], "on several devices", 1);
}

#[test]
fn a_btrfs_whose_newer_copy_the_kernel_remembers_comes_back() {
    let group = Group::new("stale");
    let node = Node::new(Mode::MountOnly);
    let volume = group.linear("data", "128m").fs("btrfs");
    node.write("pod", &volume, "original");
    let copy = snapshot(&group, "data", "copy");
    by_hand(&copy.device(), "newer");
    let words = ["the kernel remembers", "`btrfs device scan --forget`"];
    if !crate::users::clones::kernel_tells_btrfs_apart() {
        node.refuses_mount(&volume, &words);
        group.lv("lvremove", &[], "copy");
        node.refuses_mount(&volume, &words);
        forget_btrfs();
    }
    node.finds(&volume, "original");
}

#[test]
fn snapshots_of_an_xfs_whose_origin_is_gone_are_mounted_beside_each_other() {
    let group = Group::new("orphans");
    let node = Node::new(Mode::MountOnly);
    group.pool();
    let origin = group.thin("origin", "300m").fs("xfs");
    node.write("pod", &origin, "original");
    let copies = BOTH.map(|lv| {
        group.lv("lvcreate", &["-s", "-kn", "-n", lv], "origin");
        Volume::new(&group, lv).fs("xfs")
    });
    group.lv("lvremove", &[], "origin");
    for copy in &copies {
        group.lv("lvchange", &["-ay"], copy.lv());
        let page = node.up("pod", copy).join("page");
        assert_eq!(read(&page), "original");
        write_synced(&page, copy.lv());
    }
    for copy in &copies {
        assert_eq!(read(&node.up("second", copy).join("page")), copy.lv());
        node.down("second", copy);
        node.down("pod", copy);
    }
}

#[test]
fn a_filesystem_that_becomes_another_before_its_mount_is_not_kept() {
    for (fs, size, change) in [
        ("ext2", "32m", "e2fsck -fy $DEV; tune2fs -U random $DEV"),
        ("ext4", "32m", "e2fsck -fy $DEV; tune2fs -U random $DEV"),
        ("btrfs", "128m", "btrfstune -f -u $DEV"),
    ] {
        let group = Group::new(&format!("becomes-{fs}"));
        let volume = group.linear("data", size).fs(fs);
        Node::new(Mode::MountOnly).write("pod", &volume, "kept");
        let device = volume.device();
        let body =
            format!("DEV={device}\n{{ {change}; }} > /dev/null 2>&1 || exit 1\nexec $REAL \"$@\"");
        let (_, node) = Tools::new().put("mount", &body).node();
        let before = mounts();
        let reply = node.mount("pod", &volume);
        reply.is_failure(&["is not what is mounted at", "has become another one"]);
        assert_eq!(mounts(), before, "{fs}");
    }
}
