//! Snapshots beside their origin: the filesystem on both has the same UUID.

use std::path::Path;

use crate::prelude::*;

/// A volume with a page on it, a snapshot of that, and then another page.
fn origin_and_snapshot(node: &Node, group: &Group, fs: &str, size: &str) -> (Volume, Volume) {
    let clone = format!("{fs}-clone");
    let origin = group.linear(fs, size).fs(fs);
    let page = node.up("origin", &origin).join("page");
    write_synced(&page, "before");
    group.lv("lvcreate", &["-s", "-n", &clone, "-L", "32m"], fs);
    write_synced(&page, "after");
    (origin, Volume::new(group, &clone).fs(fs))
}

/// Whether this kernel mounts a copy of a btrfs beside it: Linux 6.7 and newer do, under an ID that
/// the copy has until it is unmounted.
pub fn kernel_tells_btrfs_apart() -> bool {
    let release = read(Path::new("/proc/sys/kernel/osrelease"));
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(7))
}

#[test]
fn a_snapshot_is_mounted_beside_its_origin() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("clones", 1 << 30);
    let count = if kernel_tells_btrfs_apart() { 3 } else { 2 };
    for (fs, size) in FILESYSTEMS.into_iter().take(count) {
        let (origin, clone) = origin_and_snapshot(&node, &group, fs, size);
        assert_eq!(read(&node.up("clone", &clone).join("page")), "before");
        node.down("origin", &origin);
        node.finds(&origin, "after");
        node.down("clone", &clone);
        // LVM asks whether to activate the origin with a snapshot.
        run("vgchange", &["-qq", "-an", "clones"]);
        node.finds(&clone, "before");
    }
}

#[test]
fn btrfs_that_is_mounted_keeps_its_snapshot_out() {
    if kernel_tells_btrfs_apart() {
        return;
    }
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("twins", 1 << 30);
    let (origin, clone) = origin_and_snapshot(&node, &group, "btrfs", "128m");
    let words = ["same UUID as that of twins/", "`btrfstune -u /dev/mapper/"];
    node.refuses_mount(&clone, &words);
    node.down("origin", &origin);
    // Either of them alone; and never one in the place of the other.
    assert_eq!(read(&node.up("clone", &clone).join("page")), "before");
    node.refuses_mount(&origin, &words);
    node.down("clone", &clone);
    run("btrfstune", &["-f", "-u", &clone.device()]);
    let words = ["should hold btrfs", "adopt twins/btrfs-clone"];
    node.refuses_mount(&clone, &words);
    node.prints(&["adopt", "twins/btrfs-clone"], "", 0);
    assert_eq!(read(&node.up("origin", &origin).join("page")), "after");
    node.finds(&clone, "before");
    node.down("origin", &origin);
}
