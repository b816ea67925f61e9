//! Volumes with faults: filesystems with errors, a log to replay, a lost device node.

use std::path::Path;

use crate::prelude::*;

#[test]
fn a_read_only_volume_is_read() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "permission");
    node.write("pod", &volume, "kept");
    let disk = sh("vgs --noheadings -o pv_name permission");
    for (change, to, what) in [
        ("lvchange -qq --permission ", ["r", "rw"], "permission/data"),
        ("blockdev --set", ["ro", "rw"], &disk),
    ] {
        sh(&format!("{change}{} {what}", to[0]));
        node.finds(&volume.clone().read_only(), "kept");
        if what == "permission/data" {
            // It may be a template, which nobody is to repair.
            node.prints(&["status", "-x"], "", 0);
            let (said, _) = node.says(&["doctor"]);
            let is_note = |line: &str| line.starts_with("note") && line.contains(what);
            assert!(said.lines().any(is_note), "{said}");
        }
        sh(&format!("{change}{} {what}", to[1]));
        node.visit(&volume);
    }
}

#[test]
fn a_filesystem_with_errors_is_refused_with_what_its_tool_says() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size, words) in [
        ("ext4", "32m", ["checking the filesystem of", "e2fsck -f"]),
        ("xfs", "300m", ["mounting broken", "mount -t xfs"]),
        ("btrfs", "128m", ["mounting broken", "mount -t btrfs"]),
    ] {
        let group = Group::new(&format!("broken{fs}"));
        let volume = group.linear("data", size).fs(fs);
        node.write("pod", &volume, "kept");
        let (tags, device) = (group.tags("data"), volume.device());
        match fs {
            "ext4" => drop(bash(&format!(
                "debugfs -w -R 'clri <2>' {device}; debugfs -w -R 'set_super_value state 2' {device}"
            ))),
            // The inodes at the beginning, the root's among them.
            "xfs" => put(&device, 4 * KIB, &vec![0xFF; 256 << 10]),
            // All of the trees; the superblocks stay.
            _ => put(&device, MIB, &vec![0xFF; 63 << 20]),
        }
        // Not `refuses_mount`: e2fsck notes in the superblock that it was there.
        node.mount("refused", &volume).is_failure(&words);
        assert_eq!(group.tags("data"), tags, "{fs}");
    }
}

/// A killed e2fsck leaves its mark in the block of the multi-mount protection. No mount and no e2fsck works then.
#[test]
fn an_ext_that_a_killed_e2fsck_has_kept_for_itself_is_mounted_after_the_command_of_the_message() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "protected");
    let device = volume.device();
    sh(&format!("mkfs.ext4 -q -O mmp,^metadata_csum {device}"));
    node.write("pod", &volume, "kept");
    bash(&format!(
        "block=$(dumpe2fs -h {device} | sed -n 's/^MMP block number: *//p'); printf '\\x50\\x4d\\x4d\\xe2' |
        dd of={device} bs=1 seek=$((block * 1024 + 4)) conv=notrunc,fsync status=none"
    ));
    let refused = node.mount("pod", &volume);
    refused.is_failure(&["multi-mount protection", "[fsck]"]);
    let clear = refused.command("tune2fs ").unwrap();
    node.prints(&["check", &group.path("data")], clear, 1);
    sh(clear);
    node.finds(&volume, "kept");
}

/// `e2fsck -n` repairs nothing, so it gives up, whether `e2fsck -p` repairs the journal or not.
#[test]
fn an_ext_whose_journal_is_damaged_is_mounted_or_refused_as_check_says() {
    const VERSION: u64 = 4;
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("journal");
    for (lv, at, is_repaired) in [("magic", 0, true), ("version", VERSION, false)] {
        let volume = group.linear(lv, "32m");
        let (id, device) = (group.path(lv), volume.device());
        node.write("pod", &volume, "kept");
        let journal = bash(&format!("debugfs -R 'bmap <8> 0' {device} 2> /dev/null"));
        let start = journal.trim().parse::<u64>().unwrap() * KIB;
        for is_left_by_a_crash in [false, true] {
            put(&device, start + at, b"gone");
            if is_left_by_a_crash {
                bash(&format!("debugfs -w -R 'feature +needs_recovery' {device}"));
            }
            node.prints(&["check", &id], "succeeds if `e2fsck -p` can repair", 1);
            if is_left_by_a_crash {
                let reply = node.mount("pod", &volume);
                assert_eq!(reply.status == "Success", is_repaired, "{lv}: {reply:?}");
            }
        }
    }
}

