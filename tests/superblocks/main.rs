//! Filesystems made by the real mkfs on sparse files, then robbed of their beginning: the
//! examination must see that there was one. A tool that is not installed fails the test.

// The tests run mkfs and resize2fs directly; the driver does so through its own runner.
#![allow(clippy::disallowed_methods)]
// Helpers of tests are tests too, but not to clippy.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]

mod reading;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use flexvolume_lvm::fs::examine::{Examination, Kind, examine};
use flexvolume_lvm::fs::superblock::{Family, Superblock, read_primary};
use tempfile::NamedTempFile;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const UUID: &str = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9ea";

/// A sparse file on tmpfs, which allows files of 100 TiB where ext4 does not.
fn sparse(size: u64) -> NamedTempFile {
    let shm = Path::new("/dev/shm");
    let file = if shm.is_dir() {
        NamedTempFile::new_in(shm)
    } else {
        NamedTempFile::new()
    };
    let file = file.unwrap();
    file.as_file().set_len(size).unwrap();
    file
}

fn run(line: &str, path: &Path) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .arg(path)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap_or_else(|e| panic!("{line}: {e}"));
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn made(line: &str, size: u64) -> NamedTempFile {
    let file = sparse(size);
    run(line, file.path());
    file
}

fn wipe(file: &NamedTempFile, length: u64) {
    let zeros = vec![0; usize::try_from(MIB).unwrap()];
    for at in (0..length).step_by(zeros.len()) {
        file.as_file().write_all_at(&zeros, at).unwrap();
    }
}

fn primary(file: &NamedTempFile) -> Superblock {
    read_primary(file.as_file())
        .unwrap()
        .expect("a primary superblock")
}

fn seen(file: &NamedTempFile, size: u64, lv_time: u64) -> Examination {
    let seen = examine(file.as_file(), size, lv_time);
    assert_eq!(seen.unreadable, None);
    seen
}

const EXT: &str = "-q -F -E nodiscard,lazy_itable_init=1,lazy_journal_init=1";

/// Makes a filesystem, checks its primary superblock, wipes the head, looks for what remains.
fn remains_after_wiping(family: Family, line: &str, size: u64) {
    let name = format!("{line} on {} MiB", size / MIB);
    let file = made(line, size);
    let before = primary(&file);
    assert_eq!(before.family, family, "{name}");
    assert_eq!(before.uuid, UUID, "{name}");
    assert!(
        before.size <= size && size - before.size < 16 * MIB,
        "{name}: {before:?}"
    );
    assert!(
        !before.has_errors && !before.in_progress,
        "{name}: {before:?}"
    );
    assert_eq!(before.never_mounted, family == Family::Ext, "{name}");

    let kind = match family {
        Family::Ext => Kind::Ext,
        Family::Xfs => Kind::Xfs,
        Family::Btrfs => Kind::Btrfs,
    };
    let now = before.newest_time.unwrap_or(1);
    for wiped in [8 * MIB, 16 * MIB] {
        wipe(&file, wiped);
        assert_eq!(read_primary(file.as_file()).unwrap(), None, "{name}");
        let seen = seen(&file, size, now);
        let [found] = seen.remains.as_slice() else {
            panic!("{name}, {} MiB wiped: {seen:?}", wiped / MIB)
        };
        assert_eq!(found.kind, kind, "{name}");
        assert!(found.offset >= wiped, "{name}: {found:?}");
        assert_eq!(found.uuid.as_deref(), Some(UUID), "{name}");
        assert_eq!(found.written, before.newest_time, "{name}");
    }
    // A volume made a second later has nothing to do with it, where there is a time to tell by.
    let later = seen(&file, size, now + 1);
    assert_eq!(
        later.remains.is_empty(),
        kind.has_time(),
        "{name}: {later:?}"
    );
    if !kind.has_time() {
        for other in [size - 20 * MIB, size + 20 * MIB] {
            file.as_file().set_len(other).unwrap();
            let seen = seen(&file, other, 0);
            assert_eq!(seen.remains, [], "{name}, now {} MiB", other / MIB);
        }
    }
}

#[test]
fn ext_is_seen_by_its_backups() {
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
        (
            "ext4",
            "-O sparse_super2 -E num_backup_sb=1,nodiscard",
            10 * GIB,
        ),
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
        remains_after_wiping(Family::Ext, &line, size);
    }
}

#[test]
fn xfs_is_seen_by_its_secondary_superblocks() {
    let sizes = [
        300 * MIB,
        GIB,
        1028 * MIB,
        10 * GIB,
        127 * GIB,
        TIB,
        4095 * GIB,
    ];
    let larger = [4 * TIB, 4100 * GIB, 20 * TIB, 100 * TIB];
    let cases = sizes
        .into_iter()
        .chain(larger)
        .map(|size| ("", size))
        .chain([
            ("-b size=1024", 500 * MIB),
            ("-m crc=0", GIB),
            ("-d agcount=3", 10 * GIB),
            ("-d agcount=8", 10 * GIB),
            ("-d agcount=16", 500 * GIB),
            ("-d agcount=32", 10 * GIB + 4 * MIB),
            ("-d agcount=47", 100 * GIB),
            ("-d agcount=128", 2 * TIB),
            ("-d agsize=1g", 33 * GIB),
            ("-d su=64k,sw=4", GIB),
            ("-d su=64k,sw=4", 10 * GIB),
            ("-d su=64k,sw=4", 500 * GIB),
            ("-d su=64k,sw=4", 4 * TIB),
            ("-d su=64k,sw=4", 100 * TIB),
            ("-d su=1m,sw=4", 50 * GIB),
            ("-d su=512k,sw=2", 60 * GIB),
        ]);
    for (options, size) in cases {
        // The log does not matter, and a large one takes memory.
        let log = if size < TIB { "" } else { "-l size=64m" };
        let line = format!("mkfs.xfs -q -K -m uuid={UUID} {log} {options}");
        remains_after_wiping(Family::Xfs, &line, size);
    }
}

