//! Where a device is looked at for data, and where a new volume is cleaned.

use std::collections::BTreeSet;
use std::ops::Range;

use super::scan::Extent;

/// How much of a device's head and of its tail is read completely.
///
/// In this range is everything that libblkid reads on every device (`libblkid/src/superblocks/*.c`, `partitions/*.c`).
/// The places that are farthest from the ends are, in the head: LUKS2's second header (4 MiB), VMFS (2 MiB), UDF's
/// anchor (1 MiB), ZFS labels (512 KiB), btrfs (64 KiB). In the tail: Promise RAID (3087 sectors), ZFS labels (512 KiB,
/// rounded to 256 KiB), md 0.90 (128 KiB), DDF (257 sectors), GPT and NTFS (a sector). blkid reads further only if a
/// structure in this range points there.
const END: u64 = 8 << 20;

/// How much of the head, and how much of the tail, [`Extent::Marks`] reads.
const MARKED: u64 = 384 << 10;

/// How many places of copies [`Extent::Marks`] reads, a page each.
const MARKED_PLACES: usize = 60;

/// A page, the smallest part of a device that the kernel reads.
const PAGE: u64 = 4 << 10;

/// The ranges of a device of `size` bytes that are read, and that are made zero on a new volume: the head, the tail,
/// and between them every usual place of a copy of a superblock, a page each.
pub(super) fn ranges(size: u64, extent: Extent) -> Vec<Range<u64>> {
    let (end, most) = match extent {
        Extent::Whole | Extent::Cached => (END, usize::MAX),
        Extent::Marks => (MARKED, MARKED_PLACES),
    };
    let head = 0..size.min(end);
    // The tail begins at a whole page, so that no superblock is cut in two.
    let tail_start = page_of(size.saturating_sub(end));
    let tail = head.end.max(tail_start)..size;
    let between = head.end..tail.start;
    let mut ranges = vec![head, tail];
    ranges.extend(copies(size, &between).take(most));
    ranges
}

/// The pages within `between` that may hold a copy of a superblock, in ascending order. There are a few hundred at
/// most, so a disk reads them in seconds.
fn copies(size: u64, between: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut pages = copies_of_ext(size);
    pages.extend(copies_of_xfs(size));
    pages.extend(COPIES_OF_BTRFS);
    let all = pages.into_iter();
    let within = between.clone();
    all.map(move |start| start.max(within.start)..start.saturating_add(PAGE).min(within.end))
        .filter(|place| place.start < place.end)
}

fn page_of(at: u64) -> u64 {
    at.saturating_sub(at.checked_rem(PAGE).unwrap_or(0))
}

const COPIES_OF_BTRFS: [u64; 2] = [64 << 20, 256 << 30];

/// Where the second group of an xfs may begin, by a copy of the superblock. mkfs.xfs makes 4 groups, or 8 to 32 on a
/// striped device, none larger than 1 TiB. On a striped device, a group is whole stripes, and one stripe less if all
/// groups would begin on the same disk. Not covered: other numbers of groups (`-d agcount`), and an xfs that was grown.
/// Source: xfsprogs' `mkfs/xfs_mkfs.c`, `calculate_initial_geometry` and `align_ag_geometry`.
fn copies_of_xfs(size: u64) -> impl Iterator<Item = u64> {
    const LARGEST_GROUP: u64 = 1 << 40;
    let groups = [4_u64, 8, 16, 32].map(|groups| size.div_ceil(groups).min(LARGEST_GROUP));
    let stripes = (12..=20).map(|log| 1_u64 << log);
    groups.into_iter().flat_map(move |group| {
        stripes.clone().flat_map(move |stripe| {
            let up = group.div_ceil(stripe).saturating_mul(stripe);
            let down = up.saturating_sub(stripe);
            [up, down, down.saturating_sub(stripe)]
        })
    })
}

/// The offsets of the pages where an ext that was made on a device of `size` bytes may keep copies of its superblock.
///
/// For each block size of ext, these are the pages at the beginning of group 1, of the groups whose number is a power
/// of 3, 5 or 7, and of the last two groups. With `sparse_super`, an ext keeps copies in group 1 and in the groups of
/// these powers. With `sparse_super2`, the copies are in group 1 and in the last group. With neither, every group has a
/// copy, so some of the copies are on these pages. This assumes mke2fs's default size of a group, which one block of
/// bitmap describes. Not covered: other sizes (`mke2fs -g`, `-N`), filesystems of one group, and `-E num_backup_sb=0`.
fn copies_of_ext(size: u64) -> BTreeSet<u64> {
    let mut pages = BTreeSet::new();
    for log_block_size in 10..=16 {
        let block = 1_u64 << log_block_size;
        // EXT2_MAX_CLUSTERS_PER_GROUP: a number of 16 bits, and a multiple of 8.
        let group = block.saturating_mul(block.saturating_mul(8).min(65_528));
        let mut push = |number: u64, group: u64| {
            // With blocks of 1 KiB, groups begin one block later, which is in the same page.
            pages.extend(number.checked_mul(group).map(page_of));
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
    fn ranges_are_apart_and_within() {
        for size in [0, 1, 512, 16 * MIB, 20 * MIB + 512, GIB, 16 * TIB, u64::MAX] {
            let mut ranges = ranges(size, Extent::Whole);
            ranges.sort_by_key(|range| range.start);
            for range in &ranges {
                assert!(range.end <= size, "{size}: {range:?}");
            }
            for pair in ranges.windows(2) {
                assert!(pair[0].end <= pair[1].start, "{size}: {pair:?}");
            }
        }
    }

    #[test]
    fn even_a_huge_disk_is_asked_for_little() {
        for size in [GIB, TIB, 16 * TIB, 100 * TIB] {
            let ranges = ranges(size, Extent::Whole);
            let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            assert!(ranges.len() < 1500, "{size}: {} reads", ranges.len());
            assert!(bytes <= 22 * MIB, "{size}: {bytes} bytes");
        }
    }

    #[test]
    fn looks_where_the_formats_say() {
        let size = 16 * TIB;
        let cases = [
            ("the beginning", 0),
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
            ("xfs, groups moved by a stripe of 64 KiB", TIB - 64 * KIB),
            ("the last sector", size - 512),
        ];
        let ranges = ranges(size, Extent::Whole);
        for (name, at) in cases {
            let is_read = ranges.iter().any(|range| range.contains(&at));
            assert!(is_read, "{name}: {at}");
        }
    }
}
