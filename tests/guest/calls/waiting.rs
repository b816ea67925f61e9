//! Volumes on a disk that holds every access, in each layout of kubelet's directory. Each call answers all the same.

use std::fs;

use crate::crypt::{config, key_file, name_inside};
use crate::prelude::*;

/// What waits in vain is given up soon.
const SHORT: &str = "[limits]\nmount = 3\nlock = 2\nquery = 20\nactivate = 20\nresize = 5\n";

fn call(node: &Node, args: &[&str]) -> Reply {
    node.start(args).answer()
}

/// All call-outs on a volume that two pods have. What would take it from them comes last.
fn call_each(node: &Node, volume: &Volume) {
    let [first, second, third] = ["first", "second", "third"].map(|pod| node.pod_dir(pod, volume));
    let (third, global) = (precreated(third), precreated(node.global_dir(volume)));
    let [first, second, third, global] = [&first, &second, &third, &global].map(|dir| text(dir));
    let (json, device, host) = (volume.json(), volume.device(), host_name());
    let (reader, nosuid) = (volume.clone().read_only(), volume.clone());
    let nosuid = nosuid.with("mountoptions", "nosuid");
    let calls: &[&[&str]] = &[
        &["init"],
        &["isattached", &json, &host],
        &["attach", &json, &host],
        &["waitforattach", &device, &json],
        &["mountdevice", global, &device, &json],
        &["mount", first, &volume.json_for("first")],
        &["mount", third, &volume.json_for("third")],
        &["mount", third, &reader.json_for("third")],
        &["mount", third, &nosuid.json_for("third")],
        &["expandfs", &json, &device, first, "134217728", "0"],
        &["expandvolume", &json, first, "134217728", "0"],
    ];
    for args in calls {
        call(node, args);
    }
    // Pods that end at once, each of which may be the last.
    let all = [first, second, third].map(|dir| node.start(&["unmount", dir]));
    for one in all {
        one.answer();
    }
    call(node, &["unmountdevice", global]);
    call(node, &["detach", &volume.name, &host]);
}

/// In one layout and both modes, plain or encrypted: the volume is suspended, and the device inside an encrypted one.
fn each_call_answers(layout: Layout, is_encrypted: bool) {
    let name = format!("waits-{}", layout.name());
    let group = Group::new(&name);
    let key = config(&key_file(&name));
    for mode in BOTH_MODES {
        let mut node = Node::with_config(mode, &key);
        let _layout = layout.of(&node);
        let mut volume = group.linear(mode.lv(), "48m");
        let mut devices = vec![format!("{}-{}", name.replace('-', "--"), mode.lv())];
        if is_encrypted {
            volume = volume.encrypted();
            devices.push(name_inside(&volume));
        }
        for pod in ["first", "second"] {
            node.bring(pod, &volume);
        }
        let page = node.pod_dir("first", &volume).join("page");
        fs::write(page, "not on the disk yet").unwrap();
        node.configure(mode, &format!("{key}{SHORT}"));
        let before = seen(&volume);
        for device in devices {
            let until = suspended(&device);
            call_each(&node, &volume);
            drop(until);
            // Nothing was taken from a pod, and nobody got half a volume.
            assert_eq!(seen(&volume), before, "{device}");
        }
        node.configure(mode, &key);
        node.take(&["first", "second"], &volume);
        node.bring("last", &volume);
        let page = node.pod_dir("last", &volume).join("page");
        assert_eq!(read(&page), "not on the disk yet");
        node.take(&["last"], &volume);
    }
}

#[test]
fn each_call_answers_in_a_plain_directory() {
    each_call_answers(Layout::Plain, false);
}

#[test]
fn each_call_answers_behind_a_link() {
    each_call_answers(Layout::Linked, false);
}

#[test]
fn each_call_answers_where_a_mount_has_two_places() {
    each_call_answers(Layout::Bound, false);
}

#[test]
fn each_call_answers_where_other_namespaces_see_the_mounts() {
    each_call_answers(Layout::Shared, false);
}

#[test]
fn each_call_answers_where_nobody_else_sees_the_mounts() {
    each_call_answers(Layout::Private, false);
}

