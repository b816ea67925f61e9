//! Other users of a volume beside the driver: they open its device, put a loop device over it where the
//! driver does not see the file, mount it by hand, or keep a filesystem that was unmounted.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::stat::{major, minor};

use crate::data::meanwhile::noise;
use crate::prelude::*;

/// Makes a volume with a page, whose record is there or lost.
fn holding(node: &Node, group: &Group, lv: &str, size: &str, fs: &str, content: &str) -> Volume {
    let volume = group.linear(lv, size).fs(fs);
    node.write("first", &volume, "kept");
    if content == "unrecorded" {
        group.forget(lv);
    }
    volume
}

#[test]
fn a_writer_keeps_pods_from_a_volume_and_a_reader_does_not() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size) in FILESYSTEMS {
        let group = Group::new(&format!("opened{fs}"));
        for content in ["recorded", "unrecorded"] {
            println!("{fs}, {content}");
            let volume = holding(&node, &group, content, size, fs, content);
            let writer = opener(&volume.device(), "<>");
            let who = format!("sleep (pid {}", writer.0.id());
            // To read it, the kernel would replay its log.
            for volume in [volume.clone(), volume.clone().read_only()] {
                node.refuses_mount(&volume, &[&who]);
            }
            drop(writer);
            let _reader = opener(&volume.device(), "<");
            node.finds(&volume, "kept");
            group.assert_recorded(content, fs);
        }
    }
}

#[test]
fn a_loop_device_that_only_reads_keeps_no_pod_from_a_volume_that_has_data() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "looped");
    let attach = |how: &str| {
        let device = volume.device();
        sh(&format!("losetup {how} --find --show {device}"))
            .trim()
            .to_owned()
    };
    let name = attach("--read-only");
    node.refuses_mount(&volume, &["[loop]"]);
    detach(&name);
    node.write("pod", &volume, "kept");
    let name = attach("--read-only");
    node.finds(&volume, "kept");
    group.forget("data");
    node.finds(&volume, "kept");
    node.prints(&["check", "--idle", &group.path("data")], "losetup", 1);
    detach(&name);
    let name = attach("");
    node.refuses_mount(&volume, &["[loop]"]);
    detach(&name);
    node.finds(&volume, "kept");
}

#[test]
fn who_has_a_volume_open_is_found_whatever_the_path_of_the_node() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "mknod");
    node.write("pod", &volume, "kept");
    let number = fs::metadata(volume.device()).unwrap().rdev();
    let (major, minor) = (major(number), minor(number));
    let own = "/run/mknod-node";
    bash(&format!("rm -f {own}; mknod {own} b {major} {minor}"));
    let writer = opener(own, "<>");
    let who = format!("sleep (pid {}", writer.0.id());
    node.refuses_mount(&volume, &[&who, "[open]"]);
    drop(writer);
    let _reader = opener(own, "<");
    node.finds(&volume, "kept");
}

/// A loop device over the volume, through a node that only this process sees.
fn through_a_hidden_node(volume: &Volume) -> (Process, String) {
    let number = fs::metadata(volume.device()).unwrap().rdev();
    let (major, minor) = (major(number), minor(number));
    let told = "/run/hidden-loop";
    let _ = fs::remove_file(told);
    let line = format!(
        "exec unshare --mount sh -ec 'mount -t tmpfs none /mnt
         mknod /mnt/node b {major} {minor}
         losetup --find --show /mnt/node > {told}.new
         mv {told}.new {told}
         exec sleep 1000'"
    );
    let process = Process::new(&line, Path::new("/"));
    eventually("the hidden loop device", || fs::exists(told).unwrap());
    (process, read(Path::new(told)).trim().to_owned())
}

/// Takes a loop device away. Whoever looks at it just now, as udev does, keeps it for a moment.
fn detach(name: &str) {
    run("losetup", &["--detach", name]);
    let name = name.trim_start_matches("/dev/");
    let file = format!("/sys/block/{name}/loop/backing_file");
    eventually("its detachment", || !fs::exists(&file).unwrap());
}

