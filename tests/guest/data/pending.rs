//! Changes of a volume that LVM is to make later. What a pod writes stays, or the pod does not get the volume.

use crate::prelude::*;
use crate::refusals::agreed::agreed;

/// A group with a volume and a snapshot of it, of the state in which its page was `before`. The merge of the snapshot
/// waits, since a pod has the volume: its page is `after`.
fn with_waiting_merge(node: &Node, name: &str, is_thin: bool) -> (Group, Volume) {
    let group = Group::new(name);
    let (volume, size) = if is_thin {
        group.pool();
        (group.thin("data", "32m"), "")
    } else {
        (group.linear("data", "32m"), "-L 16m")
    };
    node.write("pod", &volume, "before");
    let dir = node.up("pod", &volume);
    sh(&format!("lvcreate -qq -y -s {size} -n earlier {name}/data"));
    write_synced(&dir.join("page"), "after");
    sh(&format!("lvconvert -qq --merge {name}/earlier"));
    (group, volume)
}

#[test]
fn a_volume_into_which_lvm_will_merge_a_snapshot_is_not_written_to_before_that() {
    let node = Node::new(Mode::MountOnly);
    for (name, is_thin) in [("thickly", false), ("thinly", true)] {
        println!("{name}");
        let (group, volume) = with_waiting_merge(&node, name, is_thin);
        let id = group.path("data");
        // The pod that has it goes on.
        node.prints(&["doctor"], &format!("LVM puts {id} back to one of"), 3);
        node.prints(&["status", "-x"], "merge waits", 1);
        let size = filesystem_size(&node.pod_dir("pod", &volume));
        node.grow("pod", &volume, 64 * MIB)
            .is_failure(&["LVM puts "]);
        assert_eq!(filesystem_size(&node.pod_dir("pod", &volume)), size);
        node.down("pod", &volume);

        let words = format!("LVM puts {id} back to one of its snapshots when {id} is next");
        agreed(&node, &volume, &group, "merge-waits", &words);
        node.finds(&volume.clone().read_only(), "after");
        let refused = node.refuses_mount(&volume, &[&words]);
        agreeing(refused.command("lvchange -an").unwrap());
        if is_thin {
            // The volume has the snapshot's content at once. LVM ends the merge in the background, by a process that ends
            // too early if the terminal is closed at once. This is the page's command for that.
            sh(&format!("lvchange --poll y {id}"));
            eventually("LVM has ended the merge", || {
                !sh(&format!("lvs --noheadings -o lv_attr {id}"))
                    .trim()
                    .starts_with('O')
            });
        }
        node.finds(&volume, "before");
        node.prints(&["check", &id], "mount", 0);

        // What is written from now on stays.
        node.write("pod", &volume, "later");
        group.lv("lvchange", &["-an"], "data");
        node.finds(&volume, "later");
    }
}

#[test]
fn a_volume_that_is_not_active_is_mounted_as_lvm_merges_it() {
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        for (name, is_thin) in [("latethick", false), ("latethin", true)] {
            println!("{name} {mode:?}");
            let (group, volume) = with_waiting_merge(&node, name, is_thin);
            node.all_down(&["pod"], &volume);
            for (page, next) in [("before", "later"), ("later", "last")] {
                lenient("lvchange", &["-qq", "-an", &group.path("data")]);
                let file = node.up("pod", &volume).join("page");
                assert_eq!(read(&file), page);
                write_synced(&file, next);
                node.all_down(&["pod"], &volume);
            }
        }
    }
}
