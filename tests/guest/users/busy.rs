//! A volume that is in use stays mounted, and the message names who uses it and how. A volume
//! whose device is gone or broken is unmounted all the same. Nobody's files are ever deleted.

use std::fs::{self, File};
use std::path::Path;

use crate::prelude::*;

/// Runs a shell line in `dir`, and waits until a process of this name sleeps: then all that it
/// maps is in memory.
fn busy_as(line: &str, dir: &Path, name: &str) -> Process {
    let busy = Process::new(line, dir);
    let sleeps = format!("({name}) S ");
    eventually(name, || read(&busy.proc("stat")).contains(&sleeps));
    busy
}

#[test]
fn a_busy_volume_stays_mounted_and_each_process_is_named() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "busy");
    let dir = node.up("pod", &volume);
    write_synced(&dir.join("page"), "kept");
    fs::copy("/bin/busybox", dir.join("busybox")).unwrap();
    let at = text(&dir);

    // `@` is the volume. Only the first runs there. Of the last its root alone is on the volume, and what it runs: it
    // wants a namespace to enter, its own.
    #[rustfmt::skip] // a row is a line
    let cases = [
        ("exec sleep 1000 < page", "working directory @"),
        ("exec sleep 1000 < @/page", "open file @/page"),
        ("exec @/busybox sleep 1000", "executable @/busybox"),
        ("exec chroot @ /busybox sleep 1000", "working directory @"),
        ("exec nsenter --uts=/proc/self/ns/uts --root=@ --wd=/ /busybox sleep 1000", "root directory @"),
    ];
    let refused = |words: &[&str]| {
        node.call(&["unmount", at]).is_failure(words);
        assert!(mount_at(&dir).is_some());
    };
    for (line, holds) in cases {
        let is_copy = line.contains("busybox");
        let name = if is_copy { "busybox" } else { "sleep" };
        let root = Path::new("/");
        let cwd = if line.contains('@') { root } else { &dir };
        let busy = busy_as(&line.replace('@', at), cwd, name);
        let who = format!("{name} (pid {}, {}", busy.0.id(), holds.replace('@', at));
        refused(&[at, &who]);
    }

    let image = format!("{at}/image");
    run("truncate", &["-s", "1M", &image]);
    let device = run("losetup", &["--find", "--show", &image]);
    let detach = format!("losetup --detach {device}");
    refused(&["in use by the kernel", &image, &detach]);
    sh(&detach);
    let swap = format!("{at}/swap");
    bash(&format!(
        "dd if=/dev/zero of={swap} bs=1M count=1 status=none; chmod 600 {swap}; mkswap -q {swap}; swapon {swap}"
    ));
    let off = format!("swapoff {swap}");
    refused(&["in use by the kernel", &off]);
    sh(&off);

    let below = precreated(dir.join("below"));
    run("mount", &["-t", "tmpfs", "none", text(&below)]);
    refused(&["other mounts", text(&below)]);
    run("umount", &[text(&below)]);

    assert_eq!(read(&dir.join("page")), "kept");
    node.down("pod", &volume);
}

#[test]
fn a_volume_whose_device_is_gone_is_unmounted() {
    let node = Node::new(Mode::Attach);
    let group = Group::new("broken");
    for (fs, size) in FILESYSTEMS {
        let volume = group.linear(fs, size).fs(fs);
        let pod = precreated(node.pod_dir("pod", &volume));
        // A pod wrote this while its volume was not there. The mount hides it, and it is not ours.
        fs::write(pod.join("hidden"), "not ours").unwrap();
        let before = mounts();
        node.up("pod", &volume);
        let global = node.global_dir(&volume);
        fs::write(pod.join("page"), "not on the disk yet").unwrap();
        let open = File::open(pod.join("page")).unwrap();

        // Every access is an error from now on; xfs and btrfs shut themselves down.
        sh(&format!("dmsetup wipe_table --nolockfs broken-{fs}"));
        assert!(open.sync_all().is_err(), "{fs}");
        drop(open);
        if fs == "xfs" {
            // With its log it gives up altogether: not even stat(2) is answered.
            assert!(File::open(&pod).unwrap().sync_all().is_err());
            eventually("an error", || fs::metadata(&pod).is_err());
        }

        node.does(&["unmount", text(&pod)]);
        node.does(&["unmount", text(&pod)]);
        node.does(&["unmountdevice", text(&global)]);
        assert_eq!(mounts(), before, "{fs}");
        assert_eq!(mount_at(&pod), None);
        assert_eq!(read(&pod.join("hidden")), "not ours");
        fs::remove_dir(&global).unwrap();
    }
}

#[test]
fn files_below_a_global_mount_outlast_the_last_pod() {
    let (mut node, _group, volume) = Node::with_data(Mode::Attach, "hiding");
    let global = precreated(node.global_dir(&volume));
    fs::write(global.join("hidden"), "not ours").unwrap();
    node.up("pod", &volume);
    node.configure(Mode::MountOnly, "");
    node.down("pod", &volume);
    assert_eq!(mount_at(&global), None);
    assert_eq!(read(&global.join("hidden")), "not ours");
}

#[test]
fn a_global_mount_that_a_pod_still_uses_is_not_unmounted() {
    let (node, _group, volume) = Node::with_data(Mode::Attach, "inuse");
    let dir = node.up("pod", &volume);
    let global = node.global_dir(&volume);
    let open = File::open(global.join("lost+found")).unwrap();
    node.refuses(&["unmountdevice", text(&global)], &["lost+found"]);
    drop(open);
    write_synced(&dir.join("page"), "still there");
    node.all_down(&["pod"], &volume);
}

/// A second pod's mount cannot be bound from a mount to which no path leads.
#[test]
fn a_volume_whose_mount_is_hidden_is_mounted_for_a_second_pod_as_check_says() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "covered");
    let id = group.path("data");
    let pod = node.up("pod", &volume);
    write_synced(&pod.join("page"), "kept");
    for over in [&*pod, pod.parent().unwrap()] {
        run("mount", &["-t", "tmpfs", "none", text(over)]);
        let uncover = Finally(format!("umount {}", over.display()));
        node.prints(&["check", &id], "mount ext4", 0);
        let second = node.pod_dir("second", &volume);
        node.does(&["mount", text(&second), &volume.json_for("second")]);
        assert_eq!(read(&second.join("page")), "kept");
        node.does(&["unmount", text(&second)]);
        drop(uncover);
        node.prints(&["check", &id], "bind", 0);
    }
    // What lies over the pod's own mount goes with it.
    run("mount", &["-t", "tmpfs", "none", text(&pod)]);
    node.does(&["unmount", text(&pod)]);
    assert_eq!(mount_at(&pod), None);
    node.finds(&volume, "kept");
}
