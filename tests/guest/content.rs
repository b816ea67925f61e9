//! What is on the volume decides: only a blank one is formatted, and a filesystem is never made
//! twice.

use crate::prelude::*;

#[test]
fn a_wrong_fs_type_is_refused_and_the_data_stays() {
    let node = Node::new(Mode::MountOnly);
    let (_group, volume) = Group::with_data("wrong");
    write_synced(&node.up("pod", &volume).join("page"), "kept");
    node.down("pod", &volume);
    for fs in ["xfs", "btrfs", "ext3"] {
        node.refuses_volume(&volume.clone().fs(fs), &["ext4", fs]);
    }
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
}

#[test]
fn a_volume_that_lost_its_filesystem_is_never_formatted_again() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("wiped");
    for (fs, size) in [("ext4", "32m"), ("xfs", "300m"), ("btrfs", "128m")] {
        let volume = group.linear(fs, size).fs(fs);
        let advice = format!("lvm allow-format wiped/{fs}");
        node.up("pod", &volume);
        node.down("pod", &volume);
        let tags = group.tags(fs);
        run("wipefs", &["-q", "--all", &volume.device()]);
        let held = format!("wiped/{fs} held {fs} ");
        node.refuses_volume(&volume, &[&held, &advice]);
        assert_eq!(group.tags(fs), tags);

        // When the tags are gone too, the rest of its superblock speaks. That of btrfs lies where
        // lvcreate leaves what a removed volume had.
        group.lv("lvchange", &["--deltag", &tags], fs);
        if fs != "btrfs" {
            node.refuses_volume(&volume, &[&advice]);
        }
    }
}

#[test]
fn a_mkfs_that_refuses_leaves_the_record_of_an_earlier_one_as_it_was() {
    let tools = Tools::new().put("mkfs.ext4", "echo refused >&2; exit 1");
    let node = Node::with_config(Mode::MountOnly, &tools.config());
    let group = Group::new("refusing");
    group.linear("data", "32m");
    group.lv("lvchange", &["--addtag", "flexvolume.making=xfs"], "data");
    node.refuses_volume(&Volume::new(&group, "data"), &["refused"]);
    assert_eq!(group.tags("data"), "flexvolume.making=xfs");
}

#[test]
fn a_filesystem_that_somebody_else_made_is_adopted_with_its_data() {
    let group = Group::new("adopted");
    for mode in BOTH_MODES {
        let (node, lv) = (Node::new(mode), mode.lv());
        let volume = group.linear(lv, "32m");
        run("mkfs.ext4", &["-q", &volume.device()]);
        let uuid = sh(&format!("blkid -p -o value -s UUID {}", volume.device()));
        write_synced(&node.up("pod", &volume).join("page"), "ours now");
        group.assert_recorded(lv, "ext4");
        assert!(group.tags(lv).ends_with(&uuid), "not made anew");
        node.down("pod", &volume);
        node.down_globally(&volume);
    }
}

#[test]
fn without_an_fs_type_whatever_filesystem_is_there_is_mounted() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("whatever");
    let volume = group.linear("data", "300m").fs("");
    run("mkfs.xfs", &["-q", &volume.device()]);
    let dir = node.up("pod", &volume);
    write_synced(&dir.join("page"), "on xfs");
    group.assert_recorded("data", "xfs");
}

#[test]
fn a_mkfs_that_was_cut_short_is_run_again() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("cutshort");
    group.linear("data", "32m");
    group.lv("lvchange", &["--addtag", "flexvolume.making=ext4"], "data");
    let volume = Volume::new(&group, "data");
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}

#[test]
fn the_operators_word_lets_a_lost_filesystem_be_made_once_more() {
    let node = Node::new(Mode::MountOnly);
    let (group, volume) = Group::with_data("allowed");
    node.up("pod", &volume);
    node.down("pod", &volume);
    run("wipefs", &["-q", "--all", &volume.device()]);
    node.by_hand(&["allow-format", "allowed/data", "--yes"]);
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
    node.down("pod", &volume);
    run("wipefs", &["-q", "--all", &volume.device()]);
    node.refuses_volume(&volume, &["lvm allow-format allowed/data"]);
}
