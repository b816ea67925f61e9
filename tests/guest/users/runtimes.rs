//! Container runtimes that bind a pod's volume in the host's namespace, for a virtual machine.

use crate::prelude::*;

/// Binds a directory as kata-containers does: below a directory that the machine sees as a slave of another, and
/// private itself. Source: kata-containers' `fs_share_linux.go`, `Prepare` and `ShareFile`.
fn sandbox(dir: &std::path::Path, id: &str) -> Finally {
    let top = format!("/run/kata-containers/shared/sandboxes/{id}");
    bash(&format!(
        "mkdir -p {top}/mounts/volume {top}/shared; mount --bind {top}/mounts {top}/mounts; \
         mount --make-shared {top}/mounts; mount --bind {top}/mounts {top}/shared; \
         mount --make-slave {top}/shared; mount --bind {} {top}/mounts/volume; \
         mount --make-private {top}/mounts/volume",
        dir.display()
    ));
    Finally(format!("umount -R {top}/shared {top}/mounts"))
}

#[test]
fn a_second_pod_comes_beside_a_virtual_machine() {
    let group = Group::new("kata");
    for mode in BOTH_MODES {
        for layout in [Layout::Plain, Layout::Shared] {
            let node = Node::new(mode);
            let _layout = layout.of(&node);
            let lv = format!("{}-{}", mode.lv(), layout.name());
            let volume = group.linear(&lv, "32m");
            let first = node.up("first", &volume);
            write_synced(&first.join("page"), "kept");
            let machine = sandbox(&first, &lv);
            let second = node.up("second", &volume);
            assert_eq!(read(&second.join("page")), "kept");
            let id = format!("kata/{lv}");
            node.prints(&["check", &id], "bind", 0);
            let (story, _) = node.json(&["status", &id]);
            assert_eq!(story["other_users"], serde_json::json!([]), "{story}");
            node.grow("second", &volume, 48 << 20).is_success();
            // The first pod's machine outlives kubelet's mount for a moment.
            node.down("first", &volume);
            node.up("third", &volume);
            drop(machine);
            node.all_down(&["second", "third"], &volume);
        }
    }
}

#[test]
fn a_bind_of_kubelets_mount_is_no_use_by_the_host() {
    let (mut node, _group, volume) = Node::with_data(Mode::MountOnly, "bindings");
    let _shared = Layout::Shared.of(&node);
    let first = node.up("first", &volume);
    let bind = |flags: &str| {
        let line = format!(
            "mkdir -p /run/elsewhere; mount --bind {} /run/elsewhere",
            text(&first)
        );
        bash(&format!("{line}; {flags}"));
        Finally("umount /run/elsewhere".into())
    };
    // The kernel says whose copies they are.
    for flags in ["true", "mount --make-slave /run/elsewhere"] {
        let _bound = bind(flags);
        node.up("second", &volume);
        node.down("second", &volume);
    }
    // The kernel does not say it. Nobody is told to unmount what a pod may use, and the config can name the place.
    let _bound = bind("mount --make-private /run/elsewhere");
    let words = [
        "mounted by the host itself at /run/elsewhere",
        "runtime_dirs",
    ];
    let reply = node.refuses_mount(&volume, &words);
    assert!(!reply.message.contains("umount"), "{reply:?}");
    node.configure(
        Mode::MountOnly,
        "runtime_dirs = ['/run/kata-containers', '/run/elsewhere']",
    );
    node.up("second", &volume);
    for pod in ["first", "second"] {
        node.down(pod, &volume);
    }
}

#[test]
fn a_directory_of_a_runtime_holds_no_volume_of_the_host() {
    // Nothing says that a pod ever had it.
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "unrecorded");
    run("mkfs.ext4", &["-q", &volume.device()]);
    let dir = "/run/kata-containers/shared/sandboxes/other";
    bash(&format!("mkdir -p {dir}; mount {} {dir}", volume.device()));
    let _mounted = Finally(format!("umount {dir}"));
    node.refuses_mount(&volume, &["mounted by the host itself at", dir]);
}
