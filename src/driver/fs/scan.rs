//! Examines a device that may be blank: reads every place where data leaves signs, and looks for copies of superblocks.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::backup::{Backup, is_unused};
use super::inside;
use super::remains::Remains;
use super::signatures;
use super::superblock::{ReadAt, Superblock, fill};
use crate::host::{Command, Host, Pages};
use crate::names::{Bytes, Shown};

/// How much of a device's head and of its tail is read completely.
///
/// In this range is everything that libblkid reads on every device (`libblkid/src/superblocks/*.c`, `partitions/*.c`).
/// The places that are farthest from the ends are, in the head: LUKS2's second header (4 MiB), VMFS (2 MiB), UDF's
/// anchor (1 MiB), ZFS labels (512 KiB), btrfs (64 KiB). In the tail: Promise RAID (3087 sectors), ZFS labels (512 KiB,
/// rounded to 256 KiB), md 0.90 (128 KiB), DDF (257 sectors), GPT (a sector). blkid reads further only if a structure
/// in this range points there.
const END: u64 = 8 << 20;

/// How much is read at once, in whole pages. Most disks take this as one request or a few.
const CHUNK: usize = 1 << 20;

/// How much of the head, and how much of the tail, [`Extent::Marks`] reads.
const MARKED: u64 = 384 << 10;

/// How many places of a backup superblock [`Extent::Marks`] reads, a page each.
const MARKED_PLACES: usize = 60;

/// A page, the smallest part of a device that the kernel reads.
const PAGE: u64 = 4 << 10;

/// A sector. Every superblock begins at a whole sector.
const SECTOR: usize = 512;

/// Bytes at the beginning of a new volume that lvcreate zeroes by default. Source: lvcreate(8), `--zero`.
pub const ZEROED: u64 = 4 << 10;

/// blkid takes a device of up to this size for a floppy disk, and does not look for RAID and DRBD. Source: libblkid,
/// `BLKID_FL_TINY_DEV`.
pub const TINY: u64 = 1440 << 10;

/// How much of a device is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Extent {
    Whole,
    /// Like `Whole`, but the data stays in the page cache for blkid, which reads next.
    Cached,
    /// At most 1 MiB, where most kinds of content have their marks. For a device that was all zero a moment ago, if the
    /// kernel has counted no write since.
    Marks,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examination {
    /// The first place that could not be read. Nothing was looked at after it.
    pub unreadable: Option<Unreadable>,
    pub backup: Option<Backup>,
    /// The first backup that is older than the volume. If LVM's creation time is right, a removed volume left it.
    pub older: Option<Backup>,
    /// A mark of content that blkid knows, at the place where blkid looks for it. blkid should have named the content.
    pub signature: Option<String>,
    pub is_zero: bool,
    /// Byte offset of the first sector that is not zero, among the sectors that lvcreate zeroes. In a volume of at most
    /// [`TINY`] bytes, where blkid does not look for everything, all sectors are searched.
    pub written: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Bytes from the beginning of the device, accurate to a page.
    pub offset: u64,
    pub error: String,
}

/// A device that is open, and its name.
pub type Opened<'a> = (&'a Arc<File>, &'a Path);

/// Reads a device that the caller has open. `flush`: flushes the device before and after, so that the disk keeps
/// everything written. lvcreate does not flush: after a power cut, data that lvcreate wiped could show again.
pub fn scan(
    host: &Host,
    (size, remains): (Bytes, Remains),
    extent: Extent,
    flush: bool,
    claim: Opened,
) -> Result<Examination> {
    let words = [
        size.get().to_string(),
        remains.to_string(),
        extent.to_string(),
    ]
    .into_iter();
    let flush = flush.then(|| super::FLUSH.to_owned());
    asked(host, claim, super::EXAMINE, words.chain(flush))
}

/// Reads the superblock of the filesystem on a device. `None`: there is no valid superblock. With the device's `size`,
/// also finds out whether the device holds nothing else: see [`Superblock::sole_type`].
pub fn superblock_of(
    host: &Host,
    size: Option<Bytes>,
    device: Opened,
) -> Result<Option<Superblock>> {
    let size = size.map(|size| size.get().to_string());
    asked(host, device, super::SUPERBLOCK, size)
}

/// Flushes the device, so that the disk keeps everything mkfs has written. Then reads the superblock of the new
/// filesystem. `None`: there is no valid superblock.
///
/// mkfs.xfs does not flush: after a power cut, a disk may have the superblock, which mkfs writes last, but not the
/// rest. Source: xfsprogs' `libxfs/linux.c`, `platform_flush_device`.
pub fn superblock_of_new(host: &Host, device: Opened) -> Result<Option<Superblock>> {
    asked(host, device, super::SUPERBLOCK, [super::FLUSH.to_owned()])
}

