//! Reads superblocks with one thing wrong at a time, and devices with them. `tests/superblocks/` has the cases with
//! real mkfs and real disks.

#![allow(clippy::arithmetic_side_effects)]

mod examining;
mod reading;

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Write};

use super::ext::ext_backup;
use super::primary::read_primary;
use super::scan::{Examination, Extent, examine};
use super::superblock::{Condition, Family, ReadAt, Superblock};
use crate::names::FsType;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const UUID: &str = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9ea";
const UUID_BYTES: &[u8] = &0x0b1c_2d3e_4f50_4162_8374_95a6_b7c8_d9ea_u128.to_be_bytes();

/// Offsets, and the bytes to write there.
type Change<'a> = &'a [(usize, &'a [u8])];

fn with(fields: Change, more: Change) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    for (at, value) in fields.iter().chain(more) {
        bytes[*at..*at + value.len()].copy_from_slice(value);
    }
    bytes
}

/// An ext of 256 MiB in blocks of 4 KiB, in two groups: made at 100 s, mounted at 200 s, written at 300 s.
#[rustfmt::skip] // a row is a line
const EXT: Change = &[
    (0x04, &65_536_u32.to_le_bytes()), // blocks
    (0x18, &[2]), // 4 KiB
    (0x20, &32_768_u32.to_le_bytes()), // blocks in a group
    (0x2C, &[200]), // mounted
    (0x30, &300_u32.to_le_bytes()), // written
    (0x34, &[2]), // count of mounts
    (0x38, &[0x53, 0xEF, 1]), // magic number, and a clean state
    (0x68, UUID_BYTES),
    (0x108, &[100]), // made
    (0x150, &[7]), // means nothing without 64 bits
];

const XFS: Change = &[
    (0, b"XFSB"),
    (4, &4096_u32.to_be_bytes()),
    (8, &4000_u64.to_be_bytes()), // blocks
    (32, UUID_BYTES),
    (84, &1024_u32.to_be_bytes()), // blocks in a group
    (88, &4_u32.to_be_bytes()),    // groups
    (102, &512_u16.to_be_bytes()), // bytes in a sector
];

const BTRFS: Change = &[
    (0x20, UUID_BYTES),
    (0x30, &(64 * KIB).to_le_bytes()), // its place
    (0x40, b"_BHRfS_M"),
    (0x90, &4096_u32.to_le_bytes()),
    (0xD1, &(1_u64 << 30).to_le_bytes()), // size
];

/// A device that is blank except for `bytes`. It records its reads, and one read can fail.
struct Device<'a> {
    size: u64,
    bytes: (u64, &'a [u8]),
    fails: Cell<Option<ErrorKind>>,
    reads: RefCell<Vec<u64>>,
}

impl<'a> Device<'a> {
    fn with(at: u64, bytes: &'a [u8]) -> Self {
        Self {
            size: 20 * MIB + 512,
            bytes: (at, bytes),
            fails: Cell::new(None),
            reads: RefCell::default(),
        }
    }

    fn examined(&self) -> Examination {
        examine(self, self.size, Extent::Whole)
    }
}

impl ReadAt for Device<'_> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(error) = self.fails.take() {
            return Err(error.into());
        }
        self.reads.borrow_mut().push(offset);
        let left = self.size.saturating_sub(offset);
        let length = into.len().min(usize::try_from(left).unwrap());
        into[..length].fill(0);
        let (at, bytes) = self.bytes;
        let end = (offset + length as u64).min(at + bytes.len() as u64);
        for place in at.max(offset)..end {
            let [to, from] = [place - offset, place - at].map(|n| usize::try_from(n).unwrap());
            into[to] = bytes[from];
        }
        Ok(length)
    }
}

fn primary(at: u64, bytes: &[u8]) -> Option<Superblock> {
    read_primary(&Device::with(at, bytes)).unwrap()
}

