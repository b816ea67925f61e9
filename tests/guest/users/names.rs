//! Two `PersistentVolume`s that name one logical volume, on one node in attach mode.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{EBUSY, O_EXCL};

use crate::prelude::*;

/// Another `PersistentVolume` of the same logical volume.
fn renamed(volume: &Volume, name: &str) -> Volume {
    let mut other = volume.clone();
    name.clone_into(&mut other.name);
    other.with("kubernetes.io/pvOrVolumeName", name)
}

/// Takes a pod's volume as kubelet does: it leaves the global mount of a volume that is mounted elsewhere too, if that
/// place is not the same below `plugins`. Source: kubelet's `pkg/volume/util/operationexecutor`, `hasMountRefs`, and
/// k8s.io/mount-utils, `SearchMountPoints`. Returns whether kubelet is done with it.
fn end(node: &Node, pod: &str, volume: &Volume) -> bool {
    let pod = node.pod_dir(pod, volume);
    if mount_at(&pod).is_some() {
        node.does(&["unmount", text(&pod)]);
    }
    let global = node.global_dir(volume);
    let Some(here) = mount_at(&global) else {
        return !is_claimed(volume);
    };
    let is_same = |one: &&Mount| one.source == here.source && Path::new(&one.point) != global;
    if mounts().iter().any(|one| is_same(&one)) {
        return false;
    }
    node.does(&["unmountdevice", text(&global)]);
    !is_claimed(volume)
}

/// After `unmountdevice` kubelet waits until the device is free.
fn is_claimed(volume: &Volume) -> bool {
    let mut options = File::options();
    let claim = options
        .read(true)
        .custom_flags(O_EXCL)
        .open(volume.device());
    claim.is_err_and(|error| error.raw_os_error() == Some(EBUSY))
}

#[test]
fn kubelet_takes_back_a_volume_that_two_persistent_volumes_name() {
    let group = Group::new("twice");
    for order in [["one", "two"], ["two", "one"]] {
        let node = Node::new(Mode::Attach);
        let volume = group.linear(&order.concat(), "32m");
        let all = ["one", "two"].map(|name| renamed(&volume, &format!("{name}-{}", volume.lv())));
        for (pod, volume) in ["one", "two"].iter().zip(&all) {
            let json = volume.json();
            let device = volume.device();
            node.does(&["attach", &json, &host_name()]);
            let global = precreated(node.global_dir(volume));
            node.does(&["mountdevice", text(&global), &device, &json]);
            // Again, as after a restart of kubelet.
            node.does(&["mountdevice", text(&global), &device, &json]);
            node.mount(pod, volume).is_success();
        }
        let at = |pod: &str| &all[usize::from(pod == "two")];
        let page = node.pod_dir("one", at("one")).join("page");
        write_synced(&page, "of both");
        assert_eq!(
            read(&node.pod_dir("two", at("two")).join("page")),
            "of both"
        );
        let grown = node.grow("two", at("two"), 48 << 20);
        grown.is_success();
        // kubelet asks again until it is done with each.
        let mut left = order.to_vec();
        for _ in 0..3 {
            left.retain(|pod| !end(&node, pod, at(pod)));
        }
        assert!(left.is_empty(), "{order:?}: {left:?}");
        assert_eq!(seen(&volume), 0, "{order:?}");
        for pod in order {
            node.does(&["detach", &at(pod).name, &host_name()]);
        }
    }
}

#[test]
fn mounts_of_two_names_that_kubelet_cannot_take_back_are_told() {
    let node = Node::new(Mode::Attach);
    let (_group, volume) = Group::with_data("remembered");
    let [one, two] = ["one", "two"].map(|name| renamed(&volume, name));
    node.up("pod", &one);
    node.is_well("two-global-mounts");
    // As the driver once did it.
    let [from, to] = [&one, &two].map(|volume| precreated(node.global_dir(volume)));
    run("mount", &["--bind", text(&from), text(&to)]);
    node.prints(&["status"], "two global mounts", 0);
    let help = node.is_ill("two-global-mounts", "remembered/data", " unmountdevice ");
    bash(&help);
    node.is_well("two-global-mounts");
    assert!(end(&node, "pod", &one));
    assert_eq!(seen(&volume), 0);
}

