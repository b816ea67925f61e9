//! The record that mkfs is at work stays when mkfs is killed. It excuses what that has left, and
//! nothing else that somebody may have put there since.

use crate::gaps::{assert_begins_with, noise};
use crate::marks::put;
use crate::prelude::*;

#[test]
fn raw_data_on_a_volume_with_an_old_record_of_mkfs_is_not_formatted() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("stale");
    for (fs, size) in FILESYSTEMS {
        // A disk's worth of it, and one sector.
        for length in [1 << 20, 512] {
            println!("{fs}, {length} bytes");
            let volume = group.linear("data", size).fs(fs);
            let making = format!("flexvolume.making={fs}");
            group.lv("lvchange", &["--addtag", &making], "data");
            let bytes = noise(length);
            put(&volume.device(), 0, &bytes);
            let advice = "allow-format stale/data";
            node.refuses_mount(&volume, &[advice]);
            // Whatever type is asked for now.
            node.refuses_mount(&volume.clone().fs("ext3"), &[advice]);
            node.prints(&["check", "stale/data"], advice, 1);
            node.prints(&["allow-format", "stale/data"], "data at byte 0", 1);
            assert_begins_with(&volume, &bytes);
            assert_eq!(group.tags("data"), making);

            let allow = ["allow-format", "stale/data", "--yes"];
            node.prints(&allow, "Given up: data at byte 0", 0);
            node.up("pod", &volume);
            group.assert_recorded("data", fs);
            node.down("pod", &volume);
            run("blkdiscard", &["-f", &volume.device()]);
            group.lv("lvremove", &[], "data");
        }
    }
}

#[test]
fn the_half_of_a_mkfs_is_not_given_to_a_pod_that_wants_another_type() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "halfway");
    run("mkfs.ext4", &["-q", &volume.device()]);
    // All behind the superblock and the descriptors of the first group.
    put(&volume.device(), 16 << 10, &vec![0; 4 << 20]);
    group.lv("lvchange", &["--addtag", "flexvolume.making=ext4"], "data");
    let words = "halfway/data holds ext4, not xfs";
    node.refuses_mount(&volume.clone().fs("xfs"), &[words]);
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}

#[test]
fn a_mkfs_killed_at_one_of_its_writes_is_made_again() {
    let group = Group::new("cutshort");
    for (fs, size) in [
        ("ext4", "32m"), // blocks of 1 KiB
        ("ext4", "1g"),  // of 4 KiB
        ("xfs", "300m"),
        ("btrfs", "128m"),
    ] {
        let tool = format!("mkfs.{fs}");
        for write in [1, 10, 60, 140] {
            let volume = group.linear("data", size).fs(fs);
            let inject = format!("inject=pwrite64,write:signal=KILL:when={write}");
            let killed = format!(
                "[ ! -e $HERE/go ] || exec $REAL \"$@\"\n\
                 exec strace -D -f -o /dev/null -e trace=pwrite64,write -e {inject} $REAL \"$@\""
            );
            let tools = Tools::new().put(&tool, &killed);
            let node = Node::with_config(Mode::MountOnly, &tools.config());
            let reply = node.mount("pod", &volume);
            println!("{fs} of {size}, killed at write {write}: {reply:?}");
            // It does not write as often, or is killed.
            if reply.status != "Success" {
                // Where nothing was written yet, the volume is as blank as it was.
                let tags = group.tags("data");
                assert!(tags.is_empty() || tags == format!("flexvolume.making={fs}"));
                tools.let_go();
            }
            write_synced(&node.up("pod", &volume).join("page"), "kept");
            group.assert_recorded("data", fs);
            node.down("pod", &volume);
            assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
            node.down("pod", &volume);
            // What it has left is not the next one's.
            run("blkdiscard", &["-f", &volume.device()]);
            group.lv("lvremove", &[], "data");
        }
    }
}
