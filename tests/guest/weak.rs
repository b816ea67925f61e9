//! Volumes that are not well: disks missing, filesystems with errors, a log to replay, suspended.

use std::path::Path;

use crate::marks::put;
use crate::prelude::*;

const MIB: u64 = 1 << 20;

#[test]
fn without_a_disk_raid_is_mounted_and_says_so_and_what_has_lost_data_is_refused() {
    let node = Node::new(Mode::MountOnly);
    let disks = [Disk::new("stays", 200 * MIB), Disk::new("goes", 200 * MIB)];
    let paths = disks.each_ref().map(Disk::path);
    let [stays, goes] = paths.each_ref().map(String::as_str);
    let group = Group::on("degraded", &[stays, goes]);
    let linear = |lv: &str, disk: &str| {
        let make = ["-qq", "-y", "-L", "32m", "-n", lv, "degraded", disk];
        run("lvcreate", &make);
    };
    linear("here", stays);
    linear("lost", goes);
    linear("active", goes);
    let raid = [
        "-qq", "-y", "--type", "raid1", "-m1", "--nosync", "-L", "32m", "-n", "mirror",
    ];
    run("lvcreate", &[&raid[..], &["degraded"]].concat());
    let volumes = ["here", "lost", "active", "mirror"].map(|lv| Volume::new(&group, lv));
    for volume in &volumes {
        write_synced(&node.up("pod", volume).join("page"), "kept");
        node.down("pod", volume);
    }
    for lv in ["here", "lost", "mirror"] {
        group.lv("lvchange", &["-an"], lv);
    }
    disks[1].fail_wholly();

    let [here, lost, active, mirror] = &volumes;
    let dir = precreated(node.pod_dir("pod", mirror));
    let reply = node.done(&["mount", text(&dir), &mirror.json()]);
    assert!(
        reply.message.contains("degraded/mirror is mounted, but"),
        "{reply:?}"
    );
    assert!(reply.message.contains("partial"), "{reply:?}");
    assert_eq!(read(&dir.join("page")), "kept");
    write_synced(&dir.join("page"), "goes on");
    node.down("pod", mirror);

    assert_eq!(read(&node.up("pod", here).join("page")), "kept");
    writes_nothing(&node, active, "active", &["degraded/active is partial"]);
    let dir = precreated(node.pod_dir("pod", lost));
    node.call(&["mount", text(&dir), &lost.json()])
        .is_failure(&["degraded/lost is partial"]);
    assert!(!Path::new(&lost.device()).exists(), "not activated");
    lenient("vgchange", &["-qq", "-an", "degraded"]);
}

#[test]
fn a_read_only_volume_is_only_read() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("permission");
    group.linear("blank", "32m");
    group.linear("data", "32m");
    let (blank, data) = (Volume::new(&group, "blank"), Volume::new(&group, "data"));
    write_synced(&node.up("pod", &data).join("page"), "kept");
    node.down("pod", &data);
    for lv in ["blank", "data"] {
        group.lv("lvchange", &["--permission", "r"], lv);
    }
    for volume in [&blank, &data] {
        writes_nothing(
            &node,
            volume,
            "writer",
            &["lvchange --permission rw permission/"],
        );
    }
    writes_nothing(
        &node,
        &blank.read_only(),
        "reader",
        &["holds no filesystem"],
    );
    let dir = node.up("reader", &data.clone().read_only());
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("reader", &data);
    group.lv("lvchange", &["--permission", "rw"], "data");
    node.up("pod", &data);
}

#[test]
fn a_filesystem_with_errors_is_refused_with_what_its_tool_says() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size, words) in [
        ("ext4", 32, ["checking the filesystem of", "e2fsck -f"]),
        ("xfs", 300, ["mounting broken", "mount -t xfs"]),
        ("btrfs", 128, ["mounting broken", "mount -t btrfs"]),
    ] {
        let group = Group::new(&format!("broken{fs}"));
        let volume = group.linear("data", &format!("{size}m")).fs(fs);
        write_synced(&node.up("pod", &volume).join("page"), "kept");
        node.down("pod", &volume);
        let (tags, device) = (group.tags("data"), volume.device());
        match fs {
            "ext4" => {
                for request in ["clri <2>", "set_super_value state 2"] {
                    run("debugfs", &["-w", "-R", request, &device]);
                }
            }
            // The inodes at the beginning, the root's among them.
            "xfs" => put(&device, 4096, &vec![0xFF; 256 << 10]),
            // All of the trees; the superblocks stay.
            _ => put(&device, MIB, &vec![0xFF; 63 << 20]),
        }
        node.mount_fails(&volume, &words);
        assert_eq!(group.tags("data"), tags, "{fs}");
    }
}

