//! A sign of data is a sign, whatever its age: copies are younger than what is on them. A record that fits outweighs
//! other signs.

use crate::prelude::*;

/// Makes the first bytes of the device `$1` zero.
const LOSE: &str =
    "lose() { dd if=/dev/zero of=$1 bs=$2 count=1 conv=fsync status=none; udevadm settle; }\n";

/// A name of a volume that `lvcreate` makes with 320 MiB, a script that leaves data without its head on `$dev`, and
/// what the driver finds there.
type Row = (&'static str, &'static str, &'static str);

#[rustfmt::skip] // a row is a line
const ROWS: &[Row] = &[
    ("ext-old", "E2FSPROGS_FAKE_TIME=1600000000 mkfs.ext4 -q $dev; lose $dev 1M", "an ext backup superblock"),
    ("ext-one-group", "mkfs.ext4 -qFb 4096 $dev 100m; mount $dev /mnt; seq 100000 > /mnt/page; umount /mnt; lose $dev 4k", "an ext journal at byte "),
    ("xfs-4k", "mkfs.xfs -q $dev; lose $dev 4k", "a block of xfs at byte "),
    ("xfs-1m", "mkfs.xfs -q $dev; lose $dev 1M", "an xfs superblock at byte 83886080"),
    ("btrfs-4k", "mkfs.btrfs -q $dev; dd if=/dev/zero of=$dev bs=4k seek=16 count=1 conv=fsync status=none", "a btrfs superblock at byte 67108864"),
    ("gpt", "echo start=2048 | sfdisk -q --no-reread --no-tell-kernel --label gpt $dev; mkfs.ext4 -qFE offset=1048576 $dev 200m; lose $dev 17k", "an ext superblock at byte 1049600"),
    ("dos", "mkfs.xfs -q $dev; dd if=$dev of=/run/signs.xfs bs=4k count=1 status=none; blkdiscard -f $dev; dd if=/run/signs.xfs of=$dev bs=1M seek=1 conv=fsync status=none", "an xfs superblock at byte 1048576"),
    ("pv", "pvcreate -qq -y --config devices/scan_lvs=1 $dev; vgcreate -qq --config devices/scan_lvs=1 signs-inner $dev; vgchange -qq -an --config devices/scan_lvs=1 signs-inner; lose $dev 4k", "metadata of LVM at byte 4096"),
    ("luks", "head -c 64 /dev/zero > /run/signs.key; cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $dev /run/signs.key; cryptsetup open --key-file /run/signs.key $dev signs.opened; mkfs.ext4 -q /dev/mapper/signs.opened; cryptsetup close signs.opened; lose $dev 1M", "data at byte"),
];

#[test]
fn data_without_its_head_waits_for_a_word() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("signs", 8 << 30);
    for (lv, script, found) in ROWS {
        println!("{lv}");
        let volume = group.linear(lv, "320m");
        bash(&format!("{LOSE}dev={}\n{script}", volume.device()));
        for wanted in ["ext4", "xfs"] {
            let words = ["is not blank", found, &format!("allow-format signs/{lv}")];
            node.refuses_mount(&volume.clone().fs(wanted), &words);
        }
    }
    // `allow-format` lets the next mount format the volume.
    let volume = Volume::new(&group, "xfs-1m");
    node.prints(
        &["allow-format", "signs/xfs-1m", "--yes"],
        "an xfs superblock",
        0,
    );
    // The permission is for the data that was given up, not for other data in the same place.
    put(&volume.device(), 1 << 20, b"other data");
    node.refuses_mount(&volume, &["an xfs superblock", "allow-format signs/xfs-1m"]);
    node.prints(
        &["allow-format", "signs/xfs-1m", "--yes"],
        "an xfs superblock",
        0,
    );
    node.write("pod", &volume, "new");
}

