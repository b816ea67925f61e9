//! Filesystems made by the real mkfs on sparse files, whose beginning is then overwritten. The examination must still
//! find that there was a filesystem.

// The tests run mkfs and resize2fs directly; the driver does so through its own runner.
#![allow(clippy::restriction, clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{self, Command};

use driver::fs::primary::read_primary;
use driver::fs::scan::{Examination, Extent, examine};
use driver::fs::superblock::{Family, Superblock};
use nix::sys::memfd::{MFdFlags, memfd_create};
use support::{needs, sh};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const UUID: &str = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9ea";

/// A sparse file in memory, which may have 100 TiB where a file of ext4 may not. It needs no tmpfs: a container's
/// /dev/shm has 64 MiB.
struct Sparse {
    file: File,
    path: String,
}

fn sparse(size: u64) -> Sparse {
    let file = File::from(memfd_create("sparse", MFdFlags::MFD_CLOEXEC).unwrap());
    file.set_len(size).unwrap();
    let path = format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd());
    Sparse { file, path }
}

/// Runs these words on a file.
fn on(file: &Sparse, line: &str) {
    sh(&format!("{line} {}", file.path));
}

fn made(line: &str, size: u64) -> Sparse {
    let file = sparse(size);
    on(&file, line);
    file
}

fn wipe(file: &Sparse, length: u64) {
    let zeros = vec![0; usize::try_from(MIB).unwrap()];
    for at in (0..length).step_by(zeros.len()) {
        file.file.write_all_at(&zeros, at).unwrap();
    }
}

fn primary(file: &Sparse) -> Superblock {
    read_primary(&file.file)
        .unwrap()
        .expect("a primary superblock")
}

fn seen(file: &Sparse, size: u64) -> Examination {
    let seen = examine(&file.file, size, Extent::Whole);
    assert_eq!(seen.unreadable, None);
    seen
}

const EXT: &str = "-q -F -E nodiscard,lazy_itable_init=1,lazy_journal_init=1";

/// Makes an ext, checks its primary superblock, wipes the head, looks for what remains.
fn remains_after_wiping(line: &str, size: u64) {
    let name = format!("{line} on {} MiB", size / MIB);
    let file = made(line, size);
    let before = primary(&file);
    assert_eq!(
        (before.family, &*before.uuid),
        (Family::Ext, UUID),
        "{name}"
    );
    let covers = before.size <= size && size - before.size < 16 * MIB;
    assert!(covers && !before.in_progress, "{name}: {before:?}");

    let now = before.newest_time.unwrap();
    for wiped in [8 * MIB, 16 * MIB] {
        wipe(&file, wiped);
        assert_eq!(read_primary(&file.file).unwrap(), None, "{name}");
        let seen = seen(&file, size);
        assert!(!seen.is_zero(), "{name}");
        let found = seen
            .backups
            .first()
            .unwrap_or_else(|| panic!("{name}, {wiped} bytes wiped"));
        assert!(found.offset >= wiped, "{name}: {found:?}");
        assert_eq!((&*found.uuid, found.written), (UUID, now), "{name}");
    }
}

#[test]
fn ext_is_seen_by_its_backups() {
    needs!("e2fsprogs", "mkfs.ext4", "resize2fs");
    let one_backup = "-O sparse_super2 -E num_backup_sb=1,nodiscard";
    let cases = [
        ("ext2", "-b 1024", 25 * MIB),
        ("ext3", "-b 1024", 100 * MIB),
        ("ext4", "", 100 * MIB),
        ("ext2", "-b 2048", 100 * MIB),
        ("ext3", "-b 4096", 300 * MIB),
        ("ext4", "-b 4096", 132 * MIB),
        ("ext4", "", 5 * GIB),
        ("ext4", "", 100 * GIB),
        ("ext4", "-b 1024", 20 * GIB),
        ("ext4", "-b 65536", 16 * GIB),
        ("ext2", "-O ^sparse_super,^resize_inode", 10 * GIB),
        ("ext4", "-O sparse_super2", 10 * GIB),
        ("ext4", one_backup, 10 * GIB),
        ("ext4", "-O meta_bg,^resize_inode", 10 * GIB),
        ("ext4", "-O bigalloc", 10 * GIB),
        ("ext4", "-O bigalloc -C 16384", 10 * GIB),
        ("ext4", "-O bigalloc -b 1024 -C 8192", 10 * GIB),
        ("ext4", "-O bigalloc -C 1048576", 3 * TIB),
        ("ext4", "-O ^64bit,^metadata_csum", 10 * GIB),
        ("ext4", "-T largefile4", 15 * TIB),
        ("ext4", "", 20 * TIB),
    ];
    for (kind, options, size) in cases {
        let line = format!("mkfs.{kind} -U {UUID} {EXT} {options}");
        remains_after_wiping(&line, size);
    }
}

#[test]
fn an_ext_that_was_grown_is_seen_by_what_growing_wrote() {
    needs!("e2fsprogs", "mkfs.ext4", "resize2fs");
    let size = 4 * GIB;
    let file = made(&format!("mkfs.ext4 -U {UUID} {EXT}"), GIB);
    file.file.set_len(size).unwrap();
    on(&file, "resize2fs -f");
    wipe(&file, 16 * MIB);
    // As for a volume that was restored block by block, then grown.
    assert!(!seen(&file, size).backups.is_empty());

    let number = |bytes: &[u8]| {
        for group in [1, 3, 5, 7, 9, 25, 27] {
            let at = group * 128 * MIB + 0x5A;
            file.file.write_all_at(bytes, at).unwrap();
        }
    };
    // Kernels before 5.18 leave the group's number 0 when they grow it.
    number(&[0, 0]);
    assert!(!seen(&file, size).backups.is_empty());
    // A number that is another group's is no backup of this filesystem.
    number(&[11, 0]);
    assert_eq!(seen(&file, size).backups, []);
}

