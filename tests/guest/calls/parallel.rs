//! Many calls at once for one volume, and a call that comes while the mkfs of a killed call still runs. Each volume is
//! formatted once. No call waits for another volume's call.

use std::fs::{self, File};

use crate::prelude::*;

/// Enough for LVM commands that wait for each other in a slow guest.
const PATIENT: &str = "[limits]\nquery = 110\nactivate = 110\n";

fn pods(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("pod{n}")).collect()
}

#[test]
fn thirty_two_mounts_at_once_make_one_filesystem() {
    let tools = Tools::new().counting("mkfs.ext4");
    let node = Node::with_config(Mode::MountOnly, &tools.config());
    let (group, volume) = Group::with_data("crowd");
    let pods = pods(32);
    let before = mounts();
    // Some of them at one directory, where one mount is to stand in the end.
    std::thread::scope(|scope| {
        for pod in pods.iter().chain([&pods[0]; 8]) {
            scope.spawn(|| node.mount(pod, &volume).is_success());
        }
    });
    assert_eq!(mounts().len(), before.len() + pods.len());
    assert_eq!(tools.runs("mkfs.ext4").len(), 1);
    group.assert_recorded("data", "ext4");
    write_synced(&node.pod_dir("pod0", &volume).join("page"), "shared");
    for pod in &pods {
        assert_eq!(read(&node.pod_dir(pod, &volume).join("page")), "shared");
    }
    std::thread::scope(|scope| {
        for pod in &pods {
            scope.spawn(|| node.down(pod, &volume));
        }
    });
    assert_eq!(mounts(), before);
}

#[test]
fn mounts_and_unmounts_that_race_leave_no_mount() {
    // With `deactivate`, the last unmount takes away the device that the next mount has just seen.
    let tools = Tools::new().counting("mkfs.ext4");
    let config = format!("deactivate = true\n{}{PATIENT}", tools.config());
    let node = Node::with_config(Mode::MountOnly, &config);
    let (group, volume) = Group::with_data("racing");
    let before = mounts();
    std::thread::scope(|scope| {
        for pod in pods(4) {
            let (node, volume) = (&node, &volume);
            scope.spawn(move || {
                for _ in 0..3 {
                    let dir = node.up(&pod, volume);
                    assert_eq!(mount_at(&dir).unwrap().source, volume.device());
                    node.down(&pod, volume);
                }
            });
        }
    });
    assert_eq!(tools.runs("mkfs.ext4").len(), 1);
    assert_eq!(mounts(), before);
    assert!(!group.is_active("data"));
    assert!(group.tags("data").starts_with("flexvolume.fs=ext4:"));
}

#[test]
fn the_last_unmount_leaves_the_volume_to_a_mount_on_its_way() {
    let (group, volume) = Group::with_data("leaving");
    let plain = Node::new(Mode::MountOnly);
    plain.visit(&volume);

    // One call is about to mount; another takes off what somebody mounted meanwhile.
    let tools = Tools::new().held("mount");
    let config = format!("deactivate = true\n{}", tools.config());
    let node = Node::with_config(Mode::MountOnly, &config);
    let [coming, going] = ["coming", "going"].map(|pod| precreated(node.pod_dir(pod, &volume)));
    let mount = node.start_mount("coming", &volume);
    tools.wait_for("mount");
    run("mount", &[&volume.device(), text(&going)]);
    let unmount = node.start(&["unmount", text(&going)]);
    eventually("the unmount", || mount_at(&going).is_none());
    tools.let_go();
    for call in [mount, unmount] {
        call.reply().is_success();
    }
    assert!(mount_at(&coming).is_some() && group.is_active("data"));
    node.down("coming", &volume);
    assert!(!group.is_active("data"));
}

#[test]
fn a_call_waits_for_an_orphaned_mkfs_and_makes_no_other() {
    for fs in ["ext4", "xfs"] {
        let tool = format!("mkfs.{fs}");
        let tools = Tools::new().held(&tool);
        let mut node = Node::with_config(Mode::MountOnly, &tools.config());
        let group = Group::new("orphan");
        let volume = group.linear("data", "300m").fs(fs);
        let json = volume.json();
        let dir = precreated(node.pod_dir("first", &volume));

        let first = node.start(&["mount", text(&dir), &json]);
        let mkfs = tools.wait_for(&tool);
        first.kill();
        assert!(mount_at(&dir).is_none());
        let noted = format!("flexvolume.making={fs}:");
        assert!(group.tags("data").starts_with(&noted), "before it began");

        // A call that does not want to wait is told for whom.
        let impatient = format!("{}[limits]\nlock = 1\n", tools.config());
        node.configure(Mode::MountOnly, &impatient);
        let pid = format!("pid {mkfs}");
        let words = ["locking orphan/data", "is held by", &tool, &pid];
        // Who only has the file open is in nobody's way.
        let locks = fs::read_dir("/run/flexvolume-lvm").unwrap();
        let open: Vec<_> = locks
            .map(|lock| File::open(lock.unwrap().path()).unwrap())
            .collect();
        let reply = node.refuses(&["mount", text(&dir), &json], &words);
        drop(open);
        let own = format!("pid {}", std::process::id());
        assert!(!reply.message.contains(&own), "{reply:?}");
        assert!(!reply.message.contains("lvm (pid"), "waits too: {reply:?}");

        node.configure(Mode::MountOnly, &tools.config());
        let calls: Vec<_> = pods(2)
            .iter()
            .map(|pod| node.start_mount(pod, &volume))
            .collect();
        for call in &calls {
            call.listens();
        }
        tools.let_go();
        for call in calls {
            call.reply().is_success();
        }
        assert_eq!(tools.runs(&tool), [mkfs], "made once, by the orphan");
        group.assert_recorded("data", fs);
        for pod in pods(2) {
            node.down(&pod, &volume);
        }
    }
}

#[test]
fn a_call_that_hangs_keeps_no_other_volume_waiting() {
    let tools = Tools::new().held("e2fsck");
    let hanging = Node::with_config(Mode::MountOnly, &tools.config());
    let node = Node::with_config(Mode::MountOnly, PATIENT);
    let (group, volume) = Group::with_data("hung");
    let lvs = (0..20).map(|n| format!("other{n}"));
    let others: Vec<_> = lvs.map(|lv| group.linear(&lv, "32m")).collect();
    node.visit(&volume);
    let held = hanging.start_mount("pod", &volume);
    tools.wait_for("e2fsck");
    // First mounts, and then later ones.
    for _ in 0..2 {
        std::thread::scope(|scope| {
            for other in &others {
                scope.spawn(|| node.visit(other));
            }
        });
    }
    assert_eq!(mount_at(&hanging.pod_dir("pod", &volume)), None);
    tools.let_go();
    held.reply().is_success();
    hanging.down("pod", &volume);
}
