//! Volumes that are not well: disks missing, filesystems with errors, a log to replay, suspended.

use std::path::Path;

use crate::marks::put;
use crate::prelude::*;

const MIB: u64 = 1 << 20;

#[test]
fn without_a_disk_raid_is_mounted_and_lost_data_is_refused() {
    let node = Node::new(Mode::MountOnly);
    let disks = [Disk::new("stays", 200 * MIB), Disk::new("goes", 200 * MIB)];
    let paths = disks.each_ref().map(Disk::path);
    let [stays, goes] = paths.each_ref().map(String::as_str);
    let group = Group::on("degraded", &[stays, goes]);
    for (lv, disk) in [("here", stays), ("lost", goes), ("active", goes)] {
        sh(&format!("lvcreate -qq -y -L 32m -n {lv} degraded {disk}"));
    }
    sh("lvcreate -qq -y --type raid1 -m1 --nosync -L 32m -n mirror degraded");
    let volumes = ["here", "lost", "active", "mirror"].map(|lv| Volume::new(&group, lv));
    for volume in &volumes {
        node.write("pod", volume, "kept");
    }
    for lv in ["here", "lost", "mirror"] {
        group.lv("lvchange", &["-an"], lv);
    }
    disks[1].fail_wholly();

    let [here, lost, active, mirror] = &volumes;
    let reply = node.mount("pod", mirror);
    reply.is_success();
    for words in ["degraded/mirror is mounted, but", "partial"] {
        assert!(reply.message.contains(words), "{reply:?}");
    }
    let dir = node.pod_dir("pod", mirror);
    assert_eq!(read(&dir.join("page")), "kept");
    write_synced(&dir.join("page"), "goes on");
    node.down("pod", mirror);

    assert_eq!(read(&node.up("pod", here).join("page")), "kept");
    writes_nothing(&node, active, "active", &["degraded/active is partial"]);
    let words = ["degraded/lost is partial"];
    node.mount("pod", lost).is_failure(&words);
    assert!(!Path::new(&lost.device()).exists(), "not activated");
    lenient("vgchange", &["-qq", "-an", "degraded"]);
}

#[test]
fn a_read_only_volume_is_only_read() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("permission");
    let [blank, data] = ["blank", "data"].map(|lv| group.linear(lv, "32m"));
    node.write("pod", &data, "kept");
    for lv in ["blank", "data"] {
        group.lv("lvchange", &["--permission", "r"], lv);
    }
    for volume in [&blank, &data] {
        let words = ["lvchange --permission rw permission/"];
        writes_nothing(&node, volume, "writer", &words);
    }
    let words = ["holds no filesystem"];
    writes_nothing(&node, &blank.read_only(), "reader", &words);
    let dir = node.up("reader", &data.clone().read_only());
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("reader", &data);
    group.lv("lvchange", &["--permission", "rw"], "data");
    node.up("pod", &data);
}

#[test]
fn a_volume_on_a_read_only_disk_is_only_read() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("switched");
    let [data, blank] = ["data", "blank"].map(|lv| group.linear(lv, "32m"));
    node.write("pod", &data, "kept");
    let disk = run("vgs", &["--noheadings", "-o", "pv_name", "switched"]);
    run("blockdev", &["--setro", disk.trim()]);
    let words = [&format!("`blockdev --setrw {}`", disk.trim()), "readOnly"];
    for volume in [&data, &blank] {
        writes_nothing(&node, volume, "writer", &words);
    }
    assert!(node.says(&["check", "switched/blank"]).0.contains(words[0]));
    let dir = node.up("reader", &data.clone().read_only());
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("reader", &data);
    run("blockdev", &["--setrw", disk.trim()]);
    node.up("pod", &blank);
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
        node.mount_fails(&volume, &words);
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
            // What is written stays in memory until it has to be on the disk, and ext meets its
            // aborted journal when somebody writes again.
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
            node.mount_fails(&volume, &[words, "is mounted at", "end all pods"]);
            let reader = volume.clone().read_only();
            let read = node.mount("reader", &reader);
            match fs {
                "xfs" => read.is_failure(&[words]),
                _ => read.is_success(),
            }
            // What stands is no new pod's.
            for pod in ["pod", "second"] {
                let dir = node.pod_dir(pod, &volume);
                node.done(&["mount", text(&dir), &volume.json_for(pod)]);
            }
            if mode == Mode::Attach {
                let (dir, device) = (node.global_dir(&volume), volume.device());
                node.done(&["mountdevice", text(&dir), &device, &volume.json()]);
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
fn a_device_node_of_another_volume_is_not_mixed_up() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("nodes");
    let [mine, other] = ["mine", "other"].map(|lv| group.linear(lv, "32m"));
    for volume in [&mine, &other] {
        node.up("pod", volume);
        node.down("pod", volume);
    }
    // Its link shows another volume.
    let link = mine.device();
    run("ln", &["-sfn", &other.device(), &link]);
    let words = ["that is not the logical volume nodes/mine"];
    node.mount("pod", &mine).is_failure(&words);
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
    node.mount("pod", &mine).is_failure(&[]);
    assert_eq!(read(Path::new(&link)), "a file");
    // Nothing at all: LVM may mend that when it is told to activate the volume.
    std::fs::remove_file(&link).unwrap();
    let reply = node.mount("pod", &mine);
    if reply.status == "Failure" {
        assert!(reply.message.contains("vgmknodes nodes"), "{reply:?}");
        run("ln", &["-sfn", right.to_str().unwrap(), &link]);
    }
    node.up("pod", &mine);
    group.assert_recorded("mine", "ext4");
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
    node.mount_fails(&volume, &words);
}
