//! The whole life of a volume, twice in a row: kubelet brings it up, a pod writes, it goes down,
//! and the next pod finds what was written.

use crate::prelude::*;

fn live_twice(node: &Node, group: &Group, lv: &str, fs: &str) {
    let volume = Volume::new(group, lv).fs(fs);
    let before = mounts();

    let dir = node.up("first", &volume);
    write_synced(&dir.join("page"), "kept");
    node.down("first", &volume);
    node.down_globally(&volume);
    assert_eq!(mounts(), before);
    group.assert_recorded(lv, fs);
    let tags = group.tags(lv);

    let dir = node.up("second", &volume);
    assert_eq!(read(&dir.join("page")), "kept");
    write_synced(&dir.join("page"), "changed");
    node.down("second", &volume);
    node.down_globally(&volume);
    assert_eq!(mounts(), before);
    assert_eq!(group.tags(lv), tags, "made once, not again");
}

fn live_on_linear_and_thin(fs: &str, size: &str) {
    let group = Group::new("lives");
    group.pool();
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        let (linear, thin) = (mode.lv(), format!("{}-thin", mode.lv()));
        group.linear(linear, size);
        live_twice(&node, &group, linear, fs);
        group.thin(&thin, size);
        live_twice(&node, &group, &thin, fs);
    }
}

#[test]
fn ext4_lives_in_both_modes_on_linear_and_thin_volumes() {
    live_on_linear_and_thin("ext4", "32m");
}

#[test]
fn xfs_lives_in_both_modes_on_linear_and_thin_volumes() {
    live_on_linear_and_thin("xfs", "300m");
}

#[test]
fn btrfs_lives_in_both_modes_on_linear_and_thin_volumes() {
    live_on_linear_and_thin("btrfs", "128m");
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
fn an_absent_or_empty_fs_type_means_the_configured_one() {
    let node = Node::with_config(Mode::MountOnly, "default_fs = \"ext3\"");
    let group = Group::new("defaults");
    let volume = group.linear("empty", "32m").fs("");
    node.up("pod", &volume);
    group.assert_recorded("empty", "ext3");
    node.down("pod", &volume);
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
fn without_a_config_file_everything_is_done_as_the_script_did_it() {
    let node = Node::without_config();
    let group = Group::new("plain");
    group.linear("data", "32m");
    live_twice(&node, &group, "data", "ext4");
}

#[test]
fn a_volume_that_was_deactivated_in_between_comes_up_again() {
    let group = Group::new("sleeping");
    for mode in BOTH_MODES {
        let (node, lv) = (Node::new(mode), mode.lv());
        let volume = group.linear(lv, "32m");
        node.write("first", &volume, "kept");
        node.down_globally(&volume);
        group.lv("lvchange", &["-an"], lv);
        assert!(!group.is_active(lv));
        assert_eq!(read(&node.up("second", &volume).join("page")), "kept");
    }
}

#[test]
fn a_volume_that_is_not_there_fails_and_leaves_nothing() {
    let group = Group::new("lacking");
    group.linear("other", "32m");
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        let volume = Volume::new(&group, "data");
        let dir = precreated(node.pod_dir("pod", &volume));
        let args = ["mount", text(&dir), &volume.json()];
        node.fails(&args, &["lacking/data", "lvcreate"]);
        let volume = Volume::of("nosuch", "data");
        node.fails(&["mount", text(&dir), &volume.json()], &["nosuch"]);
    }
}

#[test]
fn a_volume_too_small_for_its_filesystem_is_refused() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("little");
    let volume = group.linear("data", "12m").fs("xfs");
    let dir = precreated(node.pod_dir("pod", &volume));
    let reply = node.call(&["mount", text(&dir), &volume.json()]);
    reply.is_failure(&["making xfs on little/data"]);
    // xfsprogs 5.19 and newer, and older.
    let reasons = ["larger than 300MB", "too small"];
    assert!(
        reasons.iter().any(|why| reply.message.contains(why)),
        "{reply:?}"
    );
    assert!(!reply.message.contains("-b size="), "{reply:?}");
    assert_eq!(group.tags("data"), "");
    let volume = volume.fs("ext4");
    node.up("pod", &volume);
    node.down("pod", &volume);
}
