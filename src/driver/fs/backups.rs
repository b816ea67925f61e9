//! Where an ext that was made on a volume keeps copies of its superblock. Whether a copy is there, and belongs there,
//! is for [`ext_backup`](super::superblock::ext_backup) to say.

use std::collections::BTreeSet;
use std::ops::Range;

/// A page, the least that the kernel reads of a device.
pub(super) const PAGE: u64 = 4 << 10;

/// The places within `between` of a device of `size` bytes, a page each, in ascending order. A few
/// hundred at most, so that a disk reads them in seconds.
pub(super) fn places(size: u64, between: &Range<u64>) -> Vec<Range<u64>> {
    let mut pages = BTreeSet::new();
    ext(size, &mut pages);
    pages
        .into_iter()
        .map(|start| start.max(between.start)..start.saturating_add(PAGE).min(between.end))
        .filter(|place| place.start < place.end)
        .collect()
}

/// ext keeps copies at the beginning of group 1 and of those whose number is a power of 3, 5 or 7
/// (`sparse_super`); without that feature in every group; with `sparse_super2` in group 1 and in
/// the last one. Groups are as large as mke2fs makes them: one block of bitmap describes them. Not
/// covered: other sizes (`mke2fs -g`, `-N`), filesystems of one group, and `-E num_backup_sb=0`.
fn ext(size: u64, pages: &mut BTreeSet<u64>) {
    for log_block_size in 10..=16 {
        let block = 1_u64 << log_block_size;
        // EXT2_MAX_CLUSTERS_PER_GROUP: a count of 16 bits, in eights.
        let group = block.saturating_mul(block.saturating_mul(8).min(65_528));
        let mut push = |number: u64, group: u64| {
            // Blocks of 1 KiB begin at 1: the same page.
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
        // The last group may be too small to be one.
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
            let places = places(size, &between);
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
        ];
        let places = places(size, &(0..size));
        for (name, at) in cases {
            assert!(
                places.iter().any(|place| place.contains(&at)),
                "{name}: {at}"
            );
        }
    }
}
