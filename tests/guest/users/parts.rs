//! Filesystems of which a part is on another device, and their copies: kernel and tools find the parts by
//! UUIDs, which the copies have too.

use crate::prelude::*;

const BOTH: [&str; 2] = ["one", "two"];

/// A btrfs on two volumes of the group, with this page in it, and nothing mounted.
pub fn btrfs_on_two(group: &Group, page: &str) -> [Volume; 2] {
    let volumes = BOTH.map(|lv| group.linear(lv, "128m").fs("btrfs"));
    let devices = volumes.each_ref().map(Volume::device);
    run("mkfs.btrfs", &["-q", &devices[0], &devices[1]]);
    by_hand(&devices[0], page);
    volumes
}

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
fn disks_of_a_btrfs_and_of_its_snapshot_are_not_mounted_together() {
    let group = Group::new("mixed");
    let node = Node::new(Mode::MountOnly);
    let volumes = btrfs_on_two(&group, "original");
    let copies = [
        snapshot(&group, "one", "of-one").fs("btrfs"),
        group.linear("of-two", "128m").fs("btrfs"),
    ];
    volumes[1].copy_to(&copies[1]);
    for volume in volumes.iter().chain(&copies) {
        for volume in [volume.clone(), volume.clone().read_only()] {
            node.refuses_mount(&volume, &["mixed/of-", "could take a copy for a disk"]);
        }
    }
    node.prints(&["check", "mixed/one"], "could take a copy", 1);
    let refused = node.refuses_mount(&volumes[0], &[]);
    let removes = refused.command("lvremove").unwrap();
    agreeing(&format!("{removes} mixed/of-one"));
    // One copy is enough.
    let words = ["The same UUIDs are on mixed/", "mixed/of-two"];
    let refused = volumes
        .each_ref()
        .map(|volume| node.refuses_mount(volume, &words));
    let deactivates = refused[0].command("lvchange -an").unwrap();
    sh(&format!("{deactivates} mixed/of-two"));
    bash(refused[0].command("btrfs device scan ").unwrap());
    for volume in &volumes {
        // Not `up`: btrfs is shown with the first of its disks.
        node.mount("pod", volume).is_success();
        let page = node.pod_dir("pod", volume).join("page");
        assert_eq!(read(&page), "original");
        node.down("pod", volume);
    }
}

#[test]
fn a_disk_of_a_copy_that_the_kernel_takes_is_noticed() {
    let group = Group::new("taken");
    // After the driver's look, a snapshot of one disk is what the kernel knows.
    let body = "lvcreate -qq -y -s -n late -L 32m taken/two >&2\nudevadm settle\n\
        btrfs device scan --forget >&2\nbtrfs device scan /dev/mapper/taken-late >&2\nexec $REAL \"$@\"";
    let (_, node) = Tools::new().put("mount", body).node();
    let [one, _] = btrfs_on_two(&group, "original");
    let before = mounts();
    let reply = node.mount("pod", &one);
    reply.is_failure(&["taken/one is not what is mounted at", "a disk of a copy"]);
    assert_eq!(mounts(), before);
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

/// An ext4 on `data` whose journal is on this device.
fn ext4_with_journal(group: &Group, journal: &str) -> Volume {
    let volume = group.linear("data", "64m");
    bash(&format!(
        "mke2fs -q -O journal_dev -b 4096 {journal}
        mke2fs -q -t ext4 -b 4096 -J device={journal} {}",
        volume.device()
    ));
    volume
}

/// Leaves a log with this page to be replayed, as a power cut does.
fn cut_power_after(group: &Group, page: &str) {
    let [data, journal] = ["data", "journal"].map(|lv| device(&group.name, lv));
    bash(&format!(
        "copy() {{ dd if=$1 of=$2 bs=1M conv=fsync status=none; }}
        mount {data} /mnt; printf {page} > /mnt/page; sync /mnt/page
        copy {data} /run/data.now; copy {journal} /run/journal.now; umount /mnt
        copy /run/data.now {data}; copy /run/journal.now {journal}"
    ));
}

#[test]
fn a_snapshot_of_an_ext_takes_no_log_from_the_journal_of_its_origin() {
    let group = Group::new("logged");
    let node = Node::new(Mode::MountOnly);
    let journal = group.linear("journal", "8m").device();
    let volume = ext4_with_journal(&group, &journal);
    node.write("pod", &volume, "original");
    cut_power_after(&group, "synced");
    let copy = snapshot(&group, "data", "copy");
    for copy in [copy.clone(), copy.read_only()] {
        node.refuses_mount(&copy, &["journal on another device", "logged/data"]);
    }
    // The origin gets what is its own, also beside its snapshot.
    node.finds(&volume, "synced");
    group.lv("lvremove", &[], "copy");

    // Which of two copies has written the log, nobody knows; nor which of two journals has it.
    let copied = group.linear("copied", "64m");
    volume.copy_to(&copied);
    for (volume, other) in [(&volume, "logged/copied"), (&copied, "logged/data")] {
        node.refuses_mount(volume, &["journal on another device", other]);
    }
    group.lv("lvremove", &[], "copied");
    snapshot(&group, "journal", "old-journal");
    node.refuses_mount(&volume, &["logged/journal", "logged/old-journal"]);
    group.lv("lvremove", &[], "old-journal");
    node.finds(&volume, "synced");
}

#[test]
fn a_journal_on_a_device_that_is_on_another_is_one() {
    let group = Group::new("layered");
    let below = looped("/run/layered.journal".as_ref(), 8 << 20);
    let table = format!("0 16384 linear {below} 0");
    run("dmsetup", &["create", "layer", "--table", &table]);
    let volume = ext4_with_journal(&group, "/dev/mapper/layer");
    // udev has read it before, and what was written from above is not in the kernel's cache of it.
    run("sync", &[]);
    run("blockdev", &["--flushbufs", &below]);
    let seen = sh("blkid --cache-file /dev/null --match-token TYPE=jbd --output device");
    assert!(seen.contains("/layer") && seen.contains(&below), "{seen}");
    let node = Node::new(Mode::MountOnly);
    node.write("pod", &volume, "kept");
    node.finds(&volume, "kept");
    run("dmsetup", &["remove", "--retry", "layer"]);
    run("losetup", &["--detach", &below]);
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
