//! More than one pod, and a pod that is still busy.

use std::fs::File;

use crate::prelude::*;

#[test]
fn two_pods_share_a_volume_until_the_last_one_goes() {
    in_both_modes(&Group::new("shared"), |node, volume| {
        let one = node.up("one", volume);
        let two = node.up("two", volume);
        write_synced(&one.join("page"), "from one");
        assert_eq!(read(&two.join("page")), "from one");
        node.down("one", volume);
        write_synced(&two.join("page"), "from two");
        let again = node.up("one", volume);
        assert_eq!(read(&again.join("page")), "from two");
        node.down("two", volume);
        node.down("one", volume);
    });
}

#[test]
fn a_global_mount_that_a_pod_still_uses_is_not_unmounted() {
    let (node, _group, volume) = Node::with_data(Mode::Attach, "inuse");
    let dir = node.up("pod", &volume);
    let global = node.global_dir(&volume);
    let open = File::open(global.join("lost+found")).unwrap();
    node.fails(&["unmountdevice", text(&global)], &["lost+found"]);
    drop(open);
    write_synced(&dir.join("page"), "still there");
    node.down("pod", &volume);
    node.down_globally(&volume);
}

#[test]
fn unmounting_what_is_not_mounted_removes_nothing() {
    let node = Node::new(Mode::Attach);
    let group = Group::new("unmounted");
    let volume = Volume::new(&group, "data");
    let pod = precreated(node.pod_dir("pod", &volume));
    std::fs::write(pod.join("file"), "a pod that wrote without its volume").unwrap();
    let global = node.global_dir(&volume);
    for call in ["unmount", "unmountdevice"] {
        node.done(&[call, text(&pod)]);
        node.done(&[call, text(&global)]);
    }
    assert!(pod.join("file").exists() && !global.exists());
}
