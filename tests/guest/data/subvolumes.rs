//! btrfs: what the table of mounts shows of a mount: a subvolume, not the root of the filesystem; the path of a disk.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::prelude::*;

#[test]
fn a_subvolume_is_for_as_many_pods_as_the_whole() {
    let group = Group::new("subvolumes");
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        let volume = group.linear(mode.lv(), "128m").fs("btrfs");
        let plain = Node::new(Mode::MountOnly);
        let dir = plain.up("pod", &volume);
        write_synced(&dir.join("page"), "of the root");
        sh(&format!("btrfs -q subvolume create {}/data", text(&dir)));
        write_synced(&dir.join("data/page"), "of the subvolume");
        plain.down("pod", &volume);
        let before = mounts();

        let named = volume.clone().with("mountoptions", "subvol=data");
        brought_up(&node, &named, "of the subvolume");
        brought_up(&node, &volume, "of the root");

        let dir = plain.up("pod", &volume);
        sh(&format!("btrfs subvolume set-default {}/data", text(&dir)));
        plain.down("pod", &volume);
        brought_up(&node, &volume, "of the subvolume");
        group.assert_recorded(mode.lv(), "btrfs");
        assert_eq!(mounts(), before, "{mode:?}");
    }
}

/// Two pods, each brought up twice, which find this page, and are taken down.
fn brought_up(node: &Node, volume: &Volume, page: &str) {
    let (json, device) = (volume.json(), volume.device());
    let global = precreated(node.global_dir(volume));
    for pod in ["first", "first", "second", "second"] {
        if node.mode == Mode::Attach {
            node.does(&["mountdevice", text(&global), &device, &json]);
        }
        node.mount(pod, volume).is_success();
        assert_eq!(read(&node.pod_dir(pod, volume).join("page")), page);
    }
    for pod in ["first", "second"] {
        node.down(pod, volume);
    }
    if node.mode == Mode::Attach {
        node.does(&["unmountdevice", text(&global)]);
    }
    assert_eq!(mount_at(&global), None);
}

/// udev tells the kernel the new name of a disk. Here udevd is stopped, so the row of the first mount has the name of
/// another volume.
#[test]
fn a_mounted_btrfs_that_was_renamed_is_not_taken_for_the_volume_that_has_its_name_now() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("moved");
    let [volume, other] = ["data", "other"].map(|lv| group.linear(lv, "128m").fs("btrfs"));
    node.write("pod", &other, "of the other");
    let first = node.up("first", &volume);
    write_synced(&first.join("page"), "of the first");
    let named = || mount_at(&first).unwrap().source == volume.device();
    eventually("the name of the disk", named);
    run("udevadm", &["settle"]);
    let udevd = processes_named("udevd");
    let tell = |signal| {
        for pid in &udevd {
            kill(Pid::from_raw(*pid), signal).unwrap();
        }
    };
    tell(Signal::SIGSTOP);
    bash("export DM_DISABLE_UDEV=1; lvrename -qq moved/data away; lvrename -qq moved/other data");
    let is_still = named();
    // Two mounts with one name are there when the third pod comes.
    let replies = ["second", "third"].map(|pod| {
        let reply = node.mount(pod, &volume);
        let page = node.pod_dir(pod, &volume).join("page");
        (reply, fs::read_to_string(page).unwrap_or_default())
    });
    tell(Signal::SIGCONT);
    assert!(is_still, "udev was quicker");
    for (reply, seen) in &replies {
        reply.is_success();
        assert_eq!(seen, "of the other");
    }
    node.does(&["unmount", text(&first)]);
    node.all_down(&["second", "third"], &volume);
    node.finds(&Volume::new(&group, "away").fs("btrfs"), "of the first");
}