#[test]
fn a_filesystem_that_was_overwritten_under_a_pod_is_not_called_full() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "overwritten");
    node.up("pod", &volume);
    let device = volume.device();
    sh(&format!(
        "dd if=/dev/urandom of={device} bs=1M count=32 conv=notrunc,fsync status=none"
    ));
    let status = format!("status {}", group.path("data"));
    for command in [&*status, "doctor -q", "metrics", "check overwritten"] {
        let args: Vec<&str> = command.split(' ').collect();
        let (said, _) = node.says(&args);
        assert!(said.contains("overwritten"), "{command}: {said}");
        for wrong in [
            "PiB",
            "lvextend",
            "filesystem_size_bytes{vg=\"overwritten\"",
        ] {
            assert!(!said.contains(wrong), "{command}: {said}");
        }
    }
    node.down("pod", &volume);
    node.refuses_mount(&volume, &["[signs-of-data]"]);
}

#[test]
fn a_mounted_filesystem_that_has_failed_gets_no_more_writers() {
    const ERRORS: &str = "met errors in its filesystem";
    for mode in BOTH_MODES {
        for (fs, size, words) in [
            ("ext4", 64, ERRORS),
            ("xfs", 320, "has shut its filesystem down"),
            ("btrfs", 128, ERRORS),
        ] {
            let node = Node::new(mode);
            let (disk, group, volume) = Disk::with_data(&format!("dying{fs}"), fs, size);
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
            node.refuses_mount(&volume, &[words, "is mounted at", "end all pods"]);
            for mib in [size, size + 4] {
                let words = [
                    "but has failed: the kernel",
                    "When the disk works again, end",
                ];
                node.grow("pod", &volume, mib << 20).is_failure(&words);
                assert_eq!(group.size("data"), size << 20, "{fs}");
            }
            let read = node.mount("reader", &volume.clone().read_only());
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
            if mode == Mode::MountOnly && fs != "btrfs" {
                let id = group.path("data");
                node.is_ill("filesystem-errors", &id, "dmesg");
                disk.fail_wholly();
                node.is_ill("mounts", &id, "pvs -a");
                node.prints(&["status", "pod"], "but LVM does not know", 1);
            }
            disk.heal();
            node.all_down(&["pod", "second", "reader"], &volume);
            node.finds(&volume, "kept");
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
    let has = |node: &Node, volume: &Volume, errors: &str| {
        let options = mount_at(&node.up("pod", volume)).unwrap().options;
        node.down("pod", volume);
        let mut all = options.split([',', ' ']);
        let is = all.find_map(|one| one.strip_prefix("errors="));
        assert_eq!(is, Some(errors), "{}", volume.lv());
    };
    for fs in ["ext2", "ext3", "ext4"] {
        let volume = group.linear(fs, "32m").fs(fs);
        node.write("pod", &volume, "kept");
        has(&node, &volume, "remount-ro");
        run("tune2fs", &["-e", "panic", &volume.device()]);
        has(&node, &volume, "remount-ro");
        let goes_on = volume.clone().with("mountoptions", "errors=continue");
        has(&node, &goes_on, "continue");
    }
    let volume = Volume::new(&group, "ext4");
    let owners = Node::with_config(Mode::MountOnly, &lenient);
    has(&owners, &volume, "continue");
    let asks = volume.with("mountoptions", "errors=remount-ro");
    has(&owners, &asks, "remount-ro");
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
        volume.copy_to(&copy);
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

/// A killed e2fsck leaves such a superblock. blkid of util-linux 2.41 does not name that ext. e2fsck alone would take a
/// backup of the superblock, which is older.
#[test]
fn an_ext_whose_superblock_has_a_wrong_checksum_is_repaired_by_the_command_of_the_message() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "checksum");
    let copy = group.linear("copy", "32m");
    write_synced(&node.up("pod", &volume).join("page"), "in the journal");
    volume.copy_to(&copy);
    node.down("pod", &volume);
    put(&copy.device(), KIB + 0x3FC, b"sum?");
    let refused = node.mount("pod", &copy);
    refused.is_failure(&["checksum"]);
    let repair = refused.command("debugfs ").unwrap();
    // `check` says what the mount says.
    node.prints(&["check", &group.path("copy")], "debugfs -n -w", 1);
    agreeing(repair);
    node.finds(&copy, "in the journal");
}

#[test]
fn an_xfs_or_btrfs_whose_superblock_has_a_wrong_checksum_is_refused_by_check_too() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size, checksum) in [("xfs", "300m", 224), ("btrfs", "128m", 64 * KIB)] {
        let group = Group::new(&format!("sum{fs}"));
        let volume = group.linear("data", size).fs(fs);
        node.write("pod", &volume, "kept");
        put(&volume.device(), checksum, b"sum?");
        let refused = node.mount("pod", &volume).message;
        let word = ["[damaged]", "[signs-of-data]"];
        let word = word.iter().find(|word| refused.contains(**word));
        let word = word.unwrap_or_else(|| panic!("{fs}: {refused}"));
        node.prints(&["check", &group.path("data")], word, 1);
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
    node.mount("pod", &volume)
        .is_failure(&[&link, "is a plain file"]);
    assert_eq!(read(Path::new(&link)), "a file");
    // Nothing at all: LVM may mend that when it is told to activate the volume.
    std::fs::remove_file(&link).unwrap();
    let reply = node.mount("pod", &volume);
    if reply.status == "Failure" {
        assert!(reply.message.contains("vgmknodes nodes"), "{reply:?}");
        run("ln", &["-sfn", text(&right), &link]);
    }
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}

