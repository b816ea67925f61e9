//! Growth of a mounted volume, and of a volume that somebody has grown without the driver.

use crate::prelude::*;

#[test]
fn each_filesystem_grows_while_it_is_mounted() {
    for (fs, size, asked, grown) in [
        ("ext4", "32m", 62 * MIB + 1, 64 * MIB),
        ("xfs", "300m", 500 * MIB, 500 * MIB),
        ("btrfs", "128m", 257 * MIB, 260 * MIB),
    ] {
        let group = Group::new("growing");
        for (mode, thin) in [
            (Mode::Attach, false),
            (Mode::MountOnly, false),
            (Mode::MountOnly, true),
        ] {
            let (node, lv) = (Node::new(mode), if thin { "thin" } else { mode.lv() });
            let volume = if thin {
                group.pool();
                group.thin(lv, size)
            } else {
                group.linear(lv, size)
            };
            let volume = volume.fs(fs);
            let dir = node.up("pod", &volume);
            write_synced(&dir.join("page"), "kept");
            let before = filesystem_size(&dir);
            let tags = group.tags(lv);

            node.grow("pod", &volume, asked).is_success();
            assert_eq!(group.size(lv), grown, "rounded up to whole extents");
            let after = filesystem_size(&dir);
            let is_larger = after > before && after > grown - grown / 4;
            assert!(is_larger, "{before} to {after}");

            // kubelet repeats the call, and a smaller size must not shrink anything.
            for again in [asked, MIB] {
                node.grow("pod", &volume, again).is_success();
                assert_eq!((group.size(lv), filesystem_size(&dir)), (grown, after));
            }
            assert_eq!(read(&dir.join("page")), "kept");
            assert_eq!(group.tags(lv), tags);
            node.all_down(&["pod"], &volume);
        }
    }
}

#[test]
fn growth_may_name_either_directory_and_no_device() {
    let (node, group, volume) = Node::with_data(Mode::Attach, "named");
    let pod = node.up("pod", &volume);
    let global = node.global_dir(&volume);
    let (json, device) = (volume.json(), volume.device());
    let mut last = filesystem_size(&pod);
    for (mib, call) in [
        (40, ["expandfs", &json, "", text(&global)].as_slice()),
        (48, &["expandfs", &json, "", text(&pod)]),
        (56, &["expandfs", &json, &device, text(&pod)]),
        (64, &["expandvolume", &json, text(&global)]),
    ] {
        let new = (mib * MIB).to_string();
        node.does(&[call, &[&new, "0"]].concat());
        assert_eq!(group.size("data"), mib * MIB, "{call:?}");
        let now = filesystem_size(&pod);
        assert!(now > last, "{call:?}: {last} to {now}");
        last = now;
    }
}

#[test]
fn a_volume_that_was_grown_by_hand_is_grown_at_its_mount() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("byhand");
    for (fs, size) in FILESYSTEMS {
        let volume = group.linear(fs, size).fs(fs);
        let dir = node.up("pod", &volume);
        write_synced(&dir.join("page"), "kept");
        let before = filesystem_size(&dir);
        node.down("pod", &volume);
        group.lv("lvextend", &["-L", "+128m"], fs);
        let dir = node.up("pod", &volume);
        let after = filesystem_size(&dir);
        assert!(after > before + 100 * MIB, "{fs}: {before} to {after}");
        assert_eq!(read(&dir.join("page")), "kept");
    }
}

#[test]
fn a_btrfs_that_the_kernel_does_not_grow_yet_keeps_no_pod_waiting() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("seedling");
    let volume = group.linear("data", "128m").fs("btrfs");
    let dir = node.up("pod", &volume);
    let grown = node.grow("pod", &volume, 200 * MIB);
    grown.is_success();
    assert!(grown.message.contains("once it has 256 MiB"), "{grown:?}");
    assert_eq!(group.size("data"), 200 * MIB);
    node.down("pod", &volume);
    node.prints(&["check", "seedling/data"], "mount btrfs", 0);
    node.up("pod", &volume);
    node.grow("pod", &volume, 256 * MIB).is_success();
    assert!(filesystem_size(&dir) > 200 * MIB);
}

