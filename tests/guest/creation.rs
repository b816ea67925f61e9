//! lvcreate is killed before it has wiped what a removed volume left in the new one's place. Nobody
//! may ever see that, and what is there by somebody's will must not be lost.

use std::path::PathBuf;

use crate::prelude::*;

/// lvcreate as it leaves a volume if it is killed, with the driver, after its change of LVM's
/// metadata and before its wipe.
const KILLED: &str = r#"[ -e $HERE/go ] && exec $REAL "$@"
set -- $(echo "$*" | sed "s/--wipesignatures y --zero y/--wipesignatures n --zero n/")
$REAL "$@"
kill -KILL $PPID"#;

/// A file of the removed volume's.
const THEIRS: &str = "theirs";

/// A volume of which the making was cut short, where a removed one had this filesystem.
struct Unwiped {
    node: Node,
    group: Group,
    volume: Volume,
}

impl Unwiped {
    fn new(name: &str, left: &str) -> Self {
        let tools = Tools::new().put("lvcreate", KILLED);
        let lines = format!("{}[volume_group.{name}]\ncreate = true\n", tools.config());
        let node = Node::with_config(Mode::MountOnly, &lines);
        let group = Group::new(name);
        let volume = Volume::new(&group, "data").with("size", "320m");
        group.leave_behind("320m", left, THEIRS);
        let unwiped = Self {
            node,
            group,
            volume,
        };
        let dir = precreated(unwiped.dir());
        let args = ["mount", text(&dir), &unwiped.volume.json_for("pod")];
        unwiped.node.start(&args).dies();
        assert_eq!(unwiped.kind(), left);
        assert_eq!(unwiped.group.tags("data"), "flexvolume.creating");
        tools.let_go();
        unwiped
    }

    fn dir(&self) -> PathBuf {
        self.node.pod_dir("pod", &self.volume)
    }

    fn kind(&self) -> String {
        let args = ["-p", "-o", "value", "-s", "TYPE", &self.volume.device()];
        run("blkid", &args)
    }

    /// The volume comes up as a new one.
    fn is_new(&self, fs: &str) {
        let volume = self.volume.clone().fs(fs);
        let dir = self.node.up("pod", &volume);
        assert_eq!(self.kind(), fs);
        assert!(!dir.join(THEIRS).exists());
        let made = format!("flexvolume.created,flexvolume.fs={fs}:");
        assert!(self.group.tags("data").starts_with(&made));
        // From now on it is kept.
        write_synced(&dir.join("ours"), "ours");
        self.node.down("pod", &volume);
        let dir = self.node.up("pod", &volume);
        assert_eq!(read(&dir.join("ours")), "ours");
    }
}

#[test]
fn what_a_removed_volume_held_is_never_seen_when_lvcreate_was_killed_before_its_wipe() {
    for (name, fs) in [("tenants", "ext4"), ("tenantsx", "xfs")] {
        let unwiped = Unwiped::new(name, "ext4");
        if fs == "ext4" {
            // It is not formatted for a pod that may only read, and not shown to it either.
            let volume = unwiped.volume.clone().read_only();
            let dir = unwiped.dir();
            let args = ["mount", text(&dir), &volume.json_for("pod")];
            unwiped.node.fails(&args, &["read-only"]);
            // As after a reboot.
            unwiped.group.lv("lvchange", &["-an"], "data");
        }
        unwiped.is_new(fs);
    }
}

#[test]
fn what_has_no_time_is_neither_shown_nor_formatted_until_an_operator_gives_his_word() {
    let unwiped = Unwiped::new("timeless", "xfs");
    let dir = unwiped.dir();
    for fs in ["xfs", "ext4", ""] {
        let volume = unwiped.volume.clone().fs(fs);
        let args = ["mount", text(&dir), &volume.json_for("pod")];
        let words = ["lvremove timeless/data", "adopt timeless/data"];
        unwiped.node.fails(&args, &words);
        assert_eq!(unwiped.kind(), "xfs");
    }
    unwiped.node.by_hand(&["adopt", "timeless/data"]);
    let dir = unwiped.node.up("pod", &unwiped.volume.clone().fs("xfs"));
    assert!(dir.join(THEIRS).exists());
}