#[test]
fn each_call_on_an_encrypted_volume_answers() {
    each_call_answers(Layout::Plain, true);
}

#[test]
fn each_call_on_an_encrypted_volume_answers_where_a_mount_has_two_places() {
    each_call_answers(Layout::Bound, true);
}

/// Runs the case on a group whose disk is a file on a filesystem, `/run/frozen`: frozen, the disk holds all that is
/// written, and device-mapper knows nothing of it.
fn on_a_disk_that_can_freeze(case: impl Fn(&Group)) {
    bash(
        "truncate -s 300M /run/frozen.disk; mkfs.ext4 -q /run/frozen.disk; mkdir -p /run/frozen; \
         mount -o loop /run/frozen.disk /run/frozen",
    );
    let group = Group::on_file("freezing", "/run/frozen/disk", 250 << 20);
    case(&group);
    drop(group);
    eventually("the end of the disk", || {
        let mut umount = assert_cmd::Command::new("umount");
        umount.arg("/run/frozen").ok().is_ok()
    });
}

fn frozen() -> Finally {
    sh("fsfreeze --freeze /run/frozen");
    Finally("fsfreeze --unfreeze /run/frozen".into())
}

#[test]
fn the_last_unmount_waits_for_no_disk_wherever_kubelets_directory_is() {
    on_a_disk_that_can_freeze(|group| {
        for layout in LAYOUTS {
            let mut node = Node::new(Mode::MountOnly);
            let _layout = layout.of(&node);
            let volume = group.linear(&layout.name(), "32m");
            node.bring("pod", &volume);
            let dir = node.pod_dir("pod", &volume);
            fs::write(dir.join("later"), "not on the disk yet").unwrap();
            node.configure(Mode::MountOnly, "[limits]\nmount = 3\n");
            let until = frozen();
            let reply = call(&node, &["unmount", text(&dir)]);
            drop(until);
            reply.is_failure(&["unmounting", text(&dir), "3 s", "SIGKILL"]);
            eventually("the end of the unmount", || seen(&volume) == 0);
            node.configure(Mode::MountOnly, "");
            node.take(&["pod"], &volume);
            node.bring("pod", &volume);
            assert_eq!(read(&dir.join("later")), "not on the disk yet");
            node.take(&["pod"], &volume);
        }
    });
}

#[test]
fn each_call_answers_on_a_disk_that_holds_what_is_written() {
    on_a_disk_that_can_freeze(|group| {
        for mode in BOTH_MODES {
            let mut node = Node::new(mode);
            let volume = group.linear(mode.lv(), "48m");
            for pod in ["first", "second"] {
                node.bring(pod, &volume);
            }
            let page = node.pod_dir("first", &volume).join("page");
            fs::write(&page, "not on the disk yet").unwrap();
            node.configure(mode, SHORT);
            let until = frozen();
            call_each(&node, &volume);
            drop(until);
            let is_over = || processes_named("lvextend").is_empty() && seen(&volume) == 0;
            eventually("the end of what was left behind", is_over);
            node.configure(mode, "");
            node.bring("first", &volume);
            assert_eq!(read(&page), "not on the disk yet");
            node.take(&["first"], &volume);
        }
    });
}

#[test]
fn a_driver_that_is_told_to_stop_waits_for_no_disk() {
    on_a_disk_that_can_freeze(|group| {
        // The mount is made, and the tool has not ended.
        let late = "$REAL \"$@\"; echo $$ >> $HERE/mount.runs
            while [ ! -e $HERE/go ]; do sleep 0.1; done";
        let (tools, mut node) = Tools::new().put("mount", late).node();
        let volume = group.linear("stopped", "32m");
        let call = node.start_mount("pod", &volume);
        tools.wait_for("mount");
        let until = frozen();
        call.signal(nix::sys::signal::Signal::SIGTERM);
        let reply = call.answer();
        drop(until);
        reply.is_failure(&[
            "because the driver was told to stop",
            "undoing a step failed too",
        ]);
        eventually("the end of the unmount", || seen(&volume) == 0);
        node.configure(Mode::MountOnly, "");
        node.visit(&volume);
    });
}