#[test]
fn a_filesystem_of_one_group_leaves_nothing() {
    needs!("e2fsprogs", "mkfs.ext4", "resize2fs");
    let size = 2 * MIB;
    let file = made(&format!("mkfs.ext4 {EXT} -b 1024"), size);
    let primary = seen(&file, size);
    assert_eq!(primary.data.map(|data| data.offset), Some(1024));
    assert_eq!(primary.backups, []);
    wipe(&file, size);
    assert_blank(&seen(&file, size));
}

#[test]
fn blank_devices_of_every_size_are_blank() {
    let small = [0, 512, 4096, 4097, MIB, 8 * MIB, 8 * MIB + 512, 16 * MIB];
    let large = [16 * MIB + 512, 17 * MIB, GIB, 100 * TIB];
    for size in small.into_iter().chain(large) {
        assert_blank(&seen(&sparse(size), size));
    }
}

fn assert_blank(seen: &Examination) {
    assert_eq!(*seen, Examination::default());
}

/// The type that the driver names without blkid.
fn certain(file: &Sparse) -> Option<String> {
    let found = read_primary(&file.file).unwrap()?;
    Some(found.certain_type?.to_string())
}

fn by_blkid(file: &Sparse) -> Option<String> {
    let path = &*file.path;
    let args = ["-p", "-o", "value", "-s", "TYPE", path];
    let output = Command::new("blkid").args(args).output().unwrap();
    let kind = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    output.status.success().then_some(kind)
}

/// The second group of an xfs, and the second superblock of a btrfs.
#[test]
fn copies_of_xfs_and_btrfs_are_seen() {
    needs!("xfsprogs", "mkfs.xfs");
    needs!("btrfs-progs", "mkfs.btrfs");
    let cases = [
        ("mkfs.xfs -q -f", 400 * MIB, "an xfs superblock"),
        ("mkfs.xfs -q -f -d agcount=8", 40 * GIB, "an xfs superblock"),
        (
            "mkfs.xfs -q -f -d su=64k,sw=2",
            40 * GIB,
            "an xfs superblock",
        ),
        (
            "mkfs.xfs -q -f -d su=256k,sw=3",
            10 * GIB,
            "an xfs superblock",
        ),
        (
            "mkfs.xfs -q -f -d su=1m,sw=4",
            700 * GIB,
            "an xfs superblock",
        ),
        ("mkfs.xfs -q -f", 5 * TIB, "an xfs superblock"),
        ("mkfs.btrfs -q -f", 400 * MIB, "a btrfs superblock"),
        ("mkfs.btrfs -q -f", 300 * GIB, "a btrfs superblock"),
    ];
    for (line, size, want) in cases {
        let file = made(line, size);
        wipe(&file, 16 * MIB);
        let mark = seen(&file, size).mark;
        let mark = mark.unwrap_or_else(|| panic!("{line} on {} MiB", size / MIB));
        assert_eq!(mark.what, want, "{line} on {} MiB", size / MIB);
    }
}

#[test]
fn a_superblock_with_a_right_checksum_has_the_name_that_blkid_gives_it() {
    needs!("e2fsprogs", "mkfs.ext4", "resize2fs");
    needs!("xfsprogs", "mkfs.xfs");
    needs!("btrfs-progs", "mkfs.btrfs");
    let lines = [
        format!("mkfs.ext2 {EXT}"),
        format!("mkfs.ext2 {EXT} -b 1024"),
        format!("mkfs.ext3 {EXT}"),
        format!("mkfs.ext4 {EXT}"),
        format!("mkfs.ext4 {EXT} -b 4096 -O ^metadata_csum"),
        format!("mkfs.ext4 {EXT} -O ^has_journal"),
        "mkfs.xfs -q -f".to_owned(),
        "mkfs.xfs -q -f -s size=4096".to_owned(),
        "mkfs.btrfs -q -f".to_owned(),
    ];
    let size = 400 * MIB;
    for line in &lines {
        let file = made(line, size);
        assert!(by_blkid(&file).is_some(), "{line}");
        assert_eq!(certain(&file), by_blkid(&file), "{line}");
        let found = read_primary(&file.file).unwrap();
        assert_eq!(found.map(|found| found.is_damaged), Some(false), "{line}");
    }
    // If blkid gives the filesystem another name, or none, blkid decides. Marks of other content change nothing.
    for line in lines {
        let changes: [(u64, &[u8], bool); 5] = [
            (1024 + 0x80, b"another label", false),
            (200, b"a changed byte", false),
            (65_536 + 0x100, b"a changed byte", false),
            (size - 8192, &0xA92B_4EFC_u32.to_le_bytes(), true),
            (128 << 10, &0x00BA_B10C_u64.to_le_bytes(), true),
        ];
        let file = made(&line, size);
        let before = certain(&file);
        for (at, bytes, is_others) in changes {
            let file = made(&line, size);
            file.file.write_all_at(bytes, at).unwrap();
            let now = certain(&file);
            let is_right = now == before || !is_others && (now.is_none() || now == by_blkid(&file));
            assert!(is_right, "{line}: {at}: {now:?}");
        }
    }
}
