//! A LUKS2 header that stands, and a tag that says that the volume is being made: it is opened and looked into, and
//! only what is inside decides whether a filesystem is made there.

use super::*;
use crate::crypt::lost::{filled, refuses_unchanged, still_holds};

/// Brings back the tags from while the volume was made, as vgcfgrestore(8) does.
fn as_if_making(group: &Group, volume: &Volume, fs: &str) -> String {
    let luks = run("cryptsetup", &["luksUUID", &volume.device()]);
    let making = format!("flexvolume.making=luks2:{fs}:{}", luks.trim());
    let tags = group.tags(volume.lv());
    let old = tags
        .split(',')
        .filter(|tag| !tag.is_empty() && *tag != making);
    let mut change = vec!["--addtag", &making];
    change.extend(old.flat_map(|tag| ["--deltag", tag]));
    group.lv("lvchange", &change, volume.lv());
    tags
}

fn cryptsetup(volume: &Volume, words: &str) {
    let device = volume.device();
    let key = format!("/run/{}.key", volume.vg());
    shell(&format!(
        "cryptsetup open --key-file {key} {device} again; {words}; udevadm settle; cryptsetup close again"
    ));
}

#[test]
fn a_filesystem_inside_is_never_formatted_whatever_the_tags_and_the_header_say() {
    let group = Group::new("again");
    let node = with_key(Mode::MountOnly, "again");
    for (fs, size) in SIZES {
        let volume = group.linear(fs, size).fs(fs).encrypted();
        node.write("pod", &volume, fs);
        let tags = as_if_making(&group, &volume, fs);
        // An operator's label takes away the subsystem that the header had.
        let label = ["config", "--label", "mine", &volume.device()];
        run("cryptsetup", &label);
        still_holds(&node, &volume, fs);
        assert_eq!(group.tags(fs), tags);
        // Another filesystem than the one that was being made stays, too.
        as_if_making(&group, &volume, if fs == "xfs" { "ext4" } else { "xfs" });
        still_holds(&node, &volume, fs);
        assert_eq!(group.tags(fs), tags);
        group.lv("lvremove", &[], fs);
    }
}

#[test]
fn metadata_of_lvm_that_is_restored_from_the_time_of_mkfs_formats_nothing() {
    let group = Group::new("again-vg");
    let node = with_key(Mode::MountOnly, "again-vg");
    let volume = filled(&node, &group, "data");
    let tags = as_if_making(&group, &volume, "ext4");
    run(
        "vgcfgbackup",
        &["-qq", "-f", "/run/again-vg.meta", "again-vg"],
    );
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
    run(
        "cryptsetup",
        &["config", "--label", "mine", &volume.device()],
    );
    run(
        "vgcfgrestore",
        &["-qq", "-y", "-f", "/run/again-vg.meta", "again-vg"],
    );
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
}

#[test]
fn anything_else_inside_is_never_formatted_and_noise_is() {
    let group = Group::new("again-noise");
    let node = with_key(Mode::MountOnly, "again-noise");
    let volume = group.linear("data", "48m").encrypted();
    let inside = "/dev/mapper/again";
    node.write("pod", &volume, "data");
    for make in [
        &format!("mkswap {inside}"),
        &format!("pvcreate -qq --config 'devices {{ scan_lvs = 1 }}' {inside} || mkswap {inside}"),
        &format!("mke2fs -q -O journal_dev {inside}"),
        &format!(
            "cryptsetup luksFormat -q --pbkdf-memory 32 --pbkdf-force-iterations 4 --key-file /run/again-noise.key {inside}"
        ),
        &format!("mkfs.vfat {inside} || mkswap {inside}"),
    ] {
        cryptsetup(&volume, &format!("wipefs -qa {inside}; {make}"));
        as_if_making(&group, &volume, "ext4");
        refuses_unchanged(&node, &volume, &["inside according to its tag"]);
    }
    // What a killed mkfs leaves, and what a killed luksFormat does.
    for wipe in ["/dev/urandom", "/dev/zero"] {
        cryptsetup(
            &volume,
            &format!("dd if={wipe} of={inside} bs=1M count=32 conv=fsync status=none"),
        );
        let luks = run("cryptsetup", &["luksUUID", &volume.device()]);
        node.write("pod", &volume, wipe);
        assert_eq!(run("cryptsetup", &["luksUUID", &volume.device()]), luks);
        as_if_making(&group, &volume, "ext4");
    }
    // The key slots are written last.
    shell(&format!("cryptsetup erase -q {}", volume.device()));
    node.write("pod", &volume, "new");
    still_holds(&node, &volume, "new");
}

#[test]
fn a_passphrase_that_does_not_open_a_header_that_stands_formats_nothing() {
    let group = Group::new("again-key");
    let node = with_key(Mode::MountOnly, "again-key");
    let volume = filled(&node, &group, "data");
    let tags = as_if_making(&group, &volume, "ext4");
    let other = with_secret(&volume, "d3Jvbmc=");
    refuses_unchanged(&node, &other, &["does not open again-key/data"]);
    // Nor does a read-only pod change anything but the record.
    node.refuses_mount(
        &Volume::new(&group, "data"),
        &["set the option `encryption: luks2`"],
    );
    let reader = volume.clone().read_only();
    assert_eq!(read(&node.up("pod", &reader).join("page")), "data");
    node.down("pod", &reader);
    assert_eq!(group.tags("data"), tags);
}
