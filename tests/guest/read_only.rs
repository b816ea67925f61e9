//! Volumes that are only read.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::prelude::*;

fn assert_read_only(dir: &Path) {
    let error = fs::write(dir.join("page"), "changed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn a_read_only_volume_is_mounted_read_only() {
    let group = Group::new("readonly");
    for (fs, size) in [("ext4", "32m"), ("xfs", "300m"), ("btrfs", "128m")] {
        for mode in BOTH_MODES {
            let (node, lv) = (Node::new(mode), format!("{fs}-{}", mode.lv()));
            let volume = group.linear(&lv, size).fs(fs);
            node.write("writer", &volume, "kept");
            node.down_globally(&volume);

            let volume = volume.read_only();
            let dir = node.up("reader", &volume);
            assert_eq!(read(&dir.join("page")), "kept");
            assert_read_only(&dir);
            node.down("reader", &volume);
            node.down_globally(&volume);
        }
    }
}

#[test]
fn a_reader_beside_a_writer_cannot_write() {
    let group = Group::new("beside");
    for mode in BOTH_MODES {
        let (node, lv) = (Node::new(mode), mode.lv());
        let volume = group.linear(lv, "32m");
        let writer = node.up("writer", &volume);
        let reader = node.up("reader", &volume.clone().read_only());
        write_synced(&writer.join("page"), "seen");
        assert_eq!(read(&reader.join("page")), "seen");
        assert_read_only(&reader);
        node.down("reader", &volume);
        write_synced(&writer.join("page"), "still written");
        node.down("writer", &volume);
        node.down_globally(&volume);
    }
}

#[test]
fn a_writer_writes_though_only_readers_are_left() {
    let group = Group::new("left");
    for mode in BOTH_MODES {
        let (node, lv) = (Node::new(mode), mode.lv());
        let volume = group.linear(lv, "32m");
        node.up("first", &volume);
        let reader = node.up("reader", &volume.clone().read_only());
        node.down("first", &volume);
        if mode == Mode::Attach {
            node.down_globally(&volume);
        }
        let writer = node.up("writer", &volume);
        fs::write(writer.join("page"), "kept").unwrap();
        assert_eq!(fs::read_to_string(reader.join("page")).unwrap(), "kept");
        fs::write(reader.join("page"), "").unwrap_err();

        // A call that was killed before it made its bind writable is repeated.
        run("mount", &["-o", "remount,bind,ro", text(&writer)]);
        fs::write(writer.join("page"), "").unwrap_err();
        node.done(&["mount", text(&writer), &volume.json_for("writer")]);
        fs::write(writer.join("page"), "kept").unwrap();
        for pod in ["writer", "reader"] {
            node.down(pod, &volume);
        }
        node.down_globally(&volume);
    }
}

#[test]
fn a_writer_beside_a_reader_is_told_why_it_cannot_be() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "late");
    node.up("first", &volume);
    node.down("first", &volume);
    node.up("reader", &volume.clone().read_only());
    node.mount_fails(&volume, &["read-only"]);
}

#[test]
fn a_blank_volume_that_is_only_read_is_not_formatted() {
    let group = Group::new("blank");
    for mode in BOTH_MODES {
        let (node, lv) = (Node::new(mode), mode.lv());
        let volume = group.linear(lv, "32m").read_only();
        node.refuses_volume(&volume, &["read-only"]);
    }
}

#[test]
fn mount_options_are_given_to_the_filesystem() {
    let lines = "[filesystem.ext4]\nmount_options = \"noatime\"\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let group = Group::new("options");
    let volume = group
        .linear("data", "32m")
        .with("mountoptions", "nodev,data=journal");
    let dir = node.up("pod", &volume);
    let options = mount_at(&dir).unwrap().options;
    for option in ["noatime", "nodev", "data=journal"] {
        let mut all = options.split([',', ' ']);
        assert!(all.any(|one| one == option), "{option} in {options}");
    }
    node.down("pod", &volume);

    for (bad, word) in [
        ("nosuchoption", "nosuchoption"),
        ("bind", "bind"),
        ("remount", "remount"),
        ("noatime,loop", "loop"),
    ] {
        let volume = volume.clone().with("mountoptions", bad);
        node.mount_fails(&volume, &[word]);
    }
}
