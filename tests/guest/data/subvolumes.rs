//! btrfs: a mount may have a subvolume, not the root of the filesystem.

use crate::prelude::*;

#[test]
fn a_subvolume_is_for_as_many_pods_as_the_whole() {
    let group = Group::new("subvolumes");
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        let volume = group.linear(mode.lv(), "128m").fs("btrfs");
        let plain = Node::new(Mode::MountOnly);
        let dir = plain.up("pod", &volume);
        write_synced(&dir.join("page"), "of the root");
        sh(&format!("btrfs -q subvolume create {}/data", text(&dir)));
        write_synced(&dir.join("data/page"), "of the subvolume");
        plain.down("pod", &volume);
        let before = mounts();

        let named = volume.clone().with("mountoptions", "subvol=data");
        brought_up(&node, &named, "of the subvolume");
        brought_up(&node, &volume, "of the root");

        let dir = plain.up("pod", &volume);
        sh(&format!("btrfs subvolume set-default {}/data", text(&dir)));
        plain.down("pod", &volume);
        brought_up(&node, &volume, "of the subvolume");
        group.assert_recorded(mode.lv(), "btrfs");
        assert_eq!(mounts(), before, "{mode:?}");
    }
}

/// Two pods, each brought up twice, which find this page, and are taken down.
fn brought_up(node: &Node, volume: &Volume, page: &str) {
    let (json, device) = (volume.json(), volume.device());
    let global = precreated(node.global_dir(volume));
    for pod in ["first", "first", "second", "second"] {
        if node.mode == Mode::Attach {
            node.does(&["mountdevice", text(&global), &device, &json]);
        }
        node.mount(pod, volume).is_success();
        assert_eq!(read(&node.pod_dir(pod, volume).join("page")), page);
    }
    for pod in ["first", "second"] {
        node.down(pod, volume);
    }
    if node.mode == Mode::Attach {
        node.does(&["unmountdevice", text(&global)]);
    }
    assert_eq!(mount_at(&global), None);
}
