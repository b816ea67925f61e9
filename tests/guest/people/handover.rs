//! Steps on the node when a volume goes to a CSI driver or comes back: a look, and a rename.

use std::path::Path;

use serde_json::Value;

use crate::prelude::*;
use crate::users::host::hidden_mount;

/// Neither the one nor the other, for this reason; and nothing is changed.
fn refused(node: &Node, reason: &str, words: &str) {
    // It reads each device that was just closed; but not one that is suspended.
    if reason != "suspended" {
        run("udevadm", &["settle"]);
    }
    let before = Snapshot::take(node.kubelet_dir());
    node.prints(&["check", "--idle", "handed/data"], words, 1);
    let json = node.prints(&["check", "--idle", "handed/data", "--json"], "", 1);
    let json: Value = serde_json::from_str(&json).unwrap();
    let reasons = json["obstacles"].as_array().unwrap();
    assert!(reasons.iter().any(|one| one["reason"] == reason), "{json}");
    assert_eq!(json["ready"], false);
    node.prints(&["rename", "handed/data", "new"], words, 1);
    assert_eq!(Snapshot::take(node.kubelet_dir()), before, "{words}");
}

#[test]
fn a_volume_that_anybody_has_is_neither_ready_nor_renamed() {
    let (mut node, _group, volume) = Node::with_data(Mode::Attach, "handed");
    let (root, device) = (Path::new("/"), volume.device());
    node.write("pod", &volume, "kept");
    let global = node.global_dir(&volume);
    let words = format!(
        "is mounted for all pods of this node at {}",
        global.display()
    );
    refused(&node, "mounted", &words);
    let pod = node.up("pod", &volume);
    let words = format!("is mounted for the pod pod at {}: set", pod.display());
    refused(&node, "mounted", &words);
    node.down("pod", &volume);
    node.down_globally(&volume);

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
        refused(
            &node,
            "part-of-device",
            "is part of another device of this host (dm-",
        );
    }
    {
        let looped = run("losetup", &["--find", "--show", &device]);
        let _loop = Finally(format!("losetup --detach {looped}"));
        refused(&node, "loop", &format!("run `losetup --detach {looped}`"));
    }
    for (how, line) in [("to read", "<"), ("to write", ">>")] {
        let opener = Process::new(&format!("exec sleep 1000 {line} {device}"), root);
        let words = format!("is open in sleep (pid {}, {how})", opener.0.id());
        eventually("it is open", || {
            node.says(&["check", "--idle", "handed/data"])
                .0
                .contains(&words)
        });
        refused(&node, "open", &words);
    }
    {
        run("dmsetup", &["suspend", "--nolockfs", "handed-data"]);
        let _suspended = Finally("dmsetup resume handed-data".to_owned());
        refused(&node, "suspended", "run `dmsetup resume handed-data`");
    }
    {
        let tools = Tools::new().held("e2fsck");
        node.configure(
            Mode::MountOnly,
            &format!("{}[limits]\nlock = 1\n", tools.config()),
        );
        let dir = precreated(node.pod_dir("slow", &volume));
        let call = node.start(&["mount", text(&dir), &volume.json_for("slow")]);
        tools.wait_for("e2fsck");
        let before = Snapshot::take(node.kubelet_dir());
        let check = ["check", "--idle", "handed/data"];
        node.prints(&check, "has a call under way: ", 1);
        node.prints(&["rename", "handed/data", "new"], " is held by ", 1);
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

#[test]
fn a_renamed_volume_comes_up_under_its_new_name_and_then_under_its_old_one() {
    let (mut node, group, volume) = Node::with_data(Mode::MountOnly, "named");
    node.write("pod", &volume, "kept");
    let new = "0f8c-uid";
    let renamed = Volume::new(&group, new);
    let (tags, check) = (
        group.tags("data"),
        ["check", "--idle", "named/data", "--name", new],
    );
    let rename = ["rename", "named/data", new];

    // The check has the command, and that one the command that undoes it.
    let command = |said: &str, after: &str| {
        let (_, line) = said.split_once(after).unwrap();
        line.split(['`', '\n']).next().unwrap().to_owned()
    };
    let said = node.prints(&check, "is to be called 0f8c-uid", 1);
    let said = sh(&command(&said, "run `"));
    node.prints(&check, "named/0f8c-uid is ready", 0);
    node.prints(&rename, "if this was run before", 1);
    assert_eq!(group.tags(new), tags);
    node.refuses_mount(&volume, &["there is no logical volume named/data"]);
    assert_eq!(read(&node.up("pod", &renamed).join("page")), "kept");
    node.down("pod", &renamed);

    // As a killed lvrename leaves it: LVM has the new name, and the kernel the old one.
    run("dmsetup", &["rename", "named-0f8c--uid", "named-data"]);
    run("dmsetup", &["suspend", "named-data"]);
    for args in [&check[..], &rename] {
        let said = node.prints(args, "LVM calls named/data named/0f8c-uid, but", 1);
        assert!(said.contains("run `lvchange -ay named/0f8c-uid`"), "{said}");
    }
    sh("lvchange -ay named/0f8c-uid");
    node.prints(&check, "named/0f8c-uid is ready", 0);

    // The way back, of one that is not active.
    group.lv("lvchange", &["-an"], new);
    node.prints(
        &["check", "--idle", "named/0f8c-uid"],
        "run `lvchange -ay named/0f8c-uid`",
        1,
    );
    node.configure(Mode::MountOnly, "[volume_group.named]\ncreate = true\n");
    let said = sh(&command(&said, "To undo: "));
    assert!(
        said.contains("still names named/0f8c-uid gets a new and empty one"),
        "{said}"
    );
    assert!(!group.is_active("data") && !group.has(new) && group.tags("data") == tags);
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
    node.down("pod", &volume);
}

#[test]
fn a_volume_gets_no_name_that_is_taken_or_no_name() {
    let (node, group, _) = Node::with_data(Mode::MountOnly, "taken");
    group.linear("other", "32m");
    group.pool();
    let before = Snapshot::take(node.kubelet_dir());
    let long = "x".repeat(120);
    for (volume, name, words, code) in [
        (
            "taken/data",
            "other",
            "a logical volume taken/other already",
            1,
        ),
        ("taken/data", "pool_tdata", "LVM keeps names", 2),
        (
            "taken/data",
            "pool",
            "a logical volume taken/pool already",
            1,
        ),
        ("taken/data", "data", "has this name already", 1),
        ("taken/data", "taken/other", "volume taken/other already", 1),
        ("taken/data", "taken/a/b", "it holds '/'", 2),
        ("taken/data", "else/b", "taken/data keeps its group", 1),
        (
            "taken/none",
            "none",
            "there is no logical volume taken/none",
            1,
        ),
        ("taken/data", &long, "LVM allows 124 for both", 1),
        ("taken/pool", "new", "is a pool that holds other volumes", 1),
        (
            "taken/none",
            "new",
            "there is no logical volume taken/none",
            1,
        ),
        ("none/none", "new", "no volume group none", 1),
        ("taken", "new", "it must be VG/LV", 2),
    ] {
        node.prints(&["rename", volume, name], words, code);
    }
    assert_eq!(Snapshot::take(node.kubelet_dir()), before);
    // The notes name a volume that csi-driver-lvm would remove, and a name that no object can have.
    node.prints(
        &["rename", "taken/data", "csi-Data"],
        "note: csi-driver-lvm removes",
        0,
    );
    node.prints(
        &["check", "--idle", "taken/csi-Data"],
        "no object in Kubernetes",
        0,
    );
    let of_others = Node::with_config(Mode::MountOnly, "[volume_group.mine]\n");
    of_others.prints(&["rename", "taken/csi-Data", "data"], "volume_group", 1);
    assert!(group.has("csi-Data"));
}
