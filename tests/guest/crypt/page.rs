//! The commands of docs/encryption.md, as they are printed there.

use super::*;
use crate::page::{self, section};

const PAGE: &str = include_str!("../../../docs/encryption.md");
const BIN: &str = "/run/encryption-page";
const KEY: &str = "/run/flexvolume-lvm.key";

/// A Secret that is the node's file.
const KUBECTL: &str = r#"#!/bin/sh
case $1 in
    get) base64 -w0 /run/flexvolume-lvm.key ;;
    create) for word; do case $word in passphrase=*) cat "${word#*=}" ;; esac; done ;;
    replace) cat > /run/flexvolume-lvm.key ;;
esac
"#;

/// The blocks of shell below this heading.
fn blocks(heading: &str) -> Vec<String> {
    let mut blocks = page::blocks(section(PAGE, heading), "sh");
    // Only /run can be written.
    for (from, to) in [("/mnt/", "/run/"), ("/etc/", "/run/"), ("/root/", "/run/")] {
        blocks = blocks.iter().map(|block| block.replace(from, to)).collect();
    }
    blocks
}

fn does(lines: &str) -> String {
    bash(&format!("PATH={BIN}:$PATH; {lines}"))
}

/// Changes the passphrase of two volumes as the page says: first that in the node's file, then that in a Secret.
fn change_passphrases(node: &Node, volumes: [&Volume; 2]) {
    let steps = blocks("Change the passphrase");
    let [
        of_file,
        of_secret,
        make,
        add,
        to_file,
        to_secret,
        remove,
        finish,
    ] = &steps[..]
    else {
        panic!("{PAGE}");
    };
    let does_for_each = |step: &str| {
        let of_each = volumes.map(|volume| does(&step.replace("web-data", volume.lv())));
        of_each.concat()
    };
    for (save, change) in [(of_file, to_file), (of_secret, to_secret)] {
        let before = fs::read(KEY).unwrap();
        does(save);
        does(make);
        does_for_each(add);
        does(change);
        // Somebody repeats the step.
        does(change);
        assert!(fs::read(KEY).unwrap() != before);
        let said = does_for_each(remove);
        assert_eq!(said.matches("argon2id").count(), 2, "{said}");
        does(finish);
        node.finds(volumes[1], "second");
    }
}

#[test]
fn each_command_of_the_page_works_as_it_is_printed() {
    let [made] = &blocks("With a file of the node")[..] else {
        panic!("{PAGE}");
    };
    does(made);
    let config = format!("[encryption]\nkey_file = '/run/flexvolume-lvm.key'\n{QUICK}");
    let node = Node::with_config(Mode::MountOnly, &config);
    page::named(&node, BIN);
    written(format!("{BIN}/kubectl").as_ref(), KUBECTL, 0o755);
    let disk = Disk::new("encryption-page", 256 << 20);
    let group = Group::on("vg0", &[&disk.path()]);
    let volume = group.linear("web-data", "48m").encrypted();
    write_synced(&node.up("pod", &volume).join("page"), "kept");

    let second = group.linear("second", "48m").encrypted();
    node.write("pod", &second, "second");
    change_passphrases(&node, [&volume, &second]);
    node.down("pod", &volume);
    node.finds(&volume, "kept");

    let [back_up, restore, from_second_copy] = &blocks("Back up the header")[..] else {
        panic!("{PAGE}");
    };
    does(back_up);
    bash("dd if=/dev/zero of=/dev/vg0/web-data bs=1M count=16 conv=fsync status=none");
    node.refuses_mount(&volume, &["luksHeaderRestore"]);
    does(restore);
    bash("mkswap /dev/vg0/web-data; udevadm settle");
    node.refuses_mount(&volume, &["there is swap", "docs/encryption.md"]);
    does(from_second_copy);
    node.finds(&volume, "kept");

    let [adopt] = &blocks("Take over a volume of yours")[..] else {
        panic!("{PAGE}");
    };
    let mine = group.linear("mine", "48m").encrypted();
    bash(&format!(
        "cryptsetup luksFormat {QUICKLY} /dev/vg0/mine /run/flexvolume-lvm.key
        cryptsetup open --key-file /run/flexvolume-lvm.key /dev/vg0/mine mine
        mkfs.ext4 -q /dev/mapper/mine; cryptsetup close mine"
    ));
    does(adopt);
    node.write("mine", &mine, "kept");

    let [open, close] = &blocks("Without the cluster")[..] else {
        panic!("{PAGE}");
    };
    group.lv("lvchange", &["-an"], "web-data");
    let said = does(open);
    assert_eq!(said.matches(&luks_uuid(&volume)).count(), 2, "{said}");
    assert_eq!(read(Path::new("/run/web-data/page")), "kept");
    does(close);
    node.finds(&volume, "kept");
}

#[test]
fn an_encrypted_volume_is_grown_by_hand_as_the_page_of_the_second_day_says() {
    const DAY_TWO: &str = include_str!("../../../docs/day-two.md");
    let node = with_key(Mode::MountOnly, "grown");
    let group = Group::of_size("grown", 2 << 30);
    let path = page::named(&node, "/run/grown");
    let grow = page::blocks(section(DAY_TWO, "Grow a volume"), "sh").concat();
    let grow = grow.replace("1G", "160M");
    for (fs, size) in SIZES {
        let volume = group.linear(fs, size).fs(fs).encrypted();
        let dir = node.up("pod", &volume);
        let before = filesystem_size(&dir);
        let mut grow = grow.replace("vg0/web-data", &format!("grown/{fs}"));
        if fs == "btrfs" {
            grow = grow.replace(" --resizefs", "");
        }
        bash(&format!("{path}{grow}"));
        let grown = before + (100 << 20);
        assert_eq!(filesystem_size(&dir) > grown, fs != "btrfs", "{fs}");
        node.down("pod", &volume);
        assert!(filesystem_size(&node.up("pod", &volume)) > grown, "{fs}");
        node.down("pod", &volume);
    }
}
