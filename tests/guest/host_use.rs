//! Volumes that the host uses for itself: no pod gets them, whatever its author writes.

use std::fs;
use std::path::Path;

use crate::prelude::*;

/// No call-out gives the volume to a pod, for this reason, and nothing is changed by it.
fn refused_to_pods(node: &Node, volume: &Volume, reason: &str) {
    let dir = precreated(node.pod_dir("thief", volume));
    let global = precreated(node.global_dir(volume));
    // What is mounted is written to by the host itself, now and then.
    let is_mounted = mounts().iter().any(|mount| mount.source == volume.device());
    let written = || (!is_mounted).then(|| writes(&volume.device()));
    let seen = || (Snapshot::take(node.kubelet_dir()), written());
    let before = seen();
    let device = volume.device();
    for volume in [volume.clone(), volume.clone().read_only().fs("")] {
        let json = volume.json();
        node.refuses(&["mount", text(&dir), &volume.json_for("thief")], &[reason]);
        node.refuses(&["mountdevice", text(&global), &device, &json], &[reason]);
        let larger = (1_u64 << 30).to_string();
        let grow = ["expandfs", &json, &device, text(&global), &larger, "0"];
        node.refuses(&grow, &[reason]);
    }
    assert_eq!(seen(), before);
}

/// The host mounts a volume on this directory for as long as the value lives.
fn host_mount(volume: &Volume, dir: &Path) -> Finally {
    fs::create_dir_all(dir).unwrap();
    run("mount", &[&volume.device(), text(dir)]);
    run("sync", &[]);
    Finally(format!("umount {}", dir.display()))
}

#[test]
fn a_volume_that_the_host_has_mounted_is_no_pods() {
    let group = Group::new("hostvar");
    in_both_modes(&group, |node, volume| {
        let (lv, tag) = (node.mode.lv(), "flexvolume.fs=ext4:0");
        run("mkfs.ext4", &["-q", &volume.device()]);
        let var = host_mount(volume, Path::new("/run/var-of-the-host"));
        let reason = "mounted by the host itself at /run/var-of-the-host";
        refused_to_pods(node, volume, reason);
        // The driver's own record on it makes no difference.
        group.lv("lvchange", &["--addtag", tag], lv);
        refused_to_pods(node, volume, reason);
        drop(var);
        group.lv("lvchange", &["--deltag", tag], lv);
        // Once the host has given it up, it is a volume like any other.
        node.up("pod", volume);
        node.down("pod", volume);
    });
}

#[test]
fn a_volume_that_holds_kubelets_own_directory_is_no_pods() {
    let group = Group::new("hostkubelet");
    let volume = group.linear("kubelet", "32m");
    run("mkfs.ext4", &["-q", &volume.device()]);
    for below in ["", "pods", "plugins", "plugins/kubernetes.io"] {
        let node = Node::new(Mode::MountOnly);
        let dir = node.kubelet_dir().join(below);
        let _mounted = host_mount(&volume, &dir);
        node.mount_fails(&volume, &["mounted by the host itself at"]);
    }
}

/// A process that has a mount which nobody else sees.
fn hidden_mount(volume: &Volume) -> Process {
    let device = volume.device();
    let line = format!("exec unshare --mount sh -c 'mount {device} /mnt && exec sleep 1000'");
    let hidden = Process::new(&line, Path::new("/"));
    eventually("the mount", || {
        read(&hidden.proc("mountinfo")).contains(&device)
    });
    hidden
}

#[test]
fn a_mount_elsewhere_is_no_pods_without_the_record() {
    let (_group, volume) = Group::with_data("hosthidden");
    run("mkfs.ext4", &["-q", &volume.device()]);
    let hidden = hidden_mount(&volume);
    run("sync", &[]);
    let node = Node::new(Mode::MountOnly);
    for volume in [volume.clone(), volume.clone().read_only()] {
        node.mount_fails(&volume, &["another mount namespace", "has it at /mnt"]);
    }
    drop(hidden);
    // With the record it is a pod's: a container that outlived kubelet's own mount, say.
    write_synced(&node.up("pod", &volume).join("page"), "kept");
    node.down("pod", &volume);
    let hidden = hidden_mount(&volume);
    let dir = node.up("pod", &volume);
    assert_eq!(read(&dir.join("page")), "kept");
    node.mount_fails(&volume.clone().fs("xfs"), &["not xfs"]);
    drop(hidden);
    node.down("pod", &volume);
}
