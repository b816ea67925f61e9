//! What people ask at a shell: what the next mount would do, and what it may do.

use std::path::Path;

use crate::marks::put;
use crate::prelude::*;

#[test]
fn a_permission_is_for_what_it_names_and_only_where_a_mount_asks_for_it() {
    let node = Node::new(Mode::MountOnly);
    let (group, volume) = Group::with_data("permits");
    let allow = ["allow-format", "permits/data", "--yes"];
    // Blank: nothing needs to be given up, and nothing is.
    node.prints(&allow, "in any case", 0);
    assert_eq!(group.tags("data"), "");
    // Raw data: it is named first, and nobody is there to answer.
    put(&volume.device(), 0, b"raw");
    node.refuses_by_hand(&allow[..2], "data at byte 0");
    assert_eq!(group.tags("data"), "");
    node.prints(&allow, "Given up: data at byte 0", 0);
    // Something else is there by now.
    put(&volume.device(), 0, &[0; 8]);
    put(&volume.device(), 1024, b"other");
    node.mount_fails(&volume, &["data at byte 1024", "allow-format"]);
    node.by_hand(&allow);
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
    node.prints(&allow, "is mounted at", 1);
}

#[test]
fn no_permission_for_what_cannot_be_read_or_is_in_use() {
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("permitless", 72 << 20);
    let group = Group::on("badly", &[&disk.path()]);
    let volume = group.linear("data", "64m");
    disk.fail(0..64 << 20);
    for command in ["allow-format", "adopt"] {
        let args = [command, "badly/data", "--yes"];
        let args = if command == "adopt" {
            &args[..2]
        } else {
            &args
        };
        node.refuses_by_hand(args, "cannot be read at byte 0");
    }
    for line in ["status", "check"] {
        let (said, _) = node.says(&[line, "badly/data"]);
        assert!(said.contains("cannot be read at byte 0"), "{line}: {said}");
    }
    disk.heal();
    put(&volume.device(), 0, b"raw");
    let table = format!("0 131072 linear {} 0", volume.device());
    run("dmsetup", &["create", "upper", "--table", &table]);
    node.refuses_by_hand(&["allow-format", "badly/data", "--yes"], "another device");
    run("dmsetup", &["remove", "--retry", "upper"]);
    let device = run("losetup", &["--find", "--show", &volume.device()]);
    node.refuses_by_hand(&["allow-format", "badly/data", "--yes"], "loop device");
    run("losetup", &["--detach", &device]);
    assert_eq!(group.tags("data"), "");
}

#[test]
fn check_tells_what_the_next_mount_does_and_changes_nothing() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("checked");
    for lv in ["blank", "ext4", "up", "raw", "off"] {
        group.linear(lv, "32m");
    }
    let volume = |lv| Volume::new(&group, lv);
    run("mkfs.ext4", &["-q", &volume("ext4").device()]);
    node.up("pod", &volume("up"));
    put(&volume("raw").device(), 0, b"raw");
    group.lv("lvchange", &["-an"], "off");
    let before: Vec<String> = ["blank", "ext4", "raw"].map(|lv| group.tags(lv)).to_vec();
    for (lv, args, words, code) in [
        ("blank", &[][..], "make ext4", 0),
        ("ext4", &[], "check it with e2fsck", 0),
        ("ext4", &["--fs", "xfs"], "holds ext4, not xfs", 1),
        ("ext4", &["--ro"], "mount ext4", 0),
        ("up", &[], "bind from", 0),
        ("up", &["--fs", "xfs"], "holds ext4, not xfs", 1),
        ("raw", &[], "data at byte 0", 1),
        ("off", &[], "not active", 1),
        ("nope", &[], "there is no logical volume", 1),
    ] {
        let id = format!("checked/{lv}");
        node.prints(&[&["check", &id], args].concat(), words, code);
    }
    let count = "3 would mount, 1 would be refused, 1 not active";
    node.prints(&["check", "checked"], count, 1);
    let (said, _) = node.says(&["check", "checked", "--json"]);
    for words in ["\"would_mount\": 3", "\"reason\": \"doubts\""] {
        assert!(said.contains(words), "{said}");
    }
    let after: Vec<String> = ["blank", "ext4", "raw"].map(|lv| group.tags(lv)).to_vec();
    assert_eq!(before, after);
    assert!(!group.is_active("off"));
    assert!(!Path::new("/dev/mapper/checked-nope").exists());
}

#[test]
fn check_waits_for_a_call_that_works_on_the_volume() {
    let node = Node::new(Mode::MountOnly);
    let (_group, volume) = Group::with_data("worked");
    let uuid = sh("lvs --noheadings -o lv_uuid worked/data").replace(['-', ' '], "");
    // As that call leaves it half way.
    node.up("pod", &volume);
    node.down("pod", &volume);
    let call = holds(&format!("/run/flexvolume-lvm/{uuid}.lock"));
    // It is neither refused nor an alarm, and nobody can say yet that it would mount.
    let busy = node.prints(&["check", "worked/data"], "has been at work on it for", 1);
    assert!(busy.contains("sleep (pid "), "{busy}");
    node.prints(&["check"], "0 would be refused, 1 busy", 1);
    node.prints(&["status"], "busy", 0);
    let refused = r#"next_mount_refused{vg="worked",lv="data",verdict="busy"} 0"#;
    node.prints(&["metrics"], refused, 0);
    let (said, _) = node.says(&["doctor"]);
    assert!(!said.contains("worked/data"), "{said}");
    drop(call);
    node.prints(&["check", "worked/data"], "mount ext4", 0);
}

#[test]
fn status_and_doctor_say_what_the_next_mount_says() {
    let node = Node::new(Mode::MountOnly);
    let (group, volume) = Group::with_data("told");
    node.up("pod", &volume);
    node.down("pod", &volume);
    run("wipefs", &["-qa", &volume.device()]);
    for args in [&["status", "told/data"][..], &["status"], &["doctor"]] {
        let (said, _) = node.says(args);
        let words = if args == ["status"] {
            "doubts"
        } else {
            "should hold ext4"
        };
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert_eq!(node.says(&["doctor"]).1, 1);
    group.lv("lvchange", &["-an"], "data");
    let (said, _) = node.says(&["status", "told/data"]);
    assert!(!said.contains("Writable"), "{said}");
}