#[test]
fn an_e2fsck_that_does_not_know_a_feature_says_so_itself() {
    // A compatible feature, which no kernel minds; and that a crash has left a log.
    const COMPATIBLE: u64 = KIB + 0x5F;
    const INCOMPATIBLE: u64 = KIB + 0x60;
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "newer");
    let device = volume.device();
    run("mkfs.ext4", &["-q", "-O", "^metadata_csum", &device]);
    let byte = sh(&format!("od -A n -t u1 -j {INCOMPATIBLE} -N 1 {device}"));
    let incompatible: u8 = byte.parse().unwrap();
    put(&device, COMPATIBLE, &[0x40]);
    let words = "Get a newer version of e2fsck";
    for log in [0, 4] {
        put(&device, INCOMPATIBLE, &[incompatible | log]);
        node.mount("pod", &volume).is_failure(&[words]);
    }
    put(&device, INCOMPATIBLE, &[incompatible]);
    node.prints(&["check", &group.path("data")], words, 1);
    put(&device, COMPATIBLE, &[0]);
    node.up("pod", &volume);
}

#[test]
fn a_mount_does_not_wait_for_a_check_that_reads() {
    let (group, volume) = Group::with_data("unhindered");
    let waits = "case \" $* \" in *' -n '*) echo $$ >> $HERE/e2fsck.runs; \
         while [ ! -e $HERE/go ]; do sleep 0.1; done ;; esac; exec $REAL \"$@\"";
    let (tools, node) = Tools::new().put("e2fsck", waits).node();
    node.write("pod", &volume, "page");
    run(
        "debugfs",
        &["-w", "-R", "set_super_value state 2", &volume.device()],
    );
    let id = group.path("data");
    let (said, code) = std::thread::scope(|scope| {
        let check = scope.spawn(|| node.says(&["check", &id]));
        tools.wait_for("e2fsck");
        assert_eq!(read(&node.up("pod", &volume).join("page")), "page");
        tools.let_go();
        check.join().unwrap()
    });
    assert!(said.contains("bind from") && code == 0, "{code} {said}");
    node.down("pod", &volume);
}

#[test]
fn an_xfs_that_the_kernel_does_not_mount_is_repaired_by_what_the_page_says() {
    let page = include_str!("../../../docs/on-call.md");
    let page = page.replace('\n', " ");
    let node = Node::new(Mode::MountOnly);
    let (_disk, _group, volume) = Disk::with_data("unmountable", "xfs", 300);
    node.write("pod", &volume, "kept");
    let device = volume.device();
    // The header of the first allocation group's free space, behind the superblock.
    sh(&format!(
        "dd if=/dev/zero of={device} bs=512 seek=1 count=1 conv=notrunc,fsync status=none"
    ));
    let refused = node.mount("pod", &volume);
    refused.is_failure(&["mounting ", &device]);
    for line in ["xfs_repair -n DEVICE", "xfs_repair DEVICE"] {
        assert!(page.contains(&format!("`{line}`")), "{line}");
        // `xfs_repair -n` exits with 1 if it finds damage.
        bash(&format!(
            "{} || [ $? = 1 ]",
            line.replace("DEVICE", &device)
        ));
    }
    node.finds(&volume, "kept");
}
