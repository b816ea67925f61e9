//! A volume that is not blank is never formatted, and the message names what is on it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::prelude::*;
use crate::signatures::{bcache, luks, md0, md1, zfs};

/// Makes a volume read as zeroes again.
fn blank(device: &str) {
    run("blkdiscard", &["-f", device]);
}

const SIZE: u64 = 320 * MIB;

fn tool(line: &str, device: &str) {
    sh(&format!("{line} {device}"));
}

/// What is on a device there.
pub fn bytes(device: &str, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let file = File::open(device).unwrap();
    file.read_exact_at(&mut bytes, at).unwrap();
    bytes
}

const PVCREATE: &str = "pvcreate -qq -y --config devices/scan_lvs=1";
const RAID: &str = "linux_raid_member";
const UNKNOWN: &str = "which blkid does not recognise";
/// blkid of util-linux 2.41 says nothing of an ext4 whose first sector is another's.
const SEVERAL: &str = "several signatures at once; it is left as it is. List them with `wipefs /dev/mapper/marked-data`\
                       |an ext backup superblock";

/// The name of a content, how it gets onto a device, and words of the message: one of those between the bars.
type Case = (&'static str, fn(&str), &'static str);

/// blkid of util-linux 2.38 knows ZFS by these marks. That of 2.41 wants to see more of it.
const ZFS: &str = "zfs_member|a ZFS label at byte ";

#[rustfmt::skip] // a row is a line
const CASES: &[Case] = &[
    ("swap", |d| tool("mkswap", d), "swap"),
    ("LVM", |d| tool(PVCREATE, d), "LVM2_member"),
    ("LUKS1", |d| luks(d, 1, 0), "crypto_LUKS"),
    ("LUKS2", |d| luks(d, 2, 0), "LUKS2 header"),
    // blkid of util-linux 2.42 wants its checksum to be right.
    ("second LUKS2 header", |d| luks(d, 2, 16 * KIB), "LUKS2 header"),
    ("md 1.1", |d| md1(d, 0), RAID),
    ("md 1.2", |d| md1(d, 4 * KIB), RAID),
    ("md 1.0, at the end", |d| md1(d, SIZE - 8 * KIB), RAID),
    ("md 0.90, at the end", |d| md0(d, SIZE - 64 * KIB), RAID),
    ("ZFS", |d| zfs(d, 0), ZFS),
    ("last label of ZFS", |d| zfs(d, SIZE - 256 * KIB), ZFS),
    ("bcache", |d| bcache(d), "bcache"),
    ("MBR", |d| sfdisk(d, "dos", ",4M,83"), "table (dos)"),
    ("GPT", |d| sfdisk(d, "gpt", "label: gpt"), "table (gpt)"),
    ("second GPT", |d| part_of_gpt(d, 512..32 * KIB), "table (gpt)"),
    ("no MBR", |d| { part_of_gpt(d, 0..512); zero(d, SIZE - MIB..SIZE); }, "a GPT partition table at byte 512"),
    ("xfs", |d| tool("mkfs.xfs -q", d), "xfs, not ext4"),
    ("btrfs", |d| tool("mkfs.btrfs -q", d), "btrfs, not ext4"),
    ("ext2", |d| tool("mkfs.ext2 -q", d), "ext2, not ext4"),
    ("vfat", |d| tool("mkfs.vfat", d), "vfat"),
    // Nothing is right but the mark.
    ("ext", |d| put(d, KIB + 0x38, &[0x53, 0xEF]), "left as it is"),
    ("XFSB", |d| put(d, 0, b"XFSB"), "an xfs superblock at byte 0"),
    ("_BHRfS_M", |d| put(d, 64 * KIB + 0x40, b"_BHRfS_M"), "btrfs"),
    ("md", |d| put(d, SIZE - 8 * KIB, &MD), "an md superblock at byte 335536128"),
    ("SWAPSPACE2", |d| put(d, 4 * KIB - 10, b"SWAPSPACE2"), "a swap header at byte 3584"),
    ("LABELONE", |d| put(d, 512, b"LABELONE"), "an LVM label at byte 512"),
    // Bytes without a name: at the beginning, as encrypted data has them, and at the end of what lvcreate makes zero.
    ("raw data", |d| put(d, 0, &[0x5A; 512]), UNKNOWN),
    ("a byte", |d| put(d, 4 * KIB - 1, &[1]), UNKNOWN),
    ("ext4 and xfs", ext4_and_xfs, SEVERAL),
    ("btrfs and swap", btrfs_and_swap, SEVERAL),
    ("ext4 and md", ext4_and_md, RAID),
];
const MD: [u8; 4] = [0xFC, 0x4E, 0x2B, 0xA9];

fn sfdisk(device: &str, label: &str, lines: &str) {
    let tool = "sfdisk --quiet --no-reread --no-tell-kernel --label";
    bash(&format!("echo '{lines}' | {tool} {label} {device}"));
}

/// A table without partitions, and without these bytes.
fn part_of_gpt(device: &str, lost: Range<u64>) {
    sfdisk(device, "gpt", "label: gpt");
    zero(device, lost);
}

fn zero(device: &str, range: Range<u64>) {
    let length = usize::try_from(range.end - range.start).unwrap();
    put(device, range.start, &vec![0; length]);
}

fn ext4_and_xfs(d: &str) {
    tool("mkfs.xfs -q", d);
    let first = bytes(d, 0, 512);
    blank(d);
    tool("mkfs.ext4 -q", d);
    put(d, 0, &first);
}

