//! The commands of docs/encryption.md, as they are printed there.

use super::*;
use crate::page::{self, section};

const PAGE: &str = include_str!("../../../docs/encryption.md");
const BIN: &str = "/run/encryption-page";

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

#[test]
fn each_command_of_the_page_works_as_it_is_printed() {
    let [made] = &blocks("With a file of the node")[..] else {
        panic!("{PAGE}");
    };
    does(made);
    let config = format!("[encryption]\nkey_file = '/run/flexvolume-lvm.key'\n{QUICK}");
    let node = Node::with_config(Mode::MountOnly, &config);
    page::named(&node, BIN);
    // The Secret's, in a cluster.
    let secret = "#!/bin/sh\nbase64 -w0 /run/flexvolume-lvm.key\n";
    fs::write(format!("{BIN}/kubectl"), secret).unwrap();
    bash(&format!("chmod 755 {BIN}/kubectl"));
    let disk = Disk::new("encryption-page", 128 << 20);
    let group = Group::on("vg0", &[&disk.path()]);
    let volume = group.linear("web-data", "48m").encrypted();
    write_synced(&node.up("pod", &volume).join("page"), "kept");

    let [add, change, with_secret] = &blocks("Change the passphrase")[..] else {
        panic!("{PAGE}");
    };
    does(add);
    let said = does(change);
    assert_eq!(said.matches("argon2id").count(), 1, "{said}");
    node.down("pod", &volume);
    does("(umask 077; head -c 32 /dev/urandom > /run/flexvolume-lvm.new)");
    does(with_secret);
    node.write("next", &volume, "kept");

    let [back_up, restore] = &blocks("Back up the header")[..] else {
        panic!("{PAGE}");
    };
    does(back_up);
    bash("dd if=/dev/zero of=/dev/vg0/web-data bs=1M count=16 conv=fsync status=none");
    node.refuses_mount(&volume, &["luksHeaderRestore"]);
    does(restore);

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
