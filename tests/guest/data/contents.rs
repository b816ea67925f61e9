//! Kinds of content as others make them, each in a file, and where each keeps its head and the copies of it.

use crate::prelude::*;
use crate::signatures::{bcache, md0, md1, zfs};

pub struct Content {
    pub name: &'static str,
    mib: u64,
    make: fn(&str, u64),
    /// Where the head and its copies begin, in bytes; a negative number counts from the end. A content of which one of
    /// these is left must not be formatted.
    heads: &'static [i64],
}

const M: i64 = 1 << 20;
const K: i64 = 1 << 10;
const EXT: &[i64] = &[K, 8 * M + K];
/// Places of a disk image: one partition from 1 MiB on, with a filesystem in it.
const PARTITIONED: &[i64] = &[0, 512, M + K, -512];
const PARTITION: &str = "start=2048,size=126976";

#[rustfmt::skip] // a row is a line
pub const CONTENTS: &[Content] = &[
    of("ext2", 64, |f, _| tool("mkfs.ext2 -q -F", f), EXT),
    of("ext3", 64, |f, _| tool("mkfs.ext3 -q -F", f), EXT),
    of("ext4", 64, |f, _| tool("mkfs.ext4 -q -F", f), EXT),
    of("ext4 of one group", 64, |f, _| tool("mkfs.ext4 -q -F -b 4096", f), &[K]),
    of("xfs", 320, |f, _| tool("mkfs.xfs -q", f), &[0, 80 * M, 160 * M, 240 * M]),
    of("xfs of version 4", 320, |f, _| tool("mkfs.xfs -q -m crc=0", f), &[0, 80 * M, 160 * M, 240 * M]),
    of("btrfs", 128, |f, _| tool("mkfs.btrfs -q", f), &[64 * K, 64 * M]),
    of("btrfs without its superblock", 128, btrfs_without_superblock, &[64 * M]),
    of("f2fs", 64, |f, _| tool("mkfs.f2fs -q", f), &[K, 5 * K]),
    of("jfs", 64, |f, _| tool("mkfs.jfs -q", f), &[32 * K, 60 * K]),
    of("reiserfs", 64, |f, _| tool("mkfs.reiserfs -q -ff", f), &[64 * K]),
    of("nilfs2", 160, |f, _| tool("mkfs.nilfs2 -q", f), &[K, -4 * K]),
    of("gfs2", 64, |f, _| tool("mkfs.gfs2 -q -O -J 8 -p lock_nolock", f), &[64 * K]),
    of("ocfs2", 64, |f, _| tool("mkfs.ocfs2 -q -x -F -M local -N 1", f), &[8 * K]),
    of("NTFS", 64, |f, _| tool("mkfs.ntfs -Q -F", f), &[0, -512]),
    of("exFAT", 64, |f, _| tool("mkfs.exfat", f), &[0, 6 * K]),
    of("FAT16", 64, |f, _| tool("mkfs.vfat -F 16", f), &[0]),
    of("FAT32", 64, |f, _| tool("mkfs.vfat -F 32", f), &[0, 3 * K]),
    of("minix", 64, |f, _| tool("mkfs.minix", f), &[K]),
    of("UDF", 64, |f, _| tool("mkudffs --blocksize=512", f), &[32 * K, 128 * K, -512]),
    of("HFS+", 64, hfsplus, &[K, -K]),
    of("bcachefs", 64, bcachefs, &[4 * K, 2 * M, -M]),
    of("squashfs", 64, |f, _| read_only("mksquashfs DIR OUT -quiet -noappend", f), &[0]),
    of("ISO 9660", 64, |f, _| read_only("genisoimage -quiet -o OUT DIR", f), &[32 * K]),
    of("erofs", 64, |f, _| read_only("mkfs.erofs OUT DIR", f), &[K]),
    of("cramfs", 64, |f, _| read_only("mkfs.cramfs DIR OUT", f), &[0]),
    of("GPT and an ext4", 64, |f, _| disk_image("gpt", "ext4", f), PARTITIONED),
    of("MBR and an ext4", 64, |f, _| disk_image("dos", "ext4", f), &[0, M + K]),
    of("GPT and an xfs", 400, |f, _| disk_image("gpt", "xfs", f), &[0, 512, M, -512]),
    of("LVM", 64, |f, _| physical_volume(f, ""), &[512, 4 * K]),
    of("LVM with two copies", 64, |f, _| physical_volume(f, "--pvmetadatacopies 2"), &[512, 4 * K, -M]),
    of("LUKS1", 64, |f, _| luks("luks1", f), &[0]),
    of("LUKS2", 64, |f, _| luks("luks2", f), &[0, 16 * K]),
    of("LUKS2 with a header of 4 MiB", 64, |f, _| luks("luks2 --luks2-metadata-size 4m --luks2-keyslots-size 4m", f), &[0, 4 * M]),
    of("swap", 64, |f, _| tool("mkswap", f), &[4 * K - 10]),
    of("md 0.90", 64, |f, size| md0(f, size - 64 * KIB), &[-64 * K]),
    of("md 1.0", 64, |f, size| md1(f, size - 8 * KIB), &[-8 * K]),
    of("md 1.1", 64, |f, _| md1(f, 0), &[0]),
    of("md 1.2", 64, |f, _| md1(f, 4 * KIB), &[4 * K]),
    of("md 1.2 and an ext4", 64, md_and_ext4, &[4 * K, M + K]),
    of("bcache", 64, |f, _| bcache(f), &[4 * K]),
    of("DRBD", 64, drbd, &[-4 * K]),
    of("ZFS", 64, zpool, &[0, 256 * K, -512 * K, -256 * K]),
    of("VMFS", 64, vmfs, &[M, 2 * M]),
    of("BlueStore", 64, |f, _| put(f, 0, b"bluestore block device\n5f3759df-0000-4000-8000-000000000001\n"), &[0]),
    of("Oracle ASM", 64, asm, &[0]),
    of("InnoDB", 64, innodb, &[0]),
];