#[test]
fn a_whole_superblock_is_read() {
    let ext = Superblock {
        family: Family::Ext,
        uuid: UUID.to_owned(),
        size: 256 * MIB,
        block_size: 4096,
        condition: Condition::Unknown,
        newest_time: Some(300),
        in_progress: false,
        is_part: false,
        only_unmounted: false,
        largest: None,
        step: 128 * MIB,
        log: 0,
        certain_type: Some(FsType::Ext2),
        is_damaged: false,
    };
    let other = |family, size, step| Superblock {
        family,
        size,
        step,
        newest_time: None,
        certain_type: None,
        ..ext.clone()
    };
    let cases = [
        (1024, EXT, ext.clone()),
        (0, XFS, other(Family::Xfs, 4000 * 4096, 64 * 4096)),
        (64 * KIB, BTRFS, other(Family::Btrfs, 1 << 30, 4096)),
    ];
    for (at, fields, want) in cases {
        let found = primary(at, &with(fields, &[])).unwrap();
        let is_damaged = want.family == Family::Btrfs;
        assert_eq!(found, Superblock { is_damaged, ..want });
    }
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_superblock_is_damaged_if_its_checksum_is_wrong_and_the_kernel_checks_it() {
    let cases: [(&str, u64, Change, Change, bool); 6] = [
        ("ext, which e2fsck repairs", 1024, EXT, &[(0x64, &0x400_u32.to_le_bytes())], false),
        ("xfs 5", 0, XFS, &[(101, &[5])], true),
        ("xfs 4, which has none", 0, XFS, &[(101, &[4])], false),
        ("xfs 5, of which only a part is read", 0, XFS, &[(101, &[5]), (102, &8192_u16.to_be_bytes())], false),
        ("btrfs", 64 * KIB, BTRFS, &[], true),
        ("btrfs, with a checksum of another kind", 64 * KIB, BTRFS, &[(0xC4, &[1])], false),
    ];
    for (name, at, fields, more, want) in cases {
        let found = primary(at, &with(fields, more)).unwrap();
        assert_eq!(found.is_damaged, want, "{name}");
    }
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_filesystem_that_its_tool_could_make_larger_has_room() {
    let of = |at, fields, more| primary(at, &with(fields, more)).unwrap();
    let (ext, btrfs) = (of(1024, EXT, &[]), of(64 * KIB, BTRFS, &[]));
    // Two xfs with a log of 100 blocks: from block 9 on, and on another device.
    let xfs = of(0, XFS, &[(55, &[9]), (99, &[100])]);
    let outside = of(0, XFS, &[(99, &[100])]);
    let whole = 4000 * 4096;
    // Columns: the size by statfs(2), the size of the device, whether there is room.
    let cases = [
        ("ext", &ext, Some(200 * MIB), 256 * MIB, false),
        ("ext, less than a group", &ext, None, 384 * MIB - 1, false),
        ("ext, a group", &ext, Some(350 * MIB), 384 * MIB, true),
        ("ext, on less", &ext, None, 200 * MIB, false),
        ("xfs", &xfs, None, whole, false),
        ("xfs, 64 blocks", &xfs, None, whole + 64 * 4096, true),
        ("xfs, less", &xfs, Some(whole - 100 * 4096), whole + 64 * 4096 - 1, false),
        ("xfs, grown in memory", &xfs, Some(2 * whole - 100 * 4096), 2 * whole, false),
        ("xfs, with a log outside", &outside, Some(2 * whole - 100 * 4096), 2 * whole, true),
        ("xfs, under a quota", &xfs, Some(4096), whole, false),
        ("btrfs", &btrfs, Some(2 << 30), (1 << 30) + 4095, false),
        ("btrfs, a block", &btrfs, Some(2 << 30), (1 << 30) + 4096, true),
    ];
    for (name, found, shown, device, want) in cases {
        assert_eq!(found.has_room(shown, device), want, "{name}");
    }
}

#[test]
#[rustfmt::skip] // a row is a line
fn what_is_on_other_devices_is_told_by_the_superblock() {
    const JOURNAL: &[u8] = &[4];
    let cases: [(&str, u64, Change, Change, bool); 10] = [
        ("ext, no journal", 1024, EXT, &[], false),
        ("ext, its journal is inode 8", 1024, EXT, &[(0x5C, JOURNAL), (0xD0, UUID_BYTES), (0xE0, &[8])], false),
        ("ext, its journal is elsewhere", 1024, EXT, &[(0x5C, JOURNAL), (0xD0, UUID_BYTES)], true),
        ("xfs", 0, XFS, &[], false),
        ("xfs, its log is in it", 0, XFS, &[(55, &[9]), (99, &[100])], false),
        ("xfs, its log is elsewhere", 0, XFS, &[(99, &[100])], true),
        ("xfs, its realtime section is elsewhere", 0, XFS, &[(23, &[100])], true),
        ("xfs, its realtime section is in it", 0, XFS, &[(23, &[100]), (295, &[100])], false),
        ("btrfs, one disk", 64 * KIB, BTRFS, &[(0x88, &[1])], false),
        ("btrfs, two disks", 64 * KIB, BTRFS, &[(0x88, &[2])], true),
    ];
    for (name, at, fields, more, want) in cases {
        let found = primary(at, &with(fields, more)).unwrap();
        assert_eq!(found.is_part, want, "{name}");
    }
}

#[test]
#[rustfmt::skip] // a row is a line
fn one_wrong_number_makes_a_superblock_none() {
    let cases: [(&str, u64, Change, Change, bool); 28] = [
        ("ext, another magic number", 1024, EXT, &[(0x38, &[0x54])], false),
        ("ext, the largest blocks", 1024, EXT, &[(0x18, &[6])], true),
        ("ext, larger blocks", 1024, EXT, &[(0x18, &[7])], false),
        ("ext, a journal of another", 1024, EXT, &[(0x60, &[8])], false),
        ("ext, block 1 is the first", 1024, EXT, &[(0x14, &[1])], true),
        ("ext, block 2 is the first", 1024, EXT, &[(0x14, &[2])], false),
        ("ext, no block but the first", 1024, EXT, &[(0x14, &[1]), (0x04, &[1, 0, 0])], false),
        ("ext, no blocks", 1024, EXT, &[(0x04, &[0, 0, 0])], false),
        ("ext, no blocks in a group", 1024, EXT, &[(0x20, &[0, 0])], false),
        ("xfs, another magic number", 0, XFS, &[(3, b"C")], false),
        ("xfs, the smallest blocks", 0, XFS, &[(4, &512_u32.to_be_bytes())], true),
        ("xfs, smaller blocks", 0, XFS, &[(4, &256_u32.to_be_bytes())], false),
        ("xfs, the largest blocks", 0, XFS, &[(4, &65_536_u32.to_be_bytes())], true),
        ("xfs, larger blocks", 0, XFS, &[(4, &131_072_u32.to_be_bytes())], false),
        ("xfs, no power of two", 0, XFS, &[(4, &3000_u32.to_be_bytes())], false),
        ("xfs, no groups", 0, XFS, &[(88, &[0; 4])], false),
        ("xfs, an empty last group", 0, XFS, &[(8, &3072_u64.to_be_bytes())], false),
        ("xfs, no last group", 0, XFS, &[(8, &3000_u64.to_be_bytes())], false),
        ("xfs, one block in the last group", 0, XFS, &[(8, &3073_u64.to_be_bytes())], true),
        ("xfs, a whole last group", 0, XFS, &[(8, &4096_u64.to_be_bytes())], true),
        ("xfs, more than a last group", 0, XFS, &[(8, &4097_u64.to_be_bytes())], false),
        ("btrfs, another magic number", 64 * KIB, BTRFS, &[(0x47, b"N")], false),
        ("btrfs, of another place", 64 * KIB, BTRFS, &[(0x32, &[2])], false),
        ("btrfs, no power of two", 64 * KIB, BTRFS, &[(0x90, &[1])], false),
        ("btrfs, no size", 64 * KIB, BTRFS, &[(0xD1, &[0; 8])], false),
        ("ext, elsewhere", 2048, EXT, &[], false),
        ("xfs, elsewhere", 512, XFS, &[], false),
        ("btrfs, elsewhere", 0, BTRFS, &[], false),
    ];
    for (name, at, fields, more, want) in cases {
        assert_eq!(primary(at, &with(fields, more)).is_some(), want, "{name}");
    }
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_superblock_tells_its_size_its_times_and_how_it_was_left() {
    let ext = |more: Change| primary(1024, &with(EXT, more)).unwrap();
    assert_eq!(ext(&[(0x60, &[0x80])]).size, ((7 << 32) + 65_536) * 4096);
    // Times that need the upper 8 of 40 bits.
    for high in [0x274, 0x275, 0x276] {
        assert!(ext(&[(high, &[1])]).newest_time > Some(1 << 32), "{high:#x}");
    }
    let cases = [
        (1, 2, Condition::Unknown),
        (3, 2, Condition::Errors),
        (1, 4, Condition::LogToReplay),
        (3, 4, Condition::Errors),
    ];
    for (state, features, want) in cases {
        assert_eq!(ext(&[(0x3A, &[state]), (0x60, &[features])]).condition, want);
    }
    assert!(primary(0, &with(XFS, &[(126, &[1])])).unwrap().in_progress);
    // So begins the superblock while mkfs.btrfs works.
    assert_eq!(primary(64 * KIB, &with(BTRFS, &[(0x40, b"!")])), None);
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_backup_belongs_to_its_place() {
    const GROUP: u64 = 128 * MIB;
    let blocks = |count: u32| count.to_le_bytes();
    let (three, two, huge) = (blocks(98_305), blocks(65_537), blocks(u32::MAX));
    let cases: [(&str, u64, Change, bool); 11] = [
        ("of group 1", GROUP, &[(0x5A, &[1])], true),
        ("of group 1, by an old kernel", GROUP, &[], true),
        ("of another group", GROUP, &[(0x5A, &[2])], false),
        ("of group 0", 0, &[], false),
        ("beside a group", GROUP + 4096, &[(0x5A, &[1])], false),
        ("beside a block", GROUP + 512, &[(0x5A, &[1])], false),
        ("behind its end", 2 * GROUP, &[(0x5A, &[2])], false),
        ("before its end", 2 * GROUP, &[(0x5A, &[2]), (0x04, &two)], true),
        ("of a larger one", 3 * GROUP, &[(0x5A, &[3]), (0x04, &three)], true),
        ("of a group beyond 16 bits", 65_540 * GROUP, &[(0x5A, &[0xFF; 2]), (0x04, &huge), (0x60, &[0x80])], true),
        ("a primary one", 1024, &[], false),
    ];
    for (name, offset, more, want) in cases {
        let found = ext_backup(&with(EXT, more), offset);
        assert_eq!(found.is_some(), want, "{name}");
    }
}

#[test]
fn a_read_is_completed_or_an_error() {
    let ext = with(EXT, &[]);
    let mut device = Device::with(1024, &ext);
    device.fails.set(Some(ErrorKind::Interrupted));
    assert!(read_primary(&device).unwrap().is_some());
    device.fails.set(Some(ErrorKind::Other));
    assert!(read_primary(&device).is_err());
    device.size = 1024;
    assert_eq!(read_primary(&device).unwrap(), None);

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[0; 1024]).unwrap();
    file.write_all(&ext).unwrap();
    assert!(read_primary(&file).unwrap().is_some());
}

#[test]
#[rustfmt::skip] // a row is a line
fn an_ext_has_a_largest_size() {
    const TIB: u64 = 1 << 40;
    // Columns: blocks of 2^n KiB, inodes in each group, whether it has the feature 64bit, the largest size.
    let cases = [
        ("without 64bit", 2, 8192, false, Some(16 * TIB)),
        ("with 64bit", 2, 8192, true, Some(((1 << 19) - 1) * 32768 * 4096)),
        ("small blocks", 0, 512, false, Some(4 * TIB)),
        ("very many inodes", 2, 32768, false, Some(((1 << 17) - 1) * 32768 * 4096)),
        ("no inodes", 2, 0, true, None),
    ];
    for (name, log, inodes, wide, want) in cases {
        let blocks_per_group: u32 = if log == 0 { 8192 } else { 32768 };
        let incompat: u32 = if wide { 0x80 } else { 0 };
        let fields: Vec<(usize, Vec<u8>)> = vec![
            (0x18, u32::to_le_bytes(log).to_vec()),
            (0x20, blocks_per_group.to_le_bytes().to_vec()),
            (0x28, u32::to_le_bytes(inodes).to_vec()),
            (0x60, incompat.to_le_bytes().to_vec()),
        ];
        let fields: Vec<(usize, &[u8])> = fields.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        let found = primary(1024, &with(EXT, &fields)).unwrap();
        assert_eq!(found.largest, want, "{name}");
    }
}