/// A pod of a `PersistentVolume` in attach mode, up to its mount.
fn start(node: &Node, pod: &str, volume: &Volume) {
    let json = volume.json();
    node.does(&["attach", &json, &host_name()]);
    let global = precreated(node.global_dir(volume));
    node.does(&["mountdevice", text(&global), &volume.device(), &json]);
    node.mount(pod, volume).is_success();
}

/// kubelet restarts between the ends of two pods. Then it knows only the `PersistentVolume` of the second one. Once,
/// the node leaves attach mode meanwhile.
#[test]
fn the_last_pod_takes_off_a_global_mount_that_kubelet_forgot() {
    for later in BOTH_MODES {
        let mut node = Node::with_config(Mode::Attach, "deactivate = true");
        let (group, volume) = Group::with_data("forgotten");
        let [one, two] = ["one", "two"].map(|name| renamed(&volume, name));
        start(&node, "one", &one);
        start(&node, "two", &two);
        let [of_one, of_two] = [&one, &two].map(|volume| node.global_dir(volume));
        node.down("one", &one);
        node.configure(later, "deactivate = true");
        assert!(mount_at(&of_one).is_some(), "a pod has the volume");
        node.is_well("unused-global-mount");
        node.down("two", &two);
        assert_eq!(seen(&volume), 0, "{later:?}");
        assert!(!of_one.exists() && !group.is_active("data"), "{later:?}");
        // A pod for which kubelet had seen the global mount just before.
        node.mount("one", &one).is_success();
        node.down("one", &one);
        for global in [&of_one, &of_two] {
            node.does(&["unmountdevice", text(global)]);
        }
        assert!(!group.is_active("data"), "{later:?}");
    }
}

#[test]
fn a_global_mount_of_the_pods_own_name_is_kubelets_and_one_without_a_pod_is_told() {
    let node = Node::new(Mode::Attach);
    let (_group, volume) = Group::with_data("unused");
    let global = node.global_dir(&volume);
    node.up("pod", &volume);
    node.is_well("unused-global-mount");
    node.down("pod", &volume);
    assert!(mount_at(&global).is_some());
    node.prints(&["status"], "unused mount", 0);
    node.prints(&["check", "--idle", "unused/data"], " unmountdevice ", 1);
    let help = node.is_ill("unused-global-mount", "unused/data", " unmountdevice ");
    bash(&help);
    assert_eq!(seen(&volume), 0);
    node.is_well("unused-global-mount");
}

/// A volume is known by the name of its last `PersistentVolume`, and by the names under which it is mounted.
#[test]
fn an_old_name_of_a_volume_is_forgotten() {
    let (group, volume) = Group::with_data("called");
    let names = |node: &Node| {
        let tags = group.tags("data");
        let names = tags
            .split(',')
            .filter_map(|tag| tag.strip_prefix("flexvolume.volume="));
        (node.mode, names.map(str::to_owned).collect::<Vec<_>>())
    };
    for mode in BOTH_MODES {
        let node = Node::with_config(mode, "deactivate = true");
        for name in ["one", "two", "three"] {
            let volume = renamed(&volume, name);
            node.up("pod", &volume);
            assert_eq!(names(&node), (mode, vec![name.to_owned()]));
            node.all_down(&["pod"], &volume);
            assert!(!group.is_active("data"));
        }
    }
    let node = Node::with_config(Mode::Attach, "deactivate = true");
    let [one, two] = ["one", "two"].map(|name| renamed(&volume, name));
    start(&node, "one", &one);
    start(&node, "two", &two);
    let both = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(names(&node), (Mode::Attach, both), "both are mounted");
    node.down("one", &one);
    node.down("two", &two);
    let three = renamed(&volume, "three");
    node.does(&["attach", &three.json(), &host_name()]);
    node.does(&["detach", "one", &host_name()]);
    assert!(group.is_active("data"), "it is attached under another name");
    node.does(&["detach", "three", &host_name()]);
    assert!(!group.is_active("data"));
}
