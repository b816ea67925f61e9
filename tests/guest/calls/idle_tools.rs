//! Tools that grow nothing, but report success.

use crate::crypt;
use crate::prelude::*;

/// Until it is let go, the tool ends at once where it is to grow something.
const IDLE: &str = "case $* in *dump*|open*|close*|luksFormat*) exec $REAL \"$@\" ;; esac
    [ -e $HERE/go ] || exit 0
    exec $REAL \"$@\"";

const CASES: [(&str, &str, &str); 4] = [
    ("ext4", "resize2fs", "300m"),
    ("xfs", "xfs_growfs", "300m"),
    ("btrfs", "btrfs", "300m"),
    ("encrypted", "cryptsetup", "300m"),
];

#[test]
fn growth_that_its_tool_has_not_done_is_no_success() {
    for (kind, tool, size) in CASES {
        let tools = Tools::new().put(tool, IDLE);
        let key = crypt::config(&crypt::key_file("idle"));
        let node = Node::with_config(Mode::MountOnly, &(tools.config() + &key));
        let group = Group::of_size("idle", 2 << 30);
        let volume = group.linear("data", size);
        let volume = match kind {
            "encrypted" => volume.encrypted(),
            fs => volume.fs(fs),
        };
        let dir = node.up("pod", &volume);
        write_synced(&dir.join("page"), "kept");
        let before = filesystem_size(&dir);
        // kubelet repeats the call until it succeeds.
        for _ in 0..2 {
            let grown = node.grow("pod", &volume, 600 * MIB);
            assert_eq!(filesystem_size(&dir), before, "{kind}: {grown:?}");
            grown.is_failure(&["said that it", "600 MiB", "The volume is large enough"]);
        }
        tools.let_go();
        // The superblock of an xfs that has just grown is older on its disk.
        for _ in 0..3 {
            node.grow("pod", &volume, 600 * MIB).is_success();
            assert!(filesystem_size(&dir) > before + 200 * MIB, "{kind}");
        }
        node.grow("pod", &volume, 700 * MIB).is_success();
        node.down("pod", &volume);
        node.finds(&volume, "kept");
    }
}

#[test]
fn a_mount_tells_of_growth_that_its_tool_has_not_done() {
    for (fs, tool) in [
        ("ext2", "resize2fs"),
        ("ext4", "resize2fs"),
        ("xfs", "xfs_growfs"),
        ("btrfs", "btrfs"),
    ] {
        let (tools, node) = Tools::new().put(tool, IDLE).node();
        let group = Group::of_size("idler", 2 << 30);
        let volume = group.linear("data", "300m").fs(fs);
        let dir = node.up("pod", &volume);
        let before = filesystem_size(&dir);
        node.down("pod", &volume);
        group.lv("lvextend", &["-L", "600m"], "data");
        let mounted = node.mount("pod", &volume);
        mounted.is_success();
        assert!(mounted.message.contains("said that it"), "{mounted:?}");
        node.down("pod", &volume);
        tools.let_go();
        let mounted = node.mount("pod", &volume);
        assert_eq!(mounted.message, "", "{fs}");
        assert!(filesystem_size(&dir) > before + 200 * MIB, "{fs}");
        node.down("pod", &volume);
    }
}
