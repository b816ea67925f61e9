//! Where filesystems that were made on a volume keep copies of their superblocks.
//!
//! These are only the places to look at. Whether a copy is there, and belongs there, is for
//! [`Superblock::parse`](super::superblock::Superblock::parse) to say.

use std::ops::Range;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A page, the least that the kernel reads of a device.
pub(super) const PAGE: u64 = 4 * KIB;

/// The places between `from` and `to` of a device of `size` bytes, in whole pages, in ascending
/// order, apart from each other. About a thousand at most, so that a disk reads them in seconds.
pub(super) fn places(size: u64, between: &Range<u64>) -> Vec<Range<u64>> {
    let mut places = Vec::new();
    ext(size, &mut places);
    xfs(size, &mut places);
    places.extend(BTRFS.map(page));
    places.sort_unstable_by_key(|place| place.start);

    let mut apart: Vec<Range<u64>> = Vec::new();
    for place in places {
        let start = place.start.max(between.start);
        let end = place.end.min(between.end);
        match apart.last_mut() {
            _ if start >= end => {}
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => apart.push(start..end),
        }
    }
    apart
}

/// `btrfs_sb_offset`: the copies after the primary superblock (64 KiB).
const BTRFS: [u64; 2] = [64 * MIB, 256 * GIB];

/// ext keeps copies at the beginning of group 1 and of those whose number is a power of 3, 5 or 7
/// (`sparse_super`); without that feature in every group; with `sparse_super2` in group 1 and in
/// the last one.
///
/// Groups are as large as mke2fs makes them unless told otherwise: one block of bitmap describes
/// them. Not covered: other sizes (`mke2fs -g`, or very many inodes by `-N`), filesystems of one
/// group, and `-E num_backup_sb=0`.
fn ext(size: u64, places: &mut Vec<Range<u64>>) {
    for log_block_size in 10..=16 {
        let block = 1_u64 << log_block_size;
        // EXT2_MAX_CLUSTERS_PER_GROUP: a count of 16 bits, in eights.
        let group = block.saturating_mul(block.saturating_mul(8).min(65_528));
        let mut push = |number: u64, group: u64| {
            // Blocks of 1 KiB begin at 1: the same page.
            places.extend(number.checked_mul(group).map(page));
        };

        push(1, group);
        for base in [3_u64, 5, 7] {
            let powers = std::iter::successors(Some(base), |power| power.checked_mul(base));
            powers
                .take_while(|number| number.checked_mul(group).is_some_and(|at| at < size))
                .for_each(|number| push(number, group));
        }
        // The last group may be too small to be one.
        let last = size.saturating_sub(1).checked_div(group).unwrap_or(0);
        push(last, group);
        push(last.saturating_sub(1), group);

        // bigalloc: a bit describes a cluster of 2, 4, 8, … blocks, and groups are larger as much.
        let larger = std::iter::successors(group.checked_mul(2), |group| group.checked_mul(2));
        for group in larger.take_while(|group| *group < size) {
            push(1, group);
            push(3, group);
        }
    }
}

/// xfs keeps a copy at the beginning of each allocation group. Groups are of one size, which only
/// the copies tell.
///
/// mkfs.xfs (`calc_default_ag_geometry`, `calc_concurrency_ag_geometry`) divides the device by 4;
/// by 2, 8, 16 or 32 if it is striped; by the number of CPUs if it is an SSD and a group is at least
/// 4 GiB then; with groups of 1 TiB less a block at most. `align_ag_geometry` then moves the size
/// by one stripe unit up or down.
///
/// A filesystem that has been grown keeps the group size of its youth. For groups of whole MiB up
/// to 1 GiB, and of whole multiples of 256 MiB up to 128 GiB, one group's beginning is seen: the
/// upper half of a range holds a multiple of each number in its lower half. Not covered: other
/// group sizes after growing, and a stripe unit of more than 1 MiB.
fn xfs(size: u64, places: &mut Vec<Range<u64>>) {
    for (count, around) in (2..=64)
        .map(|count| (count, 64 * KIB))
        .chain([2, 4, 8, 16, 32].map(|count| (count, MIB)))
    {
        places.extend(size.checked_div(count).map(|at| window(at, around)));
    }
    for count in 65..=256 {
        let group = size.checked_div(count).filter(|at| *at >= 4 * GIB);
        places.extend(group.map(|at| window(at, 64 * KIB)));
    }
    places.push(window(TIB, MIB));

    for (most, step) in [(GIB, MIB), (128 * GIB, 256 * MIB)] {
        let steps = size.min(most).checked_div(step).unwrap_or(0);
        let upper = (steps / 2)..=steps;
        places.extend(
            upper
                .filter_map(|number| number.checked_mul(step))
                .map(page),
        );
    }
}

fn page(at: u64) -> Range<u64> {
    let start = at.saturating_sub(at % PAGE);
    start..start.saturating_add(PAGE)
}

fn window(at: u64, around: u64) -> Range<u64> {
    page(at.saturating_sub(around)).start..page(at.saturating_add(around)).end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_apart_ascending_and_within() {
        for size in [0, 1, 512, 16 * MIB, 20 * MIB + 512, GIB, 16 * TIB, u64::MAX] {
            let between = (8 * MIB)..size.saturating_sub(8 * MIB);
            let places = places(size, &between);
            for place in &places {
                assert!(place.start < place.end, "{size}: {place:?}");
                assert!(
                    place.start >= between.start && place.end <= between.end,
                    "{place:?}"
                );
            }
            for pair in places.windows(2) {
                assert!(pair[0].end < pair[1].start, "{size}: {pair:?}");
            }
        }
    }

    #[test]
    fn even_a_huge_disk_is_asked_for_little() {
        for size in [TIB, 16 * TIB, 100 * TIB] {
            let places = places(size, &(0..size));
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
            ("xfs, 4 groups", 4 * TIB),
            ("xfs, largest groups", TIB - 4 * KIB),
            ("xfs, 24 groups", 16 * TIB / 24),
            ("xfs, 256 groups, a stripe unit less", 64 * GIB - 64 * KIB),
            ("xfs, grown from 10 GiB", 41 * 2560 * MIB),
            ("btrfs, 1", 64 * MIB),
            ("btrfs, 2", 256 * GIB),
        ];
        let places = places(size, &(0..size));
        for (name, at) in cases {
            assert!(
                places.iter().any(|place| place.contains(&at)),
                "{name}: {at}"
            );
        }
    }

    #[test]
    fn sees_a_group_of_every_whole_mib_after_growing() {
        let size = 500 * GIB;
        let places = places(size, &(0..size));
        for group in (16..=1024).map(|count| count * MIB) {
            let seen = (1..)
                .map(|number| number * group)
                .take_while(|at| *at <= GIB);
            assert!(
                seen.into_iter()
                    .any(|at| places.iter().any(|place| place.contains(&at))),
                "{group}"
            );
        }
    }
}