fn btrfs_and_swap(d: &str) {
    tool("mkfs.btrfs -q", d);
    put(d, KIB, &[1, 0, 0, 0, 255, 0, 0, 0]);
    put(d, 4 * KIB - 10, b"SWAPSPACE2");
}

fn ext4_and_md(d: &str) {
    tool("mkfs.ext4 -q", d);
    md1(d, SIZE - 8 * KIB);
}

#[test]
fn any_content_of_a_volume_is_named_and_left_alone() {
    let node = Node::new(Mode::MountOnly);
    let (disk, group, volume) = Disk::with_data("marked", "ext4", 320);
    let device = volume.device();
    for (case, make, words) in CASES {
        make(&device);
        let before = disk.fingerprint();
        println!("{case}");
        let message = node.refuses_mount(&volume, &["marked/data"]).message;
        let says = words.split('|').any(|words| message.contains(words));
        assert!(says, "{case}: no {words:?} in {message}");
        assert_eq!(disk.fingerprint(), before, "{case}");
        blank(&device);
    }
    assert_eq!(group.tags("data"), "");
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}

#[test]
fn an_ext_of_which_only_backups_are_left_is_never_formatted() {
    let node = Node::new(Mode::MountOnly);
    let (disk, group, volume) = Disk::with_data("wipedhead", "ext4", 320);
    let device = volume.device();
    let is_kept = |wanted: &str| {
        println!("{wanted}");
        let before = disk.fingerprint();
        let words = [
            "an ext backup superblock",
            "lvm allow-format wipedhead/data",
        ];
        node.refuses_mount(&volume.clone().fs(wanted), &words);
        assert_eq!(disk.fingerprint(), before, "{wanted}");
    };
    for fs in ["ext2", "ext4"] {
        run(&format!("mkfs.{fs}"), &["-q", &device]);
        // With any type that is asked for, and with the driver's own default.
        for (wiped, wanted) in [(MIB, fs), (17 * MIB, "")] {
            let length = wiped.to_string();
            run("blkdiscard", &["-f", "--length", &length, &device]);
            is_kept(wanted);
        }
        blank(&device);
    }
    // The last one alone, of group 27.
    let at = 27 * 8 * MIB;
    run("mkfs.ext4", &["-q", "-b", "1024", &device]);
    let backup = bytes(&device, at, 4096);
    blank(&device);
    put(&device, at, &backup);
    ["ext4", "xfs", ""].into_iter().for_each(is_kept);
    assert_eq!(group.tags("data"), "");
}

#[test]
fn the_command_in_the_message_repairs_an_ext_by_its_backup() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("bybackup");
    for (lv, size) in [("small", "64m"), ("large", "640m")] {
        let volume = group.linear(lv, size);
        node.write("pod", &volume, "kept");
        put(&volume.device(), KIB, &[0; 1024]);
        let reply = node.mount("pod", &volume);
        agreeing(reply.command("e2fsck -b").unwrap());
        node.finds(&volume, "kept");
    }
}

#[test]
fn data_that_appears_after_the_last_look_is_not_overwritten() {
    let group = Group::new("sudden");
    for (fs, size) in [("xfs", "300m"), ("btrfs", "128m")] {
        println!("{fs}");
        let volume = group.linear(fs, size).fs(fs);
        let device = volume.device();
        // Somebody is quicker than mkfs.
        let appears = format!("mkfs.ext4 -q {device} >&2\nexec $REAL \"$@\"");
        let (_, node) = Tools::new().put(&format!("mkfs.{fs}"), &appears).node();
        let words = [&*format!("making {fs} on sudden/{fs}"), "-f"];
        node.mount("pod", &volume).is_failure(&words);
        assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
        run("e2fsck", &["-f", "-n", &device]);
        let words = [&*format!("sudden/{fs} holds ext4, not {fs}")];
        Node::new(Mode::MountOnly).refuses_mount(&volume, &words);
    }
}

#[test]
fn a_volume_in_the_place_of_a_removed_one_waits_for_one_command() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("again");
    let removed = || {
        group.lv("lvremove", &[], "data");
        Group::wait_for_the_next_second();
    };
    for fs in ["ext4", "xfs", "btrfs"] {
        let volume = group.linear("data", "320m");
        run(&format!("mkfs.{fs}"), &["-q", &volume.device()]);
        removed();
        group.linear("data", "320m");
        let words = [
            "again/data is not blank: there is ",
            "if a removed volume left that",
            "allow-format again/data",
        ];
        node.refuses_mount(&volume, &words);
        node.prints(&["allow-format", "again/data", "--yes"], "Given up", 0);
        node.visit(&volume);
        removed();
    }
}

#[test]
fn a_volume_where_blkid_looks_for_no_raid_is_formatted_only_if_it_is_zero() {
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("tinydisk", 16 * MIB);
    run("vgcreate", &["-q", "-s", "1m", "tiny", &disk.path()]);
    let group = Group::found("tiny");
    let volume = group.linear("data", "1m");
    // The metadata of DRBD: a size, UUIDs, flags, and its mark.
    let mut metadata = [0x5A_u8; 72];
    metadata[60..64].copy_from_slice(&0x8374_026B_u32.to_be_bytes());
    put(&volume.device(), MIB - 4 * KIB, &metadata);
    for wanted in ["ext4", "ext2", ""] {
        let words = ["data at byte 1044480", "allow-format tiny/data"];
        node.refuses_mount(&volume.clone().fs(wanted), &words);
    }
    // A mkfs that was killed leaves no such thing.
    let making = ["--addtag", &format!("flexvolume.making=ext4:{UUID}")];
    group.lv("lvchange", &making, "data");
    node.refuses_mount(&volume, &["data at byte 1044480"]);
    blank(&volume.device());
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}