const fn of(name: &'static str, mib: u64, make: fn(&str, u64), heads: &'static [i64]) -> Content {
    Content {
        name,
        mib,
        make,
        heads,
    }
}

impl Content {
    /// In bytes.
    pub fn size(&self) -> u64 {
        self.mib << 20
    }

    /// Makes it in a sparse file.
    pub fn make(&self, file: &str) {
        std::fs::File::create(file)
            .unwrap()
            .set_len(self.size())
            .unwrap();
        (self.make)(file, self.size());
        let size = std::fs::metadata(file).unwrap().len();
        assert_eq!(size, self.size(), "{}", self.name);
    }

    /// Whether a head or a copy of it is left without the first bytes.
    pub fn has_head_without(&self, lost: u64) -> bool {
        let size = i64::try_from(self.size()).unwrap();
        let lost = i64::try_from(lost).unwrap();
        let place = |at: i64| if at < 0 { size + at } else { at };
        self.heads.iter().any(|at| place(*at) >= lost)
    }

    /// The copies that the first MiB does not have, for the page.
    pub fn copies(&self) -> String {
        let words = |at: i64| match at.unsigned_abs() {
            from_end if at < 0 => format!("{} from the end", bytes(from_end)),
            from_start => bytes(from_start),
        };
        let far = self.heads.iter().filter(|at| **at < 0 || **at >= M);
        let far: Vec<_> = far.map(|at| words(*at)).collect();
        far.join(", ")
    }
}

fn bytes(count: u64) -> String {
    match count {
        _ if count.is_multiple_of(MIB) => format!("{} MiB", count / MIB),
        _ if count.is_multiple_of(KIB) => format!("{} KiB", count / KIB),
        _ => format!("{count} bytes"),
    }
}

fn tool(line: &str, file: &str) {
    bash(&format!("{line} '{file}' < /dev/null > /dev/null 2>&1"));
}

/// One bad block is enough.
fn btrfs_without_superblock(file: &str, _size: u64) {
    tool("mkfs.btrfs -q", file);
    put(file, 64 * KIB, &[0; 4096]);
}

/// An image that is as large as its files.
/// Makes an image of a directory `DIR`, which has one file of 289 kB.
fn read_only(line: &str, file: &str) {
    let line = line.replace("OUT", &format!("'{file}.image'"));
    let line = line.replace("DIR", "/run/contents-source");
    bash(&format!(
        "mkdir -p /run/contents-source; seq 50000 > /run/contents-source/page
        {line} > /dev/null 2>&1
        dd if='{file}.image' of='{file}' conv=notrunc status=none
        rm '{file}.image'"
    ));
}

