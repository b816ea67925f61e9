//! A volume with a LUKS2 header and a tag that says that the volume is being made. The driver opens the volume and
//! reads what is inside. Only this decides whether the driver makes a filesystem there.

use super::forge::Copy;
use super::{forge, *};
use crate::kills::trial::is_mended;

/// Gives the volume the tags that it had while it was made, as vgcfgrestore(8) can. Returns the tags that it had before
/// that.
pub fn as_if_making(group: &Group, volume: &Volume, fs: &str) -> String {
    let tags = group.tags(volume.lv());
    let first = tags.split(',').next().unwrap();
    let inside = first.rsplit(':').next().unwrap();
    tags_as_if_making(
        group,
        volume,
        &format!("{fs}:{}:{inside}", luks_uuid(volume)),
    );
    tags
}

/// The same with the tag of an older driver, which let mkfs choose the UUID of the filesystem inside.
fn as_if_older(group: &Group, volume: &Volume, fs: &str) -> String {
    let tags = group.tags(volume.lv());
    tags_as_if_making(group, volume, &format!("{fs}:{}", luks_uuid(volume)));
    tags
}

fn tags_as_if_making(group: &Group, volume: &Volume, what: &str) {
    let lv = volume.lv();
    let making = format!("flexvolume.making=luks2:{what}");
    group.forget(lv);
    group.lv("lvchange", &["--addtag", &making], lv);
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
        // The next volume is in the same place.
        run("blkdiscard", &["--force", "--zeroout", &volume.device()]);
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

/// luksFormat writes the key slots into one copy after the other, and may be killed between the two.
#[test]
fn a_header_of_which_only_the_newer_copy_has_key_slots_is_opened() {
    const SEQUENCE: usize = 16;
    let (node, group, volume) = with_filled("again-copy");
    let (device, copy) = (volume.device(), Copy::read(&volume.device(), 1));
    let mut json: serde_json::Value = serde_json::from_str(&copy.json()).unwrap();
    json["keyslots"] = serde_json::json!({});
    json["digests"]["0"]["keyslots"] = serde_json::json!([]);
    let newer = u64::from_be_bytes(copy.0[SEQUENCE..][..8].try_into().unwrap());
    let older = copy
        .with_json(&json.to_string())
        .with(SEQUENCE, &(newer - 1).to_be_bytes());
    let older = older.summed("sha256");
    let tags = as_if_making(&group, &volume, "ext4");
    // cryptsetup itself repairs an older copy whenever it reads the header.
    forge::write(&device, forge::COPY, &older);
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
    // Without the copy that has them, nobody can open the volume.
    forge::write(&device, forge::COPY, &older);
    forge::write(&device, 0, &[0; forge::COPY]);
    refuses_unchanged(&node, &volume, &["without a key slot", "[luks-header]"]);
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

/// Opens the volume, and has these commands work on the device inside, `$i`.
fn works_inside(volume: &Volume, commands: &str) {
    opens(volume, "again");
    bash(&format!("i=/dev/mapper/again; {commands}; udevadm settle"));
    closes("again");
}

#[test]
fn an_ext_inside_that_lost_its_first_superblock_is_not_formatted_whatever_an_older_tag_says() {
    let (node, group, volume) = with_filled("again-first");
    // The superblock, the first page, the first MiB.
    for lost in ["bs=1k seek=1 count=1", "bs=4k count=1", "bs=1M count=1"] {
        let tags = as_if_older(&group, &volume, "ext4");
        let wipe = format!(
            "dd if=$i of=/run/again-first.kept bs=1M count=1 status=none
            dd if=/dev/zero of=$i {lost} conv=fsync status=none"
        );
        works_inside(&volume, &wipe);
        let words = [
            "inside according to its tag",
            "there is an ext backup superblock",
            "e2fsck -b",
        ];
        refuses_unchanged(&node, &volume, &words);
        works_inside(
            &volume,
            "dd if=/run/again-first.kept of=$i bs=1M conv=fsync status=none",
        );
        still_holds(&node, &volume, "data");
        assert_eq!(group.tags("data"), tags);
    }
}

/// blkid of util-linux 2.41 does not name such an ext, and an older one leaves it to e2fsck.
#[test]
fn an_ext_inside_whose_superblock_has_a_wrong_checksum_is_repaired_as_the_message_says() {
    let (node, _group, volume) = with_filled("again-checksum");
    works_inside(
        &volume,
        "printf 'sum?' | dd of=$i bs=1 seek=2044 conv=notrunc,fsync status=none",
    );
    let refused = node.mount("pod", &volume);
    refused.is_failure(&["cryptsetup open", "debugfs ", "cryptsetup close"]);
    assert!(is_mended(&volume, &refused.message));
    still_holds(&node, &volume, "data");
}

/// Nothing inside can be a removed volume's, since that had another key: not even what is older than the volume.
#[test]
fn what_is_older_than_the_volume_inside_is_never_formatted() {
    let (node, group, volume) = with_filled("again-older");
    as_if_making(&group, &volume, "ext4");
    works_inside(
        &volume,
        "E2FSPROGS_FAKE_TIME=1500000000 mkfs.ext4 -qF $i; mount $i /mnt; printf older > /mnt/page; umount /mnt
        dd if=/dev/zero of=$i bs=1M count=1 conv=fsync status=none",
    );
    let words = ["there is an ext backup superblock", "e2fsck -b"];
    refuses_unchanged(&node, &volume, &words);
}

/// No mkfs writes these before its first superblock.
#[test]
fn copies_of_a_superblock_inside_are_signs_of_data_whatever_the_tags_say() {
    let group = Group::new("again-copies");
    let node = with_key(Mode::MountOnly, "again-copies");
    // The first superblock, of btrfs at 64 KiB; the first MiB.
    for (fs, size, lost) in [
        ("xfs", "320m", "bs=4k count=1"),
        ("xfs", "320m", "bs=1M count=1"),
        ("btrfs", "144m", "bs=4k seek=16 count=1"),
        ("btrfs", "144m", "bs=1M count=1"),
    ] {
        println!("{fs}, {lost}");
        let volume = group.linear(fs, size).fs(fs).encrypted();
        node.write("pod", &volume, fs);
        as_if_making(&group, &volume, fs);
        let wipe = format!("dd if=/dev/zero of=$i {lost} conv=fsync status=none");
        works_inside(&volume, &wipe);
        refuses_unchanged(&node, &volume, &["inside according to its tag", fs]);
        let other = volume.clone().fs("ext4");
        node.mount("pod", &other).is_failure(&[fs]);
        run("blkdiscard", &["-f", "-z", &volume.device()]);
        group.lv("lvremove", &[], fs);
    }
}
