//! Each call-out, without the other calls of a volume's life.

use std::path::{Path, PathBuf};

use crate::prelude::*;

#[test]
fn the_node_has_a_short_a_full_and_a_configured_name() {
    let (group, volume) = Group::with_data("known");
    let upper = host_name().to_uppercase();
    for (lines, name) in [
        ("", upper.as_str()),
        ("", &format!("{}.example.com", host_name())),
        ("node_name = \"worker-7\"", "worker-7"),
    ] {
        group.lv("lvchange", &["-an"], "data");
        let node = Node::with_config(Mode::Attach, lines);
        node.does(&["attach", &volume.json(), name]);
        assert!(group.is_active("data"), "{name}");
    }
    // A group that is not on this host may be on the node.
    let elsewhere = Volume::of("nosuch", "data");
    let reply = Node::new(Mode::Attach).does(&["attach", &elsewhere.json(), &host_name()]);
    assert_eq!(reply.device, Some(elsewhere.device()));
}

#[test]
fn a_pod_ends_though_a_process_keeps_the_volume_active() {
    let group = Group::new("kept-open");
    for mode in BOTH_MODES {
        let log = PathBuf::from(format!("/run/open-{}.log", mode.lv()));
        let node = Node::with_config(mode, &format!("deactivate = true\nlog = {log:?}"));
        let (lv, volume) = (mode.lv(), group.linear(mode.lv(), "32m"));
        let pod = node.up("pod", &volume);
        // At a place of its own: where a directory is removed, the kernel unmounts it everywhere.
        let line = "exec unshare --mount sh -c 'mount --bind . /mnt && exec sleep 1000'";
        let process = Process::new(line, &pod);
        eventually("the namespace", || {
            read(&process.proc("mountinfo")).contains(" /mnt ")
        });
        node.all_down(&["pod"], &volume);
        assert_eq!(mount_at(&pod), None);
        assert!(group.is_active(lv), "{mode:?}");
        let said = read(&log);
        assert!(said.contains("\"left-active\":\"deactivating "), "{said}");
        drop(process);
        // The volume is deactivated after its next use.
        node.up("pod", &volume);
        node.all_down(&["pod"], &volume);
        assert!(!group.is_active(lv), "{mode:?}");
    }
}

#[test]
fn a_record_that_cannot_be_written_is_told_with_the_mount() {
    let fails =
        "case $* in *addtag*flexvolume.fs*) echo no record >&2; exit 5 ;; esac; exec $REAL \"$@\"";
    let (_tools, node) = Tools::new().put("lvchange", fails).node();
    let (group, volume) = Group::with_data("unwritten");
    sh(&format!("mkfs.ext4 -q {}", volume.device()));
    let mounted = node.mount("pod", &volume);
    mounted.is_success();
    let told =
        mounted.message.contains("could not record") && mounted.message.contains("no record");
    assert!(told, "{mounted:?}");
    assert_eq!(group.tags("data"), "");
    node.down("pod", &volume);
}

#[test]
fn the_limit_of_mounts_is_named_where_it_is_reached() {
    const LIMIT: &str = "/proc/sys/fs/mount-max";
    let (_group, volume) = Group::with_data("mount-max");
    let node = Node::new(Mode::MountOnly);
    node.visit(&volume);
    let _well = Finally(format!(
        "sysctl -qw fs.mount-max={}",
        read(Path::new(LIMIT)).trim()
    ));
    let read_only = volume.clone().read_only();
    // The third is bound by a process of its own, for its flags.
    for (pod, volume) in [
        ("mounted", &volume),
        ("bound", &volume),
        ("reads", &read_only),
    ] {
        let number = read(Path::new("/proc/self/mountinfo")).lines().count();
        sh(&format!("sysctl -qw fs.mount-max={number}"));
        let failed = node.mount(pod, volume);
        failed.is_failure(&["fs.mount-max"]);
        assert_eq!(mount_at(&node.pod_dir(pod, volume)), None);
        sh(failed.command("sysctl -w").unwrap());
        node.up(pod, volume);
    }
    node.all_down(&["mounted", "bound", "reads"], &volume);
}

#[test]
fn a_pod_ends_though_another_call_works_on_its_volume() {
    let log = PathBuf::from("/run/worked-on.log");
    let lines = format!("deactivate = true\nlog = {log:?}\n[limits]\nlock = 2\n");
    let node = Node::with_config(Mode::MountOnly, &lines);
    let (group, volume) = Group::with_data("worked-on");
    node.up("pod", &volume);
    let uuid = sh("lvs --noheadings -o lv_uuid worked-on/data").replace(['-', ' '], "");
    // The next pod's mount, which checks the filesystem.
    let other = holds(&format!("/run/flexvolume-lvm/{uuid}.lock"));
    node.down("pod", &volume);
    assert!(group.is_active("data"));
    let said = read(&log);
    assert!(
        said.contains("\"left-active\":\"locking worked-on/data"),
        "{said}"
    );
    drop(other);
    node.visit(&volume);
    assert!(!group.is_active("data"));
}