#[test]
fn a_volume_with_a_snapshot_says_what_keeps_it_from_growing() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "origin");
    node.up("pod", &volume);
    sh("lvcreate -qq -y -s -n snap -L 16m origin/data");
    let grown = node.grow("pod", &volume, 64 * MIB);
    grown.is_failure(&["it has a snapshot", "`lvs -o lv_name,origin origin`"]);
    group.lv("lvremove", &[], "snap");
    assert_eq!(node.grow("pod", &volume, 64 * MIB).status, "Success");
}

#[test]
fn a_volume_that_pvmove_moves_grows_once_that_has_ended_or_was_aborted() {
    let disks = ["moved-from", "moved-to"].map(|name| Disk::new(name, 200 << 20));
    let [from, to] = disks.each_ref().map(Disk::path);
    let group = Group::on("moved", &[&from, &to]);
    let node = Node::new(Mode::MountOnly);
    sh(&format!(
        "lvcreate -qq -y -W y -L 100m -n data moved {from}"
    ));
    let volume = Volume::new(&group, "data");
    node.up("pod", &volume);
    // pvmove looks only every 100 s whether all is copied.
    sh(&format!("pvmove -qq -b -i +100 -n data {from} {to}"));
    let reply = node.grow("pod", &volume, 120 << 20);
    reply.is_failure(&["pvmove is moving it", "`pvmove --abort`"]);
    sh("lvs -a -o lv_name,move_pv,copy_percent moved");
    sh("pvmove --abort");
    node.grow("pod", &volume, 120 << 20).is_success();
    node.down("pod", &volume);
}

#[test]
fn a_raid_that_is_reshaped_keeps_what_is_written_and_grows_when_that_has_ended() {
    let node = Node::new(Mode::MountOnly);
    let (_disks, group) = Disk::several("reshaped", 5, 200 * MIB);
    sh("lvcreate -qq -y -W y --type raid5 -i 2 -L 64m -n data reshaped");
    let state = |field: &str| sh(&format!("lvs --noheadings -o {field} reshaped/data"));
    eventually("the parity", || state("sync_percent") == "100.00");
    let volume = Volume::new(&group, "data");
    node.write("pod", &volume, "before");
    let dir = node.up("pod", &volume);
    let slowly = ["--maxrecoveryrate", "1k", "--minrecoveryrate", "1k"];
    group.lv("lvchange", &slowly, "data");
    group.lv("lvconvert", &["--stripes", "3"], "data");
    let is_reshaped = || state("raid_sync_action") == "reshape";
    assert!(is_reshaped());

    // LVM has counted the new stripe already.
    let reply = node.grow("pod", &volume, 96 * MIB);
    reply.is_failure(&["its device has 64 MiB", "being reshaped"]);
    assert!(!reply.message.contains("renamed"), "{reply:?}");
    sh(reply.command("lvs -o raid_sync_action").unwrap());
    node.grow("pod", &volume, 128 * MIB).is_failure(&["reshap"]);
    write_synced(&dir.join("page"), "meanwhile");
    node.down("pod", &volume);
    node.finds(&volume, "meanwhile");
    assert!(is_reshaped());

    let fast = ["--maxrecoveryrate", "0", "--minrecoveryrate", "0"];
    group.lv("lvchange", &fast, "data");
    eventually("the end", || state("raid_sync_action") == "idle");
    node.finds(&volume, "meanwhile");
    node.up("pod", &volume);
    node.grow("pod", &volume, 96 * MIB).is_success();
    assert!(filesystem_size(&dir) > 80 * MIB);
    node.down("pod", &volume);
}

#[test]
fn an_ext_that_the_kernel_grows_only_unmounted_grows_before_its_next_mount() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "sparse-two");
    let device = volume.device();
    sh(&format!(
        "mkfs.ext4 -q -O sparse_super2,^resize_inode {device}"
    ));
    let dir = node.up("pod", &volume);
    write_synced(&dir.join("page"), "kept");
    let before = filesystem_size(&dir);
    let grown = node.grow("pod", &volume, 64 * MIB);
    grown.is_success();
    assert!(grown.message.contains("before its next mount"), "{grown:?}");
    node.down("pod", &volume);
    let mounted = node.mount("pod", &volume);
    mounted.is_success();
    assert_eq!(mounted.message, "");
    assert!(filesystem_size(&dir) > before + 16 * MIB);
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("pod", &volume);
}
