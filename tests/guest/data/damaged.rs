//! Volumes that are not well: disks missing, filesystems with errors, a log to replay, suspended.

use std::path::Path;

use crate::prelude::*;
use crate::signatures::put;

const MIB: u64 = 1 << 20;

#[test]
fn a_read_only_volume_is_read() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "permission");
    node.write("pod", &volume, "kept");
    let disk = run("vgs", &["--noheadings", "-o", "pv_name", "permission"]);
    for (forbid, permit) in [
        (
            "lvchange -qq --permission r",
            "lvchange -qq --permission rw",
        ),
        ("blockdev --setro", "blockdev --setrw"),
    ] {
        let is_disk = forbid.starts_with("blockdev");
        let what = if is_disk { &disk } else { "permission/data" };
        sh(&format!("{forbid} {what}"));
        let dir = node.up("reader", &volume.clone().read_only());
        assert_eq!(read(&dir.join("page")), "kept");
        node.down("reader", &volume);
        sh(&format!("{permit} {what}"));
        node.up("pod", &volume);
        node.down("pod", &volume);
    }
    drop(group);
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
        node.write("pod", &volume, "kept");
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
        // Not `refuses_mount`: e2fsck notes in the superblock that it was there.
        node.mount("refused", &volume).is_failure(&words);
        assert_eq!(group.tags("data"), tags, "{fs}");
    }
}

#[test]
fn a_mounted_filesystem_that_has_failed_gets_no_more_writers() {
    for mode in BOTH_MODES {
        for (fs, size) in [("ext4", 64), ("xfs", 320), ("btrfs", 128)] {
            let (node, name) = (Node::new(mode), format!("dying{fs}"));
            let disk = Disk::new(&name, (size + 8) << 20);
            let group = Group::on(&format!("{name}-vg"), &[&disk.path()]);
            let volume = group.linear("data", &format!("{size}m")).fs(fs);
            let pod = node.up("pod", &volume);
            write_synced(&pod.join("page"), "kept");
            node.up("second", &volume);
            disk.fail(0..size << 20);
            // Written data stays in memory until it has to be on the disk, and ext meets its aborted
            // journal when somebody writes again.
            let file = std::fs::File::create(pod.join("lost"));
            assert!(file.and_then(|file| file.sync_all()).is_err());
            eventually("the kernel to notice", || {
                let _ = std::fs::write(pod.join("again"), "lost");
                let (said, _) = node.says(&["check", &group.path("data")]);
                said.contains("REFUSED")
            });
            let words = match fs {
                "xfs" => "has shut its filesystem down",
                _ => "met errors in its filesystem",
            };
            node.refuses_mount(&volume, &[words, "is mounted at", "end all pods"]);
            let reader = volume.clone().read_only();
            let read = node.mount("reader", &reader);
            match fs {
                "xfs" => read.is_failure(&[words]),
                _ => read.is_success(),
            }
            // A mount that is there already is no new pod's.
            for pod in ["pod", "second"] {
                let dir = node.pod_dir(pod, &volume);
                node.does(&["mount", text(&dir), &volume.json_for(pod)]);
            }
            if mode == Mode::Attach {
                let (dir, device) = (node.global_dir(&volume), volume.device());
                node.does(&["mountdevice", text(&dir), &device, &volume.json()]);
            }
            disk.heal();
            for pod in ["pod", "second", "reader"] {
                node.down(pod, &volume);
            }
            node.down_globally(&volume);
            assert_eq!(crate::read(&node.up("pod", &volume).join("page")), "kept");
            node.up("second", &volume);
        }
    }
}

#[test]
fn an_ext_with_errors_neither_stops_the_node_nor_is_written_on() {
    let group = Group::new("panics");
    let log = Path::new("/run/panics.log");
    let head = format!("log = {log:?}\n");
    let node = Node::with_config(Mode::MountOnly, &head);
    let lenient = format!("{head}[filesystem.ext4]\nmount_options = 'errors=continue'\n");
    let errors_of = |node: &Node, volume: &Volume| {
        let options = mount_at(&node.up("pod", volume)).unwrap().options;
        node.down("pod", volume);
        let mut all = options.split([',', ' ']);
        all.find_map(|one| one.strip_prefix("errors="))
            .map(str::to_owned)
    };
    for fs in ["ext2", "ext3", "ext4"] {
        let volume = group.linear(fs, "32m").fs(fs);
        node.write("pod", &volume, "kept");
        assert_eq!(
            errors_of(&node, &volume).as_deref(),
            Some("remount-ro"),
            "{fs}"
        );
        run("tune2fs", &["-e", "panic", &volume.device()]);
        assert_eq!(
            errors_of(&node, &volume).as_deref(),
            Some("remount-ro"),
            "{fs}"
        );
        let goes_on = volume.clone().with("mountoptions", "errors=continue");
        assert_eq!(
            errors_of(&node, &goes_on).as_deref(),
            Some("continue"),
            "{fs}"
        );
    }
    let volume = Volume::new(&group, "ext4");
    let owners = Node::with_config(Mode::MountOnly, &lenient);
    assert_eq!(errors_of(&owners, &volume).as_deref(), Some("continue"));
    let asks = volume.with("mountoptions", "errors=remount-ro");
    assert_eq!(errors_of(&owners, &asks).as_deref(), Some("remount-ro"));
    // Where the superblock says it too, the kernel does not show it.
    run("tune2fs", &["-e", "remount-ro", &asks.device()]);
    node.up("pod", &asks);
    node.up("second", &asks);
    let said = read(log);
    assert!(!said.contains("mountoptions-"), "{said}");
}

