//! Thin volumes: which blocks were written, and about which LVM's metadata and the pool disagree.

use std::fs;

use crate::page::{self, section};
use crate::prelude::*;

const PAGE: &str = include_str!("../../../docs/on-call.md");

fn content_of(volume: &Volume) -> String {
    let (dir, device) = ("/run/content-of-thin", volume.device());
    bash(&format!(
        "mkdir -p {dir}; mount -o ro {device} {dir}; cat {dir}/page; umount {dir}"
    ))
}

/// The kernel has merged the snapshot once the volume is active. LVM's metadata says so when LVM has polled.
#[test]
fn a_merged_thin_volume_that_lvm_has_not_polled_is_mounted_after_what_the_page_says() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("unpolled");
    group.pool();
    let volume = group.thin("data", "32m");
    node.write("pod", &volume, "before");
    let dir = node.up("pod", &volume);
    sh("lvcreate -qq -y -s -n earlier unpolled/data");
    write_synced(&dir.join("page"), "after");
    sh("lvconvert -qq --merge unpolled/earlier");
    let poll = "lvchange --poll y VG/LV";
    assert!(PAGE.contains(&format!("`{poll}`")), "{poll}");
    let polls = || sh(&poll.replace("VG/LV", "unpolled/data"));

    // As long as the merge waits, the command changes nothing.
    polls();
    node.down("pod", &volume);
    polls();
    node.refuses_mount(&volume, &["[merge-waits]"]);
    assert_eq!(content_of(&volume), "after");

    sh("lvchange -an unpolled/data");
    sh("lvchange -ay --poll n unpolled/data");
    assert_eq!(content_of(&volume), "before");
    node.refuses_mount(&volume, &["[merge-waits]"]);
    polls();
    eventually("the end of the merge", || {
        sh("lvs --noheadings -o lv_attr unpolled/data").starts_with('V')
    });
    node.finds(&volume, "before");
    node.write("pod", &volume, "later");
    sh("lvchange -an unpolled/data");
    node.finds(&volume, "later");
}

/// After a `vgcfgrestore` of older metadata.
#[test]
fn a_pool_of_which_lvm_has_older_metadata_gets_the_newest_by_what_the_page_says() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("rolled-back");
    group.pool();
    let volume = group.thin("data", "32m");
    node.write("pod", &volume, "kept");
    sh("vgcfgbackup -qq -f /run/rolled-back.older rolled-back");
    let second = group.thin("second", "32m");
    node.write("pod", &second, "kept, too");
    bash(
        "lvchange -an -S pool_lv=pool rolled-back; lvchange -an rolled-back/pool
        vgcfgrestore -y --force -f /run/rolled-back.older rolled-back",
    );
    let refused = node.mount("refused", &volume);
    refused.is_failure(&["activating", "transaction_id is ", "repair nothing"]);
    let (_, number) = refused.message.split_once("transaction_id is ").unwrap();
    let number = number.split(',').next().unwrap();

    let blocks = page::blocks(section(PAGE, "5. More on some of them"), "sh");
    let mut blocks = blocks.iter();
    let block = blocks
        .find(|block| block.contains("transaction_id"))
        .unwrap();
    let [looks, restores] = &block.lines().collect::<Vec<_>>()[..] else {
        panic!("{block}");
    };
    let looks = looks.replace("VG", "rolled-back").replace("NUMBER", number);
    let files = bash(&looks);
    let newest = files.lines().next().unwrap();
    let restores = restores
        .replace("VG", "rolled-back")
        .replace("POOL", "pool");
    let script = "/run/rolled-back.sh";
    fs::write(script, restores.replace("FILE", newest)).unwrap();
    agreeing(&format!("bash {script}"));
    node.finds(&volume, "kept");
    node.finds(&second, "kept, too");
}

/// The driver has created the volume, and nobody has mounted it yet. In the places that the driver reads, all is zero.
#[test]
fn a_new_thin_volume_to_which_somebody_has_written_is_left_alone() {
    let group = Group::new("written");
    group.pool();
    let lines = "[volume_group.written]\ncreate = true\nthin_pool = 'pool'\n";
    let node = Node::with_config(Mode::Attach, lines);
    let volume = Volume::new(&group, "data").with("size", "64m");
    node.does(&["attach", &volume.json(), &host_name()]);
    assert!(group.data_percent("data") < 0.001);
    let device = volume.device();
    sh(&format!(
        "dd if=/dev/urandom of={device} bs=64k seek=320 count=1 conv=fsync status=none"
    ));
    let words = [
        "of its blocks were written",
        "lvremove written/data",
        "[new-not-blank]",
    ];
    node.refuses_mount(&volume, &words);
    node.prints(&["check", "written/data"], "lvremove written/data", 1);
    sh("lvremove -qq -y written/data");
    node.visit(&volume);
}

#[test]
fn what_a_failed_mkfs_wrote_to_a_new_thin_volume_is_nobodys_data() {
    const FAILS: &str = r#"[ -e $HERE/go ] && exec $REAL "$@"
for device; do :; done
dd if=/dev/zero of=$device bs=64k seek=320 count=1 conv=fsync status=none
echo failed >&2; exit 1"#;
    let group = Group::new("zeroed");
    group.pool();
    let tools = Tools::new().put("mkfs.ext4", FAILS);
    let lines = "[volume_group.zeroed]\ncreate = true\nthin_pool = 'pool'\n";
    let node = Node::with_config(Mode::MountOnly, &format!("{}{lines}", tools.config()));
    let volume = Volume::new(&group, "data").with("size", "64m");
    node.mount("pod", &volume).is_failure(&["failed [mkfs]"]);
    assert!(group.data_percent("data") > 0.0);
    tools.let_go();
    node.visit(&volume);
}
