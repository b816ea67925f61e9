//! The commands that only look leave volumes, tags, mounts and /run as they are.

use crate::prelude::*;

/// Mounts, tags, sizes and states of all volumes; the content of those that `devices` name; the files in /run itself,
/// but LVM's own, the disks of groups, to which the kernel writes for what is mounted, and the driver's locks, which
/// are empty.
fn all_of_it(node: &Node, devices: &[String]) -> (Snapshot, String) {
    let rows = run("lvs", &["--noheadings", "-o", "lv_uuid,lv_attr,lv_tags"]);
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    let content = run("sha256sum", &devices);
    let shell = |line: &str| run("sh", &["-c", line]);
    let files = shell(
        "find /run -xdev -type f -not -name '*.disk' -not -path '/run/lvm/*' -not -path '/run/lock/*' \
         -not -path '/run/udev/*' -not -path '/run/flexvolume-lvm/*.lock' | sort | xargs -r -d '\\n' sha256sum",
    );
    let locks = shell("find /run/flexvolume-lvm -size +0 2>/dev/null | grep lock || true");
    let snapshot = Snapshot::take(node.kubelet_dir());
    (snapshot, [rows, content, files, locks].join("\n"))
}

#[test]
fn commands_that_only_look_change_nothing() {
    let (node, group, mounted) = Node::with_data(Mode::MountOnly, "looked");
    let [blank, ready, damaged, inactive] =
        ["blank", "ready", "damaged", "inactive"].map(|lv| group.linear(lv, "32m"));
    for volume in [&ready, &damaged, &inactive] {
        run("mkfs.ext4", &["-q", &volume.device()]);
    }
    sh(&format!(
        "dd if=/dev/zero of={} bs=1k seek=1 count=1 conv=notrunc,fsync",
        damaged.device()
    ));
    group.lv("lvchange", &["-an"], "inactive");
    node.write("pod", &mounted, "kept");
    node.up("pod", &mounted);
    let devices = [&blank, &ready, &damaged].map(Volume::device);
    let before = all_of_it(&node, &devices);
    let commands = "status|status looked/damaged|check|check looked/inactive|doctor|metrics";
    for command in commands.split('|') {
        let (said, _) = node.says(&command.split(' ').collect::<Vec<_>>());
        let about = if command == "doctor" {
            "logical volume"
        } else {
            "looked"
        };
        assert!(said.contains(about), "{command}: {said}");
        assert_eq!(all_of_it(&node, &devices), before, "{command}: {said}");
    }
    node.down("pod", &mounted);
}
