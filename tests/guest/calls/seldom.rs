//! Which processes a call starts more than usually, where the volume or its node is unlike most others.

use std::path::Path;

use super::processes::{ALONE, ASK, CHANGE, EXAMINE, MOUNT, mounts_start, starts};
use crate::prelude::*;

/// What the driver asks of a group about which LVM warns, or whose disks differ in their sectors.
const GROUP: &str = "vgs";
const GROW: &str = "resize2fs";

/// The steps before the filesystem is made, and after that.
const BEFORE: &[&str] = &[ASK, EXAMINE];
const MAKE: &[&str] = &[CHANGE, ALONE, "mkfs.ext4", CHANGE, MOUNT];

/// Grows a volume that is mounted in `dir`, by a call that starts these programs.
#[track_caller]
fn grows(node: &Node, volume: &Volume, dir: &Path, programs: &[&str]) {
    let (json, device) = (volume.json(), volume.device());
    let args = ["expandfs", &json, &device, text(dir), "67108864", "0"];
    starts(node, &args, programs);
}

#[test]
fn where_lvm_warns_the_group_is_asked_for_once_more() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("warned", 2, 256 << 20);
    let (first, second) = (disks[0].path(), &disks[1]);
    sh(&format!(
        "lvcreate -qq -y -W y -n data -L 32m warned {first}"
    ));
    let volume = Volume::new(&group, "data");
    second.becomes_smaller(64 << 20);
    let blank = [BEFORE, &[GROUP], MAKE].concat();
    let again = [ASK, EXAMINE, GROUP, "e2fsck", MOUNT];
    mounts_start(&node, &volume, &[&blank, &again]);
    let dir = node.up("pod", &volume);
    grows(&node, &volume, &dir, &[ASK, GROUP, "lvextend", GROW]);
}

#[test]
fn where_a_disk_has_larger_sectors_growth_asks_for_the_disks_of_the_group() {
    let large = looped_in("4096", Path::new("/run/even.large"), 64 << 20);
    let _gone = Finally(format!("losetup --detach {large}"));
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "even");
    let dir = node.up("pod", &volume);
    grows(&node, &volume, &dir, &[ASK, GROUP, "lvextend", GROW]);
}

#[test]
fn signs_beside_a_recorded_filesystem_start_nothing_more() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "beside");
    node.visit(&volume);
    put(&volume.device(), 0, b"boot code");
    mounts_start(&node, &volume, &[&[ASK, EXAMINE, "e2fsck", MOUNT]]);
}