/// Lets another process read a device. A read of a failing disk may never return; then the driver can leave that
/// process behind.
pub(crate) fn asked<T: DeserializeOwned>(
    host: &Host,
    (device, path): Opened,
    question: &'static str,
    words: impl IntoIterator<Item = String>,
) -> Result<T> {
    let command = Command::asks(question, Arc::clone(device), host.limits.query).args(words);
    let reading = || format!("reading {}", path.shown());
    let output = host.run(&command).with_context(reading)?;
    serde_json::from_slice(&output.stdout).with_context(reading)
}

/// Reads the head, the tail and every usual place of a backup superblock of `device`, which has `size` bytes.
pub fn examine(device: &impl ReadAt, size: u64, remains: Remains, extent: Extent) -> Examination {
    let mut seen = Examination {
        is_zero: true,
        ..Examination::default()
    };
    let (end, most) = match extent {
        Extent::Whole | Extent::Cached => (END, usize::MAX),
        Extent::Marks => (MARKED, MARKED_PLACES),
    };
    let head = 0..size.min(end);
    // The tail begins at a whole page, so that no superblock is cut in two.
    let tail_start = size.saturating_sub(end);
    let tail = head.end.max(tail_start.saturating_sub(tail_start % PAGE))..size;
    let between = head.end..tail.start;
    let mut ranges = vec![head, tail];
    ranges.extend(places(size, remains, &between).into_iter().take(most));
    let mut buffer = Pages::new(CHUNK);
    let buffer = buffer.bytes();
    for range in ranges {
        for start in range.clone().step_by(CHUNK) {
            let left = usize::try_from(range.end.saturating_sub(start)).unwrap_or(usize::MAX);
            let chunk = buffer.get_mut(..left.min(CHUNK)).unwrap_or_default();
            if let Err((offset, error)) = fill(device, chunk, start) {
                let error = error.to_string();
                seen.unreadable = Some(Unreadable { offset, error });
                return seen;
            }
            seen.take(chunk, start, size, remains);
        }
    }
    for backup in [&mut seen.backup, &mut seen.older].into_iter().flatten() {
        backup.is_unused &= is_unused(device, backup);
    }
    seen
}

impl Examination {
    fn take(&mut self, chunk: &[u8], start: u64, size: u64, remains: Remains) {
        const ZERO: [u8; SECTOR] = [0; SECTOR];
        for (index, sector) in chunk.chunks(SECTOR).enumerate() {
            if ZERO.starts_with(sector) {
                continue;
            }
            self.is_zero = false;
            let at = index.saturating_mul(SECTOR);
            let bytes = chunk.get(at..).unwrap_or_default();
            let offset = start.saturating_add(at as u64);
            if (offset < ZEROED || size <= TINY) && self.written.is_none() {
                self.written = Some(offset);
            }
            if self.signature.is_none() {
                self.signature = signatures::in_sector(sector, offset, size)
                    .or_else(|| inside::in_sector(bytes, offset, remains))
                    .map(|what| format!("{what} at byte {offset}"));
            }
            if let Some(found) = Backup::of(bytes, offset) {
                self.take_backup(found, remains);
            }
        }
    }

    /// Keeps two backups: the first that is older than the volume, and the first that is not. Compares each with the
    /// later backups of its kind. If a later backup has another UUID, two filesystems were here, and the kept backup
    /// does not count as unused.
    fn take_backup(&mut self, found: Backup, remains: Remains) {
        let first = if found.is_older(remains) {
            &mut self.older
        } else {
            &mut self.backup
        };
        match first {
            Some(first) => first.is_unused &= first.uuid == found.uuid,
            None => *first = Some(found),
        }
    }
}

/// The pages within `between` that may hold a copy of the superblock of an ext that was made on a device of `size`
/// bytes, in ascending order. There are a few hundred at most, so a disk reads them in seconds.
///
/// For each block size of ext, these are the pages at the beginning of group 1, of the groups whose number is a power
/// of 3, 5 or 7, and of the last two groups. With `sparse_super`, an ext keeps copies in group 1 and in the groups of
/// these powers; with `sparse_super2`, in group 1 and in the last group; without both, in every group, so these pages
/// are enough. This assumes mke2fs's default size of a group, which one block of bitmap describes. Not covered: other
/// sizes (`mke2fs -g`, `-N`), filesystems of one group, and `-E num_backup_sb=0`.
///
/// With [`Remains::None`], also the places of xfs and btrfs.
fn places(size: u64, remains: Remains, between: &Range<u64>) -> Vec<Range<u64>> {
    let mut pages = copies_of_ext(size);
    if remains == Remains::None {
        pages.extend(inside::copies(size));
    }
    pages
        .into_iter()
        .map(|start| start.max(between.start)..start.saturating_add(PAGE).min(between.end))
        .filter(|place| place.start < place.end)
        .collect()
}