#[test]
fn a_filesystem_that_the_host_has_through_a_hidden_node_is_no_pods() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("hiddennode");
    let point = Path::new("/run/through-the-loop");
    fs::create_dir_all(point).unwrap();
    for content in ["recorded", "unrecorded"] {
        println!("{content}");
        let volume = holding(&node, &group, content, "32m", "ext4", content);
        let tags = group.tags(content);
        let (process, name) = through_a_hidden_node(&volume);
        // With these options, the kernel writes only what the test writes.
        let options = "noinit_itable,noatime";
        run("mount", &["-o", options, &name, text(point)]);
        assert_eq!(read(&point.join("page")), "kept");
        write_synced(&point.join("page"), "of the host");
        run("sync", &[]);
        node.refuses_mount(&volume, &["[open-unseen]"]);
        node.refuses_mount(&volume.clone().read_only(), &["[open-unseen]"]);
        node.prints(&["check", &group.path(content)], &group.path(content), 1);
        assert_eq!(group.tags(content), tags);
        run("umount", &[text(point)]);
        detach(&name);
        drop(process);
        node.finds(&volume, "of the host");
    }
}

#[test]
fn a_look_by_hand_keeps_nobody_from_mounting_a_volume() {
    let (group, volume) = Group::with_data("asked");
    Node::new(Mode::MountOnly).write("pod", &volume, "kept");
    // Without a record, blkid is asked.
    group.forget("data");
    let id = group.path("data");
    let (device, point) = (volume.device(), "/run/asked-of");
    fs::create_dir_all(point).unwrap();
    let line = format!("mount {device} {point} && cat {point}/page && umount {point}");
    let by_hand = || Command::new("sh").args(["-c", &line]).output().unwrap();
    let page = |by_hand: Output| {
        let said = String::from_utf8([by_hand.stdout, by_hand.stderr].concat());
        assert_eq!(said.unwrap(), "kept", "{:?}", by_hand.status);
    };
    // Each command is stopped in the middle of its look.
    for args in ["check", "status"].map(|command| [command, &id]) {
        let (tools, node) = Tools::new().held("blkid").node();
        let mut asks = Command::new(node.exe());
        let asks = asks.args(args).stdout(Stdio::piped()).spawn().unwrap();
        tools.wait_for("blkid");
        let mounted = by_hand();
        tools.let_go();
        asks.wait_with_output().unwrap();
        println!("{args:?}");
        page(mounted);
    }
    // And at any time of it.
    let node = Node::new(Mode::MountOnly);
    let exe = node.exe();
    let checks = format!(
        "for n in 1 2 3 4 5 6 7 8 9 10; do {} check {id}; done > /dev/null",
        exe.display()
    );
    let checking = Process::new(&checks, Path::new("/"));
    for _ in 0..30 {
        page(by_hand());
    }
    drop(checking);
    node.up("pod", &volume);
}

#[test]
fn a_filesystem_that_lives_on_in_an_open_file_is_mounted_again_if_it_is_recorded() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("liveson");
    for (fs, size) in FILESYSTEMS {
        println!("{fs}");
        let volume = group.linear(fs, size).fs(fs);
        let dir = node.up("pod", &volume);
        write_synced(&dir.join("page"), "kept");
        let open = File::open(dir.join("page")).unwrap();
        run("umount", &["--lazy", text(&dir)]);
        assert_eq!(mount_at(&dir), None);

        node.finds(&volume, "kept");
        node.write("pod", &volume, "goes on");
        node.refuses_mount(&volume.clone().fs("ext3"), &["not ext3"]);

        drop(open);
        node.finds(&volume, "goes on");
    }
}

#[test]
fn a_filesystem_that_was_frozen_at_its_unmount_is_idle_after_what_the_message_says() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "frozen");
    let dir = node.up("pod", &volume);
    run("fsfreeze", &["--freeze", text(&dir)]);
    node.down("pod", &volume);
    let id = group.path("data");
    let (said, code) = node.says(&["check", "--idle", &id]);
    assert!(said.contains("is still mounted") && code == 1, "{said}");
    let line = said.replace('`', "\n");
    bash(&told(&line, "mount ").replace("DIR", "/mnt"));
    node.prints(&["check", "--idle", &id], "is ready", 0);
}

#[test]
fn a_disk_with_damaged_metadata_keeps_nobody_from_volumes_on_others() {
    let group = Group::new("sound");
    let damaged = Group::new("damaged");
    damaged.linear("data", "32m");
    run("vgchange", &["-qq", "-an", "damaged"]);
    let disk = run("vgs", &["--noheadings", "-o", "pv_name", "damaged"]);
    // All of the text in LVM's area, whose header stays. LVM then says so on standard output, too.
    put(&disk, 4096 + 512, &noise(512 << 10));
    in_both_modes(&group, |node, volume| {
        node.write("pod", volume, "kept");
        assert_eq!(read(&node.up("pod", volume).join("page")), "kept");
        node.prints(&["check", &group.path(node.mode.lv())], "bind", 0);
        node.down("pod", volume);
    });
}