#[test]
fn a_filesystem_that_somebody_made_on_a_created_volume_is_kept() {
    let lines = "[volume_group.byhand]\ncreate = true\n";
    let node = Node::with_config(Mode::Attach, lines);
    let group = Group::new("byhand");
    let volume = Volume::new(&group, "data");
    node.done(&["attach", &volume.json(), &host_name()]);
    Group::wait_for_the_next_second();
    put_page(&volume.device(), "ext4");
    is_kept(&node, &group, &volume);
}

#[test]
fn an_image_that_is_older_than_the_created_volume_it_was_copied_onto_is_kept() {
    for fs in ["ext4", "xfs", "btrfs"] {
        let name = format!("images{fs}");
        let lines = format!("[volume_group.{name}]\ncreate = true\n");
        let node = Node::with_config(Mode::Attach, &lines);
        let group = Group::new(&name);
        let image = format!("/run/{name}.image");
        run("truncate", &["-s", "320m", &image]);
        put_page(&image, fs);
        Group::wait_for_the_next_second();
        let volume = Volume::new(&group, "data").fs(fs).with("size", "320m");
        node.done(&["attach", &volume.json(), &host_name()]);
        assert_eq!(group.tags("data"), "flexvolume.created");
        run(
            "dd",
            &[
                &format!("if={image}"),
                &format!("of={}", volume.device()),
                "bs=1M",
                "conv=fsync",
            ],
        );
        run("rm", &[&image]);
        is_kept(&node, &group, &volume);
    }
}

/// Makes a filesystem with a page by hand.
fn put_page(on: &str, fs: &str) {
    run(&format!("mkfs.{fs}"), &["-q", on]);
    let scratch = precreated(PathBuf::from("/run/scratch"));
    run("mount", &[on, text(&scratch)]);
    write_synced(&scratch.join("page"), "by hand");
    run("umount", &[text(&scratch)]);
}

fn is_kept(node: &Node, group: &Group, volume: &Volume) {
    let dir = node.up("pod", volume);
    assert_eq!(read(&dir.join("page")), "by hand");
    assert!(group.tags("data").contains("flexvolume.fs="));
}

/// lvcreate has wiped the volume, but the driver dies before it can note that.
const KILLED_LATER: &str = r#"[ -e $HERE/go ] && exec $REAL "$@"
$REAL "$@"
kill -KILL $PPID"#;

#[test]
fn a_volume_that_was_wiped_before_the_driver_was_killed_counts_as_made_from_its_first_mkfs() {
    let tools = Tools::new().put("lvcreate", KILLED_LATER);
    let lines = format!("{}[volume_group.later]\ncreate = true\n", tools.config());
    let node = Node::with_config(Mode::MountOnly, &lines);
    let group = Group::new("later");
    let volume = Volume::new(&group, "data").with("size", "320m");
    group.leave_behind("320m", "xfs", THEIRS);
    let dir = precreated(node.pod_dir("pod", &volume));
    let args = ["mount", text(&dir), &volume.json_for("pod")];
    node.start(&args).dies();
    assert_eq!(group.tags("data"), "flexvolume.creating");
    tools.let_go();
    let dir = node.up("pod", &volume);
    assert!(!dir.join(THEIRS).exists());
    let made = "flexvolume.created,flexvolume.fs=ext4:";
    assert!(
        group.tags("data").starts_with(made),
        "{}",
        group.tags("data")
    );
}

#[test]
fn a_volume_is_made_in_whole_extents_and_none_for_a_pod_that_only_reads() {
    let group = Group::new("odd");
    let node = Node::with_config(Mode::MountOnly, "[volume_group.odd]\ncreate = true\n");
    for (lv, size) in [("tenths", "32.3m"), ("bytes", "33554433b")] {
        let volume = Volume::new(&group, lv).with("size", size);
        node.up("pod", &volume);
        assert_eq!(group.size(lv), 36 << 20, "{size}");
        node.down("pod", &volume);
    }
    let volume = Volume::new(&group, "read").with("size", "32m").read_only();
    node.mount_fails(&volume, &["none is made for a read-only volume"]);
    let all = run("lvs", &["--noheadings", "-o", "lv_name", "odd"]);
    assert!(!all.contains("read"), "{all}");
}
