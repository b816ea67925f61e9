//! A LUKS2 header that stands, and a tag that says that the volume is being made: it is opened and looked into, and
//! only what is inside decides whether a filesystem is made there.

use super::*;

/// Gives the volume the tags that it had while it was made, as vgcfgrestore(8) can. Returns the tags that it had before
/// that.
fn as_if_making(group: &Group, volume: &Volume, fs: &str) -> String {
    let (lv, tags) = (volume.lv(), group.tags(volume.lv()));
    let making = format!("flexvolume.making=luks2:{fs}:{}", luks_uuid(volume));
    group.forget(lv);
    group.lv("lvchange", &["--addtag", &making], lv);
    tags
}

/// An operator's label takes away the subsystem that the header had.
fn label(volume: &Volume) {
    let device = volume.device();
    sh(&format!("cryptsetup config --label mine {device}"));
}

#[test]
fn a_filesystem_inside_is_never_formatted_whatever_the_tags_and_the_header_say() {
    let group = Group::new("again");
    let node = with_key(Mode::MountOnly, "again");
    for (fs, size) in SIZES {
        let volume = group.linear(fs, size).fs(fs).encrypted();
        node.write("pod", &volume, fs);
        // Another filesystem than the one that was being made stays, too.
        for making in [fs, if fs == "xfs" { "ext4" } else { "xfs" }] {
            let tags = as_if_making(&group, &volume, making);
            label(&volume);
            still_holds(&node, &volume, fs);
            assert_eq!(group.tags(fs), tags);
        }
        group.lv("lvremove", &[], fs);
    }
}

#[test]
fn metadata_of_lvm_that_is_restored_from_the_time_of_mkfs_formats_nothing() {
    let (node, group, volume) = with_filled("again-vg");
    let tags = as_if_making(&group, &volume, "ext4");
    sh("vgcfgbackup -qq -f /run/again-vg.meta again-vg");
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
    label(&volume);
    sh("vgcfgrestore -qq -y -f /run/again-vg.meta again-vg");
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
}

#[test]
fn anything_else_inside_is_never_formatted_and_noise_is() {
    const INSIDE: &str = "/dev/mapper/again";
    let group = Group::new("again-noise");
    let node = with_key(Mode::MountOnly, "again-noise");
    let volume = group.linear("data", "48m").encrypted();
    let writes = |words: &str| {
        opens(&volume, "again");
        bash(&format!("{words}; udevadm settle"));
        closes("again");
    };
    node.write("pod", &volume, "data");
    let luks = format!("cryptsetup luksFormat {QUICKLY} --key-file /run/again-noise.key $i");
    for make in [
        "mkswap $i",
        "pvcreate -qq --config devices/scan_lvs=1 $i || mkswap $i",
        "mke2fs -q -O journal_dev $i",
        &luks,
        "mkfs.vfat $i || mkswap $i",
    ] {
        writes(&format!("i={INSIDE}; wipefs -qa $i; {make}"));
        as_if_making(&group, &volume, "ext4");
        refuses_unchanged(&node, &volume, &["inside according to its tag"]);
    }
    // What a killed mkfs leaves, and what a killed luksFormat does.
    for wipe in ["/dev/urandom", "/dev/zero"] {
        opens(&volume, "again");
        overwrite(INSIDE, wipe, 0, 8192);
        closes("again");
        let luks = luks_uuid(&volume);
        node.write("pod", &volume, wipe);
        assert_eq!(luks_uuid(&volume), luks);
        as_if_making(&group, &volume, "ext4");
    }
    // The key slots are written last.
    sh(&format!("cryptsetup erase -q {}", volume.device()));
    node.write("pod", &volume, "new");
    still_holds(&node, &volume, "new");
}

#[test]
fn a_passphrase_that_does_not_open_a_header_that_stands_formats_nothing() {
    let (node, group, volume) = with_filled("again-key");
    let tags = as_if_making(&group, &volume, "ext4");
    let other = with_secret(&volume, "d3Jvbmc=");
    refuses_unchanged(&node, &other, &["does not open again-key/data"]);
    // Nor does a read-only pod change anything but the record.
    let plain = Volume::new(&group, "data");
    node.refuses_mount(&plain, &["set the option `encryption: luks2`"]);
    node.finds(&volume.clone().read_only(), "data");
    assert_eq!(group.tags("data"), tags);
}
