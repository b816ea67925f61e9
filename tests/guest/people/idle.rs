//! `check --idle`: each user of a volume is named, and nothing is changed.

use std::path::Path;

use crate::prelude::*;
use crate::users::host::hidden_mount;

/// Checks that the volume is not idle for this reason, and that nothing is changed.
fn refused(node: &Node, reason: &str, words: &str) {
    // udev reads each device that was just closed. It would wait for one that is suspended.
    if reason != "suspended" {
        run("udevadm", &["settle"]);
    }
    let before = Snapshot::take(node.kubelet_dir());
    node.prints(&["check", "--idle", "handed/data"], words, 1);
    let (json, code) = node.json(&["check", "--idle", "handed/data"]);
    let reasons = json["obstacles"].as_array().unwrap();
    assert!(reasons.iter().any(|one| one["reason"] == reason), "{json}");
    assert_eq!((&json["ready"], code), (&false.into(), 1));
    assert_eq!(Snapshot::take(node.kubelet_dir()), before, "{words}");
}

#[test]
fn a_volume_that_anybody_has_is_not_idle() {
    let (mut node, _group, volume) = Node::with_data(Mode::Attach, "handed");
    let (root, device) = (Path::new("/"), volume.device());
    node.write("pod", &volume, "kept");
    let global = node.global_dir(&volume);
    let words = format!("is mounted for all pods of this node at {}", text(&global));
    refused(&node, "mounted", &words);
    let pod = node.up("pod", &volume);
    let words = format!("is mounted for the pod pod at {}: set", pod.display());
    refused(&node, "mounted", &words);
    node.all_down(&["pod"], &volume);

    {
        run("mkdir", &["/run/by-hand"]);
        run("mount", &[&device, "/run/by-hand"]);
        let _host = Finally("umount /run/by-hand".to_owned());
        refused(&node, "host-mount", "run `umount /run/by-hand`");
    }
    {
        let hidden = hidden_mount(&volume);
        let words = format!("(sleep (pid {}) has it at /mnt)", hidden.0.id());
        refused(&node, "in-use", &words);
    }
    {
        run("mount", &[&device, "/run/by-hand"]);
        run("touch", &["/run/by-hand/open"]);
        let open = Process::new("exec sleep 1000 < /run/by-hand/open", root);
        eventually("the open file", || {
            std::fs::read_link(open.proc("fd/0")).is_ok_and(|file| file.ends_with("by-hand/open"))
        });
        sh("umount --lazy /run/by-hand");
        refused(&node, "still-mounted", "(`fuser -vm ");
    }
    eventually("its filesystem is gone", || {
        node.says(&["check", "--idle", "handed/data"]).1 == 0
    });
    {
        let table = sh(&format!("blockdev --getsz {device}"));
        let table = format!("0 {table} linear {device} 0");
        run("dmsetup", &["create", "on-top", "--table", &table]);
        let _below = Finally("dmsetup remove --retry on-top".to_owned());
        let words = "is part of another device of this host (on-top)";
        refused(&node, "part-of-device", words);
    }
    {
        let looped = run("losetup", &["--find", "--show", &device]);
        let _loop = Finally(format!("losetup --detach {looped}"));
        refused(&node, "loop", &format!("run `losetup --detach {looped}`"));
    }
    for (how, word) in [("<", "to read"), (">>", "to write")] {
        let opener = opener(&device, how);
        let words = format!("is open in sleep (pid {}, {word})", opener.0.id());
        refused(&node, "open", &words);
    }
    {
        let _suspended = suspended("handed-data");
        refused(&node, "suspended", "run `dmsetup resume handed-data`");
    }
    {
        let tools = Tools::new().held("e2fsck");
        node.configure(
            Mode::MountOnly,
            &format!("{}[limits]\nlock = 1\n", tools.config()),
        );
        let call = node.start_mount("slow", &volume);
        tools.wait_for("e2fsck");
        let before = Snapshot::take(node.kubelet_dir());
        let check = ["check", "--idle", "handed/data"];
        node.prints(&check, " is held by ", 1);
        assert_eq!(Snapshot::take(node.kubelet_dir()), before);
        tools.let_go();
        assert_eq!(call.reply().status, "Success");
        node.down("slow", &volume);
    }
    // udev may still read it.
    eventually("it is ready", || {
        let (said, code) = node.says(&["check", "--idle", "handed/data"]);
        code == 0 && said.contains("handed/data is ready")
    });
}
