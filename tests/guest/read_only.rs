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
    for (fs, size) in FILESYSTEMS {
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
fn a_writer_writes_though_only_readers_are_left() {
    in_both_modes(&Group::new("left"), |node, volume| {
        node.up("first", volume);
        let reader = node.up("reader", &volume.clone().read_only());
        node.down("first", volume);
        node.down_globally(volume);
        let writer = node.up("writer", volume);
        fs::write(writer.join("page"), "kept").unwrap();
        assert_eq!(read(&reader.join("page")), "kept");
        assert_read_only(&reader);

        // A call that was killed before it made its bind writable is repeated.
        run("mount", &["-o", "remount,bind,ro", text(&writer)]);
        assert_read_only(&writer);
        node.mount("writer", volume).is_success();
        fs::write(writer.join("page"), "kept").unwrap();
        for pod in ["writer", "reader"] {
            node.down(pod, volume);
        }
    });
}

#[test]
fn mount_options_are_given_to_the_filesystem() {
    let lines = "[filesystem.ext4]\nmount_options = \"noatime\"\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let (_group, volume) = Group::with_data("options");
    let volume = volume.with("mountoptions", "nodev,data=journal");
    let dir = node.up("pod", &volume);
    let options = mount_at(&dir).unwrap().options;
    for option in ["noatime", "nodev", "data=journal"] {
        let mut all = options.split([',', ' ']);
        assert!(all.any(|one| one == option), "{option} in {options}");
    }
    node.down("pod", &volume);

    // One of another filesystem. The volume is checked before that, which writes to it.
    let volume = volume.with("mountoptions", "largeio");
    let refused = node.mount("refused", &volume);
    refused.is_failure(&["largeio"]);
}