/// Each of these volumes is younger than what is on it, and has no record.
#[test]
fn a_copy_of_data_without_its_head_waits_for_a_word() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("copies", 8 << 30);
    group.pool();
    for (lv, make) in [
        ("linear", "-L 64m"),
        ("thin", "-V 64m --thinpool pool"),
        ("gone", "-V 64m --thinpool pool"),
    ] {
        sh(&format!("lvcreate -qq -y -n {lv} {make} copies"));
        let volume = Volume::new(&group, lv);
        node.write("pod", &volume, "kept");
        bash(&format!("{LOSE}lose {} 1M", volume.device()));
    }
    Group::wait_for_the_next_second();
    bash(
        "lvcreate -qq -y -s -n thick-snapshot -L 32m copies/linear
        lvcreate -qq -y -s -kn -n thin-snapshot copies/thin
        lvcreate -qq -y -s -kn -n outlives copies/gone; lvremove -qq -y copies/gone
        lvcreate -qq -y -L 64m -n copy copies; dd if=/dev/copies/linear of=/dev/copies/copy bs=1M conv=fsync status=none",
    );
    let held = "which has the record of ext4 ";
    for (lv, words) in [
        ("thick-snapshot", [held, "an ext backup superblock"]),
        ("thin-snapshot", [held, "of its blocks were written"]),
        (
            "outlives",
            ["of its blocks were written", "an ext backup superblock"],
        ),
        ("copy", ["is not blank", "an ext backup superblock"]),
    ] {
        println!("{lv}");
        let volume = Volume::new(&group, lv);
        let allow = format!("allow-format copies/{lv}");
        node.refuses_mount(&volume, &[words[0], words[1], &allow]);
        node.refuses_mount(&volume.fs("xfs"), &[words[0], words[1], &allow]);
    }
    // Nothing is where the driver looks, but the thin volume was written.
    let volume = group.thin("written", "64m");
    put(&volume.device(), 12 << 20, b"far from both ends");
    node.refuses_mount(
        &volume,
        &["of its blocks were written", "allow-format copies/written"],
    );
    // A fresh one has no blocks, as lvcreate leaves it.
    let volume = group.thin("fresh", "64m");
    node.write("pod", &volume, "kept");
    node.finds(&volume, "kept");
}

#[test]
fn a_volume_that_lvm_has_converted_waits_for_a_word() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("turned", 2, 1 << 30);
    // A recorded volume becomes thin: its tags go to its external origin.
    group.pool();
    let volume = group.linear("data", "64m");
    node.write("pod", &volume, "kept");
    Group::wait_for_the_next_second();
    bash(&format!(
        "{LOSE}lose {} 1M; lvchange -an turned/data
        lvconvert -qq -y --type thin --thinpool turned/pool --originname origin turned/data
        lvchange -ay turned/data; rm -f /etc/lvm/archive/turned*",
        volume.device()
    ));
    // LVM 2.03.31 leaves the tags on the volume, too.
    let held = if group.tags("data").is_empty() {
        "its origin origin, of which it is a copy, and which has the record of ext4 "
    } else {
        "according to its tag"
    };
    node.refuses_mount(&volume, &[held, "allow-format turned/data"]);
    // An image that is split from a mirror.
    let disk = disks[0].path();
    sh(&format!(
        "lvcreate -qq -y -W y -n mirrored -L 64m turned {disk}"
    ));
    let volume = Volume::new(&group, "mirrored");
    node.write("pod", &volume, "kept");
    bash(&format!(
        "{LOSE}lvconvert -qq -y --type raid1 -m 1 turned/mirrored {}
        until lvs --noheadings -o sync_percent turned/mirrored | grep -q 100; do sleep 0.1; done
        lose {} 1M; lvconvert -qq -y --splitmirrors 1 --name split turned/mirrored",
        disks[1].path(),
        volume.device()
    ));
    let split = Volume::new(&group, "split");
    let words = ["an ext backup superblock", "allow-format turned/split"];
    node.refuses_mount(&split, &words);
}

/// A pod keeps a disk image in a file: blocks that look like a label of ZFS, all over the volume.
#[test]
fn a_record_that_fits_outweighs_the_marks_in_a_pods_file() {
    let group = Group::new("outweighs");
    let file = crate::crypt::key_file("outweighs");
    let config = crate::crypt::config(&file);
    let node = Node::with_config(Mode::MountOnly, &config);
    for (lv, fs, size) in [
        ("ext4", "ext4", "32m"),
        ("xfs", "xfs", "300m"),
        ("btrfs", "btrfs", "128m"),
        ("inside", "ext4", "64m"),
    ] {
        println!("{lv}");
        let mut volume = group.linear(lv, size).fs(fs);
        if lv == "inside" {
            volume = volume.encrypted();
        }
        let dir = node.up("pod", &volume);
        write_synced(&dir.join("page"), "kept");
        bash(&format!(
            "perl -e 'print pack(\"Q<x1016\", 0xBAB10C) x 1024' > /run/outweighs.block
            cd {dir}; n=0; while cat /run/outweighs.block >> image 2> /dev/null; do n=$((n+1)); [ $n -lt 400 ] || break; done; sync -f .",
            dir = text(&dir)
        ));
        node.down("pod", &volume);
        // Marks of the pod's file are in the ring of the last ZFS label.
        node.finds(&volume, "kept");
        node.finds(&volume.read_only(), "kept");
    }
}

#[test]
fn an_ext_without_a_uuid_is_recorded_with_the_one_that_e2fsck_gives_it() {
    let node = Node::new(Mode::MountOnly);
    let (group, volume) = Group::with_data("nameless");
    sh(&format!(
        "mkfs.ext4 -q -O ^metadata_csum -U clear {}",
        volume.device()
    ));
    node.visit(&volume.clone().read_only());
    node.write("pod", &volume, "kept");
    group.assert_recorded("data", "ext4");
    node.finds(&volume, "kept");
}