/// The offsets, in bytes, of the pages where an ext that was made on a device of `size` bytes may keep copies of its
/// superblock.
fn copies_of_ext(size: u64) -> BTreeSet<u64> {
    let mut pages = BTreeSet::new();
    for log_block_size in 10..=16 {
        let block = 1_u64 << log_block_size;
        // EXT2_MAX_CLUSTERS_PER_GROUP: a number of 16 bits, and a multiple of 8.
        let group = block.saturating_mul(block.saturating_mul(8).min(65_528));
        let mut push = |number: u64, group: u64| {
            // With blocks of 1 KiB, groups begin one block later, which is in the same page.
            let at = number.checked_mul(group);
            pages.extend(at.map(|at| at.saturating_sub(at % PAGE)));
        };

        push(1, group);
        for base in [3_u64, 5, 7] {
            let powers = std::iter::successors(Some(base), |power| power.checked_mul(base));
            powers
                .take_while(|number| number.checked_mul(group).is_some_and(|at| at < size))
                .for_each(|number| push(number, group));
        }
        // If the last group would be too small, mke2fs leaves it out.
        let last = size.saturating_sub(1).checked_div(group).unwrap_or(0);
        push(last, group);
        push(last.saturating_sub(1), group);

        // bigalloc: a bit describes a cluster of 2, 4, 8, … blocks, and groups grow by the same factor.
        let larger = std::iter::successors(group.checked_mul(2), |group| group.checked_mul(2));
        for group in larger.take_while(|group| *group < size) {
            push(1, group);
            push(3, group);
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;

    #[test]
    fn places_are_apart_ascending_and_within() {
        for size in [0, 1, 512, 16 * MIB, 20 * MIB + 512, GIB, 16 * TIB, u64::MAX] {
            let between = (8 * MIB)..size.saturating_sub(8 * MIB);
            let places = places(size, Remains::None, &between);
            for place in &places {
                assert!(place.start < place.end, "{size}: {place:?}");
                assert!(
                    place.start >= between.start && place.end <= between.end,
                    "{place:?}"
                );
            }
            for pair in places.windows(2) {
                assert!(pair[0].end <= pair[1].start, "{size}: {pair:?}");
            }
        }
    }

    #[test]
    fn copies_of_xfs_are_looked_for_only_inside_an_encrypted_volume() {
        // Where the second of 4 groups of an xfs begins, and no group of an ext that keeps a copy.
        let (size, copy) = (10 * TIB, 5 * TIB / 2);
        for (remains, want) in [(Remains::None, true), (Remains::OlderThan(0), false)] {
            let places = places(size, remains, &(0..size));
            let is_looked_at = places.iter().any(|place| place.contains(&copy));
            assert_eq!(is_looked_at, want, "{remains:?}");
        }
    }

    #[test]
    fn a_backup_is_a_used_ones_if_that_of_another_filesystem_follows() {
        let mut seen = Examination::default();
        for (uuid, want) in [("u", true), ("u", true), ("v", false), ("u", false)] {
            let found = Backup {
                offset: 128 * MIB,
                uuid: uuid.to_owned(),
                block_size: 4096,
                written: 0,
                is_unused: true,
            };
            seen.take_backup(found, Remains::None);
            let first = seen.backup.as_ref().map(|first| first.is_unused);
            assert_eq!(first, Some(want), "{uuid}");
        }
    }

    #[test]
    fn even_a_huge_disk_is_asked_for_little() {
        for size in [TIB, 16 * TIB, 100 * TIB] {
            let places = places(size, Remains::None, &(0..size));
            let bytes: u64 = places.iter().map(|place| place.end - place.start).sum();
            assert!(places.len() < 1500, "{size}: {} reads", places.len());
            assert!(bytes < 64 * MIB, "{size}: {bytes} bytes");
        }
    }

    #[test]
    fn looks_where_the_formats_say() {
        let size = 16 * TIB;
        let cases = [
            ("ext, 1 KiB blocks, group 1", 8 * MIB + KIB),
            ("ext, 1 KiB blocks, group 7^2", 49 * 8 * MIB + KIB),
            ("ext, 2 KiB blocks, group 5", 5 * 32 * MIB),
            ("ext, 4 KiB blocks, group 3^10", 59_049 * 128 * MIB),
            ("ext, 64 KiB blocks, group 1", 65_528 * 64 * KIB),
            ("ext, clusters of 64 KiB, group 1", 2 * GIB),
            ("ext, clusters of 64 KiB, group 3", 6 * GIB),
            ("ext, last group", 16 * TIB - 128 * MIB),
            ("btrfs, second", 64 * MIB),
            ("btrfs, third", 256 * GIB),
            ("xfs, one of 16 groups", TIB),
        ];
        let places = places(size, Remains::None, &(0..size));
        for (name, at) in cases {
            assert!(
                places.iter().any(|place| place.contains(&at)),
                "{name}: {at}"
            );
        }
    }
}