#[test]
fn a_log_is_replayed_with_what_was_synced() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size) in FILESYSTEMS {
        let group = Group::new(&format!("replayed{fs}"));
        let [volume, copy] = ["data", "copy"].map(|lv| group.linear(lv, size).fs(fs));
        write_synced(&node.up("pod", &volume).join("page"), "in the log");
        let (from, to) = (volume.device(), copy.device());
        let flags = "bs=1M conv=sparse,fsync status=none";
        sh(&format!("dd if={from} of={to} {flags}"));
        node.down("pod", &volume);
        // btrfs must not see two devices of one filesystem.
        run("wipefs", &["-qa", &volume.device()]);
        if fs == "ext4" {
            let header = run("dumpe2fs", &["-h", &copy.device()]);
            assert!(header.contains("needs_recovery"), "{header}");
            node.prints(&["check", &group.path("copy")], "1 would mount", 0);
        }
        // Not `up`: btrfs may show its device by another of its names.
        node.mount("pod", &copy).is_success();
        let page = node.pod_dir("pod", &copy).join("page");
        assert_eq!(read(&page), "in the log", "{fs}");
        group.assert_recorded("copy", fs);
        node.down("pod", &copy);
    }
}

#[test]
fn a_device_node_that_is_lost_is_made_again_and_a_file_in_its_place_is_left() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "nodes");
    let link = volume.device();
    // A file in its place is no device.
    let right = std::fs::canonicalize(&link).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::fs::write(&link, "a file").unwrap();
    node.mount("pod", &volume).is_failure(&[]);
    assert_eq!(read(Path::new(&link)), "a file");
    // Nothing at all: LVM may mend that when it is told to activate the volume.
    std::fs::remove_file(&link).unwrap();
    let reply = node.mount("pod", &volume);
    if reply.status == "Failure" {
        assert!(reply.message.contains("vgmknodes nodes"), "{reply:?}");
        run("ln", &["-sfn", right.to_str().unwrap(), &link]);
    }
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}

#[test]
fn a_filesystem_that_the_kernel_is_too_old_for_is_refused() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("future", 400 << 20);
    let volume = group.linear("xfs", "300m").fs("xfs");
    node.up("pod", &volume);
    node.down("pod", &volume);
    let device = volume.device();
    let on_superblock = |command| run("xfs_db", &["-x", "-c", "sb 0", "-c", command, &device]);
    let known = on_superblock("print features_incompat");
    let bits = known.strip_prefix("features_incompat = 0x").unwrap();
    let bits = u32::from_str_radix(bits, 16).unwrap() | 1 << 30;
    on_superblock(&format!("write -d features_incompat {bits:#x}"));
    let words = [
        "features that this node's kernel does not know",
        "the kernel says \"XFS (dm-",
    ];
    node.refuses_mount(&volume, &words);
}

#[test]
fn an_e2fsck_that_does_not_know_a_feature_is_called_too_old() {
    // A compatible feature, which no kernel minds; and that a crash has left a log.
    const COMPATIBLE: u64 = 1024 + 0x5F;
    const INCOMPATIBLE: u64 = 1024 + 0x60;
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "newer");
    let device = volume.device();
    run("mkfs.ext4", &["-q", "-O", "^metadata_csum", &device]);
    let byte = sh(&format!("od -A n -t u1 -j {INCOMPATIBLE} -N 1 {device}"));
    let incompatible: u8 = byte.trim().parse().unwrap();
    put(&device, COMPATIBLE, &[0x40]);
    for log in [0, 4] {
        put(&device, INCOMPATIBLE, &[incompatible | log]);
        let words = ["e2fsprogs of this node is too old", "e2fsck"];
        let reply = node.mount("pod", &volume);
        reply.is_failure(&words);
        assert!(!reply.message.contains("e2fsck -f"), "{reply:?}");
        node.prints(&["check", &group.path("data")], words[0], 1);
    }
    put(&device, INCOMPATIBLE, &[incompatible]);
    put(&device, COMPATIBLE, &[0]);
    node.up("pod", &volume);
}
