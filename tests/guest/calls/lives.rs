//! The whole life of a volume, twice in a row: kubelet brings the volume up, a pod writes, kubelet takes the volume
//! down, and the next pod finds what was written.

use crate::prelude::*;

pub fn live_twice(node: &Node, group: &Group, lv: &str, fs: &str) {
    let volume = Volume::new(group, lv).fs(fs);
    let before = mounts();

    node.write("first", &volume, "kept");
    node.down_globally(&volume);
    assert_eq!(mounts(), before);
    group.assert_recorded(lv, fs);
    let tags = group.tags(lv);

    let dir = node.up("second", &volume);
    assert_eq!(read(&dir.join("page")), "kept");
    write_synced(&dir.join("page"), "changed");
    node.all_down(&["second"], &volume);
    assert_eq!(mounts(), before);
    assert_eq!(group.tags(lv), tags, "made once, not again");
    let uuid = run("lvs", &["--noheadings", "-o", "lv_uuid", &group.path(lv)]);
    let uuid = uuid.trim().replace('-', "");
    let locks = sh("ls /run/flexvolume-lvm");
    assert!(!locks.contains(&uuid), "{uuid} in {locks}");
}

#[test]
fn each_filesystem_lives_in_both_modes_on_linear_and_thin() {
    for (fs, size) in FILESYSTEMS {
        let group = Group::new("lives");
        group.pool();
        for mode in BOTH_MODES {
            group.linear(mode.lv(), size);
            live_twice(&Node::new(mode), &group, mode.lv(), fs);
        }
        group.thin("thin", size);
        group.lv("lvchange", &["-an", "--setactivationskip", "y"], "thin");
        live_twice(&Node::new(Mode::Attach), &group, "thin", fs);
    }
}

#[test]
fn ext2_and_ext3_live_too() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("older");
    for fs in ["ext2", "ext3"] {
        group.linear(fs, "32m");
        live_twice(&node, &group, fs, fs);
    }
}

#[test]
fn names_may_hold_hyphens_dots_plus_and_underscore_signs() {
    let group = Group::new("vg-1.a+b_c");
    for mode in BOTH_MODES {
        let lv = format!("data--1.x+y_z-{}-", mode.lv());
        group.linear(&lv, "32m");
        live_twice(&Node::new(mode), &group, &lv, "ext4");
    }
}

#[test]
fn without_a_config_file_all_is_done_as_the_script_did_it() {
    let node = Node::without_config();
    let group = Group::new("plain");
    group.linear("data", "32m");
    live_twice(&node, &group, "data", "ext4");
}

#[test]
fn a_volume_too_small_for_its_filesystem_is_refused() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("little");
    let volume = group.linear("data", "12m").fs("xfs");
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["making xfs on little/data"]);
    // xfsprogs 5.19 and newer, and older.
    let mut reasons = ["larger than 300MB", "too small"].into_iter();
    let says = |words: &str| reply.message.contains(words);
    assert!(reasons.any(says) && !says("-b size="), "{reply:?}");
    assert_eq!(group.tags("data"), "");
    let volume = volume.fs("ext4");
    node.visit(&volume);
}