#[test]
fn btrfs_is_seen_by_its_mirrors() {
    for size in [128 * MIB, 10 * GIB + 4096, 300 * GIB, 20 * TIB] {
        remains_after_wiping(Family::Btrfs, &format!("mkfs.btrfs -q -K -U {UUID}"), size);
    }
    let size = 300 * GIB;
    let file = made(&format!("mkfs.btrfs -q -K -U {UUID}"), size);
    wipe(&file, 65 * MIB);
    let seen = seen(&file, size, 0);
    assert_eq!(seen.remains[0].offset, 256 * GIB, "the last mirror");
}

#[test]
fn an_ext_that_was_grown_is_seen_by_what_growing_wrote() {
    let size = 4 * GIB;
    let file = made(&format!("mkfs.ext4 -U {UUID} {EXT}"), GIB);
    let made = primary(&file).newest_time.unwrap();
    file.as_file().set_len(size).unwrap();
    while std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() <= made {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    run("resize2fs -f", file.path());
    wipe(&file, 16 * MIB);
    // As for a volume that was restored block by block, then grown.
    assert_eq!(seen(&file, size, made + 1).remains.len(), 1);

    // Kernels before 5.18 leave the group's number 0 when they grow it.
    for group in [1, 3, 5, 7, 9, 25, 27] {
        file.as_file()
            .write_all_at(&[0, 0], group * 128 * MIB + 0x5A)
            .unwrap();
    }
    assert_eq!(seen(&file, size, made + 1).remains.len(), 1);
    // A number that is another group's is no backup of this filesystem.
    for group in [1, 3, 5, 7, 9, 25, 27] {
        file.as_file()
            .write_all_at(&[11, 0], group * 128 * MIB + 0x5A)
            .unwrap();
    }
    assert_eq!(seen(&file, size, 0).remains, []);
}

#[test]
fn a_primary_superblock_tells_of_errors_and_of_a_mkfs_that_was_cut_short() {
    let poke = |file: &NamedTempFile, bytes: &[u8], at| {
        file.as_file().write_all_at(bytes, at).unwrap();
        primary(file)
    };
    let ext = made(&format!("mkfs.ext4 {EXT}"), 100 * MIB);
    assert!(poke(&ext, &[3], 1024 + 0x3A).has_errors);
    assert!(
        !poke(&ext, &[1], 1024 + 0x34).never_mounted,
        "by the count of mounts"
    );
    assert!(
        !poke(&ext, &[0, 0, 0, 0, 0, 0, 1], 1024 + 0x2E).never_mounted,
        "by no time"
    );

    let xfs = made("mkfs.xfs -q -K", 300 * MIB);
    assert!(poke(&xfs, &[1], 126).in_progress);
    assert!(poke(&xfs, &[0x10], 219).has_errors);

    let btrfs = made("mkfs.btrfs -q -K", 128 * MIB);
    assert!(poke(&btrfs, &[4], 65_536 + 0x38).has_errors);
    assert!(poke(&btrfs, b"!", 65_536 + 0x40).in_progress);
}

#[test]
fn a_filesystem_of_one_group_leaves_nothing() {
    let size = 2 * MIB;
    let file = made(&format!("mkfs.ext4 {EXT} -b 1024"), size);
    assert_eq!(seen(&file, size, 0).written, Some(1024));
    assert_eq!(
        seen(&file, size, 0).remains,
        [],
        "the primary one is blkid's affair"
    );
    wipe(&file, size);
    let blank = seen(&file, size, 0);
    assert!(blank.written.is_none() && blank.remains.is_empty());
}

#[test]
fn blank_devices_of_every_size_are_blank() {
    let sizes = [
        0,
        512,
        4096,
        4097,
        MIB,
        8 * MIB,
        8 * MIB + 512,
        16 * MIB,
        16 * MIB + 512,
    ];
    for size in sizes.into_iter().chain([17 * MIB, GIB, 100 * TIB]) {
        let blank = seen(&sparse(size), size, 0);
        assert!(
            blank.written.is_none() && blank.remains.is_empty(),
            "{size}: {blank:?}"
        );
    }
}

#[test]
fn the_second_header_of_a_partition_table_is_seen() {
    for (sector, size) in [
        (512, GIB),
        (4096, GIB),
        (512, 20 * MIB + 512),
        (512, 32 * 1024),
    ] {
        let file = sparse(size);
        let at = size - sector;
        let mut header = vec![0; 512];
        header[..8].copy_from_slice(b"EFI PART");
        header[24..32].copy_from_slice(&(at / sector).to_le_bytes());
        file.as_file().write_all_at(&header, at).unwrap();
        let found = seen(&file, size, u64::MAX).remains;
        assert_eq!(found.len(), 1, "{sector} {size}");
        assert_eq!((found[0].kind, found[0].offset), (Kind::Gpt, at));

        header[24] ^= 1;
        file.as_file().write_all_at(&header, at).unwrap();
        assert_eq!(seen(&file, size, 0).remains, [], "names another sector");
    }
}
