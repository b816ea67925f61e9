//! The commands that messages print, and where each of them is run as it is printed.
#![allow(dead_code)] // Each test that has this as a part takes what it needs.

/// Commands that only look. A row runs each that its messages print, while the volume is refused.
const LOOKS: &str = "btrfs check |btrfs inspect-internal dump-super |cryptsetup luksDump |dmesg|dmsetup info |dmsetup ls |dumpe2fs -h |e2fsck -n |fuser -v|losetup --list|lsblk |lvm explain|lvm status |\
    lvmconfig |lvs |mdadm --examine |pvck --dump |pvs|sfdisk --list |swapon --show|vgcfgrestore --list |vgck |vgs |wipefs /dev/|xfs_repair -n ";

/// A word of docs/on-call.md, the beginning of a command of its messages that no row runs, and why, or the file with
/// a case that runs it.
#[rustfmt::skip] // a row is a line
pub const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("inside", "e2fsck -b ", "it asks about each inode that was never written: docs/encryption.md"),
    ("part-of-device", "cryptsetup close ", "tests/guest/crypt/adopted.rs"),
    ("open-unseen", "targetcli ls", "no guest has an iSCSI target"),
    ("no-group", "vgchange --config ", "tests/guest/doctor/nodes.rs"),
    ("no-locks", "systemctl start ", "no guest has systemd"),
    ("no-locks", "vgchange --lockstart ", "tests/shared/obstacles.rs"),
    ("no-locks", "vgchange -an ", "tests/shared/obstacles.rs"),
    ("no-locks", "lvmlockctl --drop ", "tests/shared/obstacles.rs"),
    ("held-elsewhere", "lvchange -an ", "tests/shared/obstacles.rs"),
    ("active-shared", "lvchange -asy", "it says how the state came about"),
    ("active-shared", "lvchange -an ", "tests/shared/obstacles.rs"),
    ("active-without-lock", "lvchange -an ", "tests/shared/obstacles.rs"),
    ("suspended-inside", "dmsetup clear ", "tests/guest/crypt/lost.rs"),
    ("suspended-inside", "lvchange --refresh ", "tests/guest/crypt/lost.rs"),
    ("luks-header", "cryptsetup open ", "tests/guest/crypt/adopted.rs"),
    ("luks-header", "lvm adopt ", "as of `swapped`"),
    ("reencryption", "cryptsetup reencrypt", "it says how the state came about"),
    ("inside", "cryptsetup reencrypt", "it says how the state came about"),
    ("inside", "cryptsetup open /dev", "as of `luks-header`"),
    ("inside", "e2fsck -b ", "tests/guest/crypt/again.rs"),
    ("inside", "cryptsetup close NAME", "as of `part-of-device`"),
    ("inside", "debugfs ", "a case of crypt::again runs all commands of the message"),
    ("signs-of-data", "debugfs ", "tests/guest/data/damaged.rs"),
    ("pool-full", "lvextend --poolmetadatasize ", "tests/guest/policy/full.rs"),
    ("several-devices", "mount -o ro,logdev=", "as of the row `several_devices_of_xfs`, with the option of its part"),
    ("unwell", "lvextend --size ", "as of `pool-full`"),
    ("still-mounted", "umount --lazy", "it says how the state came about"),
    ("still-mounted", "mount ", "tests/guest/users/openers.rs"),
    ("large-blocks", "lvremove ", "as of `new-not-blank`"),
    ("no-room", "pvresize ", "tests/guest/calls/failed_growth.rs"),
    ("filesystem-limit", "e2fsck -f ", "tests/guest/calls/failed_growth.rs"),
    ("old-disk", "cryptsetup close ", "tests/guest/data/old_disks.rs"),
    ("partial", "vgextend ", "tests/guest/doctor/nodes.rs"),
    ("partial", "lvchange -an ", "tests/guest/data/partial.rs"),
    ("partial", "lvconvert --repair ", "data::partial runs it on the RAID of a thin pool, with a spare disk"),
    ("unwell", "lvchange -an vg7/web7", "the rows `unwell_merge` and `unwell_cache` run it"),
    ("degraded", "vgextend ", "tests/guest/doctor/nodes.rs"),
    ("degraded", "lvconvert --repair ", "data::partial runs it on the RAID of a thin pool, with a spare disk"),
    ("degraded", "vgreduce --removemissing ", "data::partial runs it after that"),
    ("degraded", "lvchange --syncaction repair ", "tests/guest/data/states.rs"),
    ("degraded", "lvchange --syncaction check ", "tests/guest/data/states.rs"),
    ("read-only-volume", "lvchange --refresh ", "tests/guest/users/read_only.rs"),
    ("read-only-volume", "blockdev --setrw ", "tests/guest/users/read_only.rs"),
    ("signs-of-data", "e2fsck -b ", "tests/guest/data/foreign.rs"),
    ("signs-of-data", "xfs_repair /dev/", "data::swapped runs it where a physical volume was made over an xfs"),
    ("signs-of-data", "btrfs-select-super ", "data::swapped runs it where a physical volume was made over a btrfs"),
];

/// Whether a case in this file takes the command that begins so from what the driver printed, and runs that.
pub fn is_run_in(file: &str, begins: &str) -> bool {
    let file = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let calls = ["told(", "mends(", ".command("];
    let mut calls = calls.iter().flat_map(|call| text.split(call).skip(1));
    let is_its = |word: &str| word.starts_with(begins.trim_end());
    calls.any(|call| call.split(')').next().unwrap().split('"').any(is_its))
}

/// The commands in a message: what is in backticks, but for names of settings, and commands that the driver ran.
pub fn commands_in(message: &str) -> impl Iterator<Item = &str> {
    let spans = message.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        let is_other = [" = ", ": ", " -- "]
            .iter()
            .any(|other| span.contains(other));
        !is_other && (span.contains(' ') || LOOKS.split('|').any(|looks| looks == *span))
    })
}

pub fn only_looks(command: &&str) -> bool {
    LOOKS.split('|').any(|looks| command.starts_with(looks))
}