fn disk_image(label: &str, fs: &str, file: &str) {
    let partition = if fs == "xfs" {
        "start=2048,size=700000"
    } else {
        PARTITION
    };
    let size = partition.split_once("size=").unwrap().1;
    let force = if fs == "xfs" { "-f" } else { "-F" };
    bash(&format!(
        "echo '{partition}' | sfdisk --quiet --no-reread --no-tell-kernel --label {label} '{file}'
        truncate -s $(({size} * 512)) '{file}.part'
        mkfs.{fs} -q {force} '{file}.part'
        dd if='{file}.part' of='{file}' bs=1M seek=1 conv=notrunc,sparse status=none
        rm '{file}.part'"
    ));
}

/// A physical volume, with a group and a volume in it.
fn physical_volume(file: &str, options: &str) {
    bash(&format!(
        "disk=$(losetup --find --show '{file}')
        vgcreate -qq -y {options} inner $disk
        lvcreate -qq -y -an -Zn -Wn -l 1 -n volume inner
        vgchange -qq -an inner
        losetup --detach $disk"
    ));
}

fn luks(kind: &str, file: &str) {
    bash(&format!(
        "echo secret | cryptsetup luksFormat -q --type {kind} --pbkdf pbkdf2 --pbkdf-force-iterations 1000 '{file}'"
    ));
}

fn md_and_ext4(file: &str, _size: u64) {
    bash(&format!("mkfs.ext4 -q -F -E offset=1048576 '{file}' 62m"));
    md1(file, 4 * KIB);
}

/// Source: blkid's `superblocks/drbd.c`: DRBD 9's metadata at the end of the device.
fn drbd(file: &str, size: u64) {
    let mut metadata = [0; 512];
    metadata[..8].copy_from_slice(&(size / 512).to_be_bytes());
    metadata[8..16].copy_from_slice(&0x5A5A_0001_u64.to_be_bytes());
    metadata[60..64].copy_from_slice(&0x8374_026D_u32.to_be_bytes());
    put(file, size - 4 * KIB, &metadata);
}

/// All four labels.
fn zpool(file: &str, size: u64) {
    for at in [0, 256 * KIB, size - 512 * KIB, size - 256 * KIB] {
        zfs(file, at);
    }
}

/// Source: blkid's `superblocks/vmfs.c`: the volume manager's header at 1 MiB, and the filesystem's at 2 MiB.
fn vmfs(file: &str, _size: u64) {
    put(file, MIB, &0xC001_D00D_u32.to_le_bytes());
    put(file, MIB + 4, &[5, 0, 0, 0]);
    put(file, 2 * MIB, &0x2FAB_F15E_u32.to_le_bytes());
    put(file, 2 * MIB + 4, &[5, 0, 0, 0]);
}

/// Source: Apple's Technical Note TN1150: a volume header of 512 bytes at 1 KiB, and its copy 1 KiB before the end.
fn hfsplus(file: &str, size: u64) {
    let mut header = [0; 512];
    header[..4].copy_from_slice(b"H+\0\x04");
    header[8..12].copy_from_slice(b"10.0");
    header[40..44].copy_from_slice(&4096_u32.to_be_bytes());
    let blocks = u32::try_from(size / 4096).unwrap();
    header[44..48].copy_from_slice(&blocks.to_be_bytes());
    put(file, KIB, &header);
    put(file, size - KIB, &header);
}

/// Source: blkid's `superblocks/bcache.c`: the superblock at 4 KiB, and copies at 2 MiB and 1 MiB before the end.
fn bcachefs(file: &str, size: u64) {
    let mut block = [0; 512];
    block[24..40].copy_from_slice(&0xC685_73F6_66CE_90A9_D96A_60CF_803D_F7EF_u128.to_be_bytes());
    block[16] = 13;
    for at in [4 * KIB, 2 * MIB, size - MIB] {
        put(file, at, &block);
    }
}

/// A header of Oracle's ASM, and blocks of a database after it.
fn asm(file: &str, _size: u64) {
    put(file, 0, &[1, 0x82, 1, 1]);
    put(file, 32, b"ORCLDISK");
    for number in 1..300 {
        put(
            file,
            number * 8 * KIB,
            &[0x06, 0xA2, 0, 0, number.to_le_bytes()[0]],
        );
    }
}

/// Pages of 16 KiB: a checksum, the number of the page, and rows.
fn innodb(file: &str, _size: u64) {
    for number in 0..200_u32 {
        let word = [0xC0FF_EE00 ^ number, number].map(u32::to_be_bytes);
        put(
            file,
            u64::from(number) * 16 * KIB,
            &word.concat().repeat(2048),
        );
    }
}
