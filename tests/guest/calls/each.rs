//! Each call-out by itself.

use std::path::PathBuf;

use crate::prelude::*;

#[test]
fn attach_and_waitforattach_activate_and_say_the_device() {
    let (node, group, volume) = Node::with_data(Mode::Attach, "inactive");
    let json = volume.json();
    for args in [
        ["attach", &json, &host_name()],
        ["waitforattach", &volume.device(), &json],
        ["waitforattach", "", &json],
    ] {
        group.lv("lvchange", &["-an"], "data");
        // Twice: the second finds it active.
        for _ in 0..2 {
            assert_eq!(node.does(&args).device, Some(volume.device()), "{args:?}");
            assert!(group.is_active("data"));
        }
    }
    assert_eq!(group.tags("data"), "", "nothing was made yet");
}

#[test]
fn a_thin_volume_that_is_skipped_at_activation_is_activated() {
    let node = Node::new(Mode::Attach);
    let group = Group::new("skipped");
    group.pool();
    group.thin("data", "32m");
    group.lv("lvchange", &["-an", "--setactivationskip", "y"], "data");
    let volume = Volume::new(&group, "data");
    node.does(&["attach", &volume.json(), &host_name()]);
    assert!(group.is_active("data"));
}

#[test]
fn attach_for_another_node_does_nothing() {
    let node = Node::new(Mode::Attach);
    let group = Group::new("elsewhere");
    group.linear("data", "32m");
    group.lv("lvchange", &["-an"], "data");
    let volume = Volume::new(&group, "data");
    let reply = node.does(&["attach", &volume.json(), "another-node"]);
    assert_eq!(reply.device, Some(volume.device()));
    assert!(!group.is_active("data"));
    let reply = node.does(&["isattached", &volume.json(), "another-node"]);
    assert_eq!(reply.attached, Some(true));
    node.does(&["detach", &volume.name, "another-node"]);
    // A group that is not on this host may be on the node.
    let volume = Volume::of("nosuch", "data");
    let reply = node.does(&["attach", &volume.json(), &host_name()]);
    assert_eq!(reply.device, Some(volume.device()));
}

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
}

#[test]
fn isattached_tells_the_truth() {
    let node = Node::new(Mode::Attach);
    let group = Group::new("truth");
    let json = group.linear("data", "32m").json();
    let host = host_name();
    let args = ["isattached", &json, &host];
    assert_eq!(node.does(&args).attached, Some(true));
    group.lv("lvchange", &["-an"], "data");
    assert_eq!(node.does(&args).attached, Some(false));
    assert!(!group.is_active("data"), "only asked");
}

#[test]
fn detach_takes_any_word_and_leaves_the_volume_active() {
    let (node, group, volume) = Node::with_data(Mode::Attach, "detached");
    node.up_globally(&volume);
    node.down_globally(&volume);
    for word in [
        &volume.device(),
        "pv0001",
        "",
        "ö/ ü",
        "/dev/mapper/no-such",
        "detached/data",
    ] {
        node.does(&["detach", word, &host_name()]);
    }
    assert!(group.is_active("data"));
}

#[test]
fn detach_deactivates_an_unused_volume_if_configured() {
    let node = Node::with_config(Mode::Attach, "deactivate = true");
    let (group, volume) = Group::with_data("resting");
    for by_name in [true, false] {
        node.up_globally(&volume);
        let word = if by_name {
            volume.name.clone()
        } else {
            volume.device()
        };
        node.does(&["detach", &word, &host_name()]);
        assert!(group.is_active("data"), "it is mounted");
        let dir = node.global_dir(&volume);
        node.does(&["unmountdevice", text(&dir)]);
        assert!(!group.is_active("data"), "after a restart no detach comes");

        node.does(&["attach", &volume.json(), &host_name()]);
        node.does(&["detach", &word, "another-node"]);
        assert!(group.is_active("data"), "not for this node");
        node.does(&["detach", &word, &host_name()]);
        assert!(!group.is_active("data"), "by {word}");
    }
}

#[test]
fn the_last_unmount_deactivates_if_configured() {
    let node = Node::with_config(Mode::MountOnly, "deactivate = true");
    let (group, volume) = Group::with_data("napping");
    write_synced(&node.up("one", &volume).join("page"), "kept");
    let two = node.up("two", &volume);
    node.down("one", &volume);
    assert_eq!(read(&two.join("page")), "kept");
    node.down("two", &volume);
    assert!(!group.is_active("data"));
    assert_eq!(read(&node.up("one", &volume).join("page")), "kept");
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
        node.down("pod", &volume);
        node.down_globally(&volume);
        assert_eq!(mount_at(&pod), None);
        assert!(group.is_active(lv), "{mode:?}");
        let said = read(&log);
        assert!(said.contains("\"left-active\":\"deactivating "), "{said}");
        drop(process);
        // It is deactivated after its next use.
        node.up("pod", &volume);
        node.down("pod", &volume);
        node.down_globally(&volume);
        assert!(!group.is_active(lv), "{mode:?}");
    }
}