#[test]
fn a_log_is_replayed_with_what_was_synced() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size) in [("ext4", "64m"), ("xfs", "300m"), ("btrfs", "128m")] {
        let group = Group::new(&format!("replayed{fs}"));
        group.linear("data", size);
        group.linear("copy", size);
        let volume = Volume::new(&group, "data").fs(fs);
        let copy = Volume::new(&group, "copy").fs(fs);
        write_synced(&node.up("pod", &volume).join("page"), "in the log");
        let (from, to) = (
            format!("if={}", volume.device()),
            format!("of={}", copy.device()),
        );
        run(
            "dd",
            &[&from, &to, "bs=1M", "conv=sparse,fsync", "status=none"],
        );
        node.down("pod", &volume);
        // btrfs must not see two devices of one filesystem.
        run("wipefs", &["-qa", &volume.device()]);
        if fs == "ext4" {
            let header = run("dumpe2fs", &["-h", &copy.device()]);
            assert!(header.contains("needs_recovery"), "{header}");
        }
        // Not `up`: btrfs may show its device by another of its names.
        let dir = precreated(node.pod_dir("pod", &copy));
        node.done(&["mount", text(&dir), &copy.json()]);
        assert_eq!(read(&dir.join("page")), "in the log", "{fs}");
        group.assert_recorded("copy", fs);
        node.down("pod", &copy);
    }
}

#[test]
fn a_volume_whose_device_node_is_missing_or_of_another_device_is_not_mixed_up() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("nodes");
    group.linear("mine", "32m");
    group.linear("other", "32m");
    let (mine, other) = (Volume::new(&group, "mine"), Volume::new(&group, "other"));
    for volume in [&mine, &other] {
        node.up("pod", volume);
        node.down("pod", volume);
    }
    // Its link shows another volume.
    let link = mine.device();
    run("ln", &["-sfn", &other.device(), &link]);
    let dir = precreated(node.pod_dir("pod", &mine));
    node.call(&["mount", text(&dir), &mine.json()])
        .is_failure(&["that is not the logical volume nodes/mine"]);
    // A device of its name that is another volume to device-mapper: whoever was interrupted
    // renaming one leaves that.
    group.lv("lvchange", &["-an"], "mine");
    let uuid = sh("dmsetup info -c --noheadings -o uuid nodes-other");
    let table = run("dmsetup", &["table", "nodes-other"]);
    group.lv("lvchange", &["-an"], "other");
    let create = ["create", "nodes-mine", "--uuid", &uuid, "--table", &table];
    run("dmsetup", &create);
    let words = ["is not the logical volume that LVM calls nodes/mine now"];
    writes_nothing(&node, &mine, "another's device", &words);
    run("dmsetup", &["remove", "--retry", "nodes-mine"]);
    for lv in ["mine", "other"] {
        group.lv("lvchange", &["-ay"], lv);
    }
    // A file in its place is no device.
    let right = std::fs::canonicalize(&link).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::fs::write(&link, "a file").unwrap();
    let reply = node.call(&["mount", text(&dir), &mine.json()]);
    assert_eq!(reply.status, "Failure", "{reply:?}");
    assert_eq!(read(Path::new(&link)), "a file");
    // Nothing at all: LVM may mend that when it is told to activate the volume.
    std::fs::remove_file(&link).unwrap();
    let reply = node.call(&["mount", text(&dir), &mine.json()]);
    if reply.status == "Failure" {
        assert!(reply.message.contains("vgmknodes nodes"), "{reply:?}");
        run("ln", &["-sfn", right.to_str().unwrap(), &link]);
    }
    node.up("pod", &mine);
    group.assert_recorded("mine", "ext4");
}

#[test]
fn a_filesystem_that_the_kernel_is_too_old_for_is_refused_in_these_words() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("future", 400 << 20);
    group.linear("xfs", "300m");
    let volume = Volume::new(&group, "xfs").fs("xfs");
    node.up("pod", &volume);
    node.down("pod", &volume);
    let device = volume.device();
    let on_superblock = |command| run("xfs_db", &["-x", "-c", "sb 0", "-c", command, &device]);
    let known = on_superblock("print features_incompat");
    let bits = known.strip_prefix("features_incompat = 0x").unwrap();
    let bits = u32::from_str_radix(bits, 16).unwrap() | 1 << 30;
    on_superblock(&format!("write -d features_incompat {bits:#x}"));
    let words = ["the kernel says \"XFS (dm-"];
    node.mount_fails(&volume, &words);
}
