//! Examines devices with data in one place.

use std::io::ErrorKind;

use super::super::Backup;
use super::super::scan::{Extent, examine};
use super::*;

#[test]
fn what_is_written_on_a_device_is_seen() {
    let seen = |at, bytes| Device::with(at, bytes).examined();
    let cases: [(&str, u64, &[u8], Option<u64>); 7] = [
        ("nothing", 0, b"", None),
        ("two sectors", 500, &[1; 600], Some(0)),
        ("what lvcreate zeroes", 4095, b"x", Some(3584)),
        ("behind that", 4096, b"x", Some(4096)),
        (
            "the end of the head",
            8 * MIB - 1,
            b"x",
            Some(8 * MIB - 512),
        ),
        ("the tail", 20 * MIB + 511, b"x", Some(20 * MIB)),
        ("neither end", 10 * MIB + 8192, b"x", None),
    ];
    for (name, at, bytes, want) in cases {
        let data = seen(at, bytes).data;
        assert_eq!(data.map(|data| data.offset), want, "{name}");
    }
    let swap = seen(8192 - 10, b"SWAPSPACE2").mark.unwrap();
    assert_eq!((&*swap.what, swap.offset), ("a swap header", 7680));

    let device = Device::with(0, b"");
    device.examined();
    let reads = device.reads.take();
    assert!(reads.iter().all(|at| at % 4096 == 0), "{reads:?}");
    assert_eq!(reads.iter().max(), Some(&(20 * MIB)));
    device.fails.set(Some(ErrorKind::Other));
    assert_eq!(device.examined().unreadable.unwrap().offset, 0);
}

#[test]
fn data_is_told_from_other_data_by_its_checksum() {
    let sum = |at, bytes| Device::with(at, bytes).examined().data.unwrap().sum;
    let all = [
        (0, b"x"),
        (0, b"y"),
        (1, b"x"),
        (512, b"x"),
        (20 * MIB, b"x"),
    ];
    let sums: std::collections::BTreeSet<String> =
        all.iter().map(|(at, bytes)| sum(*at, *bytes)).collect();
    assert_eq!(sums.len(), all.len(), "{sums:?}");
    assert_eq!(sum(0, b"x"), sum(0, b"x"));
    assert_eq!(sum(0, b"x").len(), 32);
}

#[test]
fn a_superblock_is_seen_in_any_sector() {
    // As in the first partition of a disk image.
    let [ext, xfs] = [with(EXT, &[]), with(XFS, &[])];
    for (at, bytes, want) in [
        (MIB + 1024, &ext, "an ext superblock"),
        (63 * 512 + 1024, &ext, "an ext superblock"),
        (MIB, &xfs, "an xfs superblock"),
    ] {
        let mark = Device::with(at, bytes).examined().mark.unwrap();
        assert_eq!((&*mark.what, mark.offset), (want, at));
    }
}

#[test]
fn a_look_for_marks_reads_a_part_of_each_end() {
    const MARKED: u64 = 384 * KIB;
    for (at, is_read) in [
        (MARKED - 1, true),
        (MARKED, false),
        (20 * MIB - MARKED - 1, false),
        (20 * MIB - MARKED, true),
    ] {
        let device = Device::with(at, b"x");
        let seen = examine(&device, device.size, Extent::Marks);
        assert_eq!(!seen.is_zero(), is_read, "{at}");
    }
}

#[test]
fn a_backup_counts_whatever_its_time() {
    // An ext with blocks of 1 KiB and groups of 8 MiB.
    let mut more = vec![
        (0x18, &[0][..]),
        (0x14, &[1]),
        (0x20, &[0, 32]),
        (0x5A, &[1]),
    ];
    let of_1970 = with(EXT, &more);
    let later = 1_700_000_000_u32.to_le_bytes();
    more.push((0x30, &later));
    let ext = with(EXT, &more);
    let device = Device::with(8 * MIB + 1024, &ext);
    let backup = Backup {
        offset: 8 * MIB + 1024,
        uuid: UUID.to_owned(),
        block_size: 1024,
        written: 1_700_000_000,
    };
    assert_eq!(device.examined().backups, std::slice::from_ref(&backup));
    // The clock had begun anew at 1970 when the backup was written.
    let begun_anew = Device::with(8 * MIB + 1024, &of_1970).examined();
    assert_eq!(begun_anew.backups[0].written, 300);
    let repair = backup.repair("/dev/mapper/vg-lv".as_ref());
    let words = "`e2fsck -n -b 8193 -B 1024 /dev/mapper/vg-lv` shows what is left, and `e2fsck -b 8193 -B 1024 \
                 /dev/mapper/vg-lv` repairs it if no other data was written since";
    assert_eq!(repair, words);
    let words = format!(
        "an ext backup superblock at byte 8389632 (UUID {UUID}, written 2023-11-14T22:13:20Z)"
    );
    assert_eq!(backup.to_string(), words);
    // An impossible time on a disk causes no panic.
    let written = u64::MAX;
    let nonsense = Backup { written, ..backup };
    assert!(nonsense.to_string().contains("written 9999-12-31"));
}
