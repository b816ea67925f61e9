//! Marks of content, which the driver looks for even if blkid finds nothing. blkid needs more than a mark: it also
//! finds nothing if the content is damaged, or could not be read at that moment. Such a volume is not blank. Except for
//! one swap header, the marks are beyond the first 4 KiB, which must be zero in any case.

/// Each mark: its content's name, its offset in bytes, its bytes. Sources: libblkid's
/// `superblocks/*.c`.
#[rustfmt::skip] // a row is a line
const MARKS: &[(&str, u64, &[u8])] = &[
    ("a swap header", 4096 - 10, b"SWAPSPACE2"),
    ("an md superblock", 4096, &MD),
    // The mark is the first half of a fixed UUID. blkid of util-linux 2.41 also needs a right checksum.
    ("a bcache superblock", 4096 + 24, &[0xC6, 0x85, 0x73, 0xF6, 0x4E, 0x1A, 0x45, 0xCA]),
    ("a bcachefs superblock", 4096 + 24, &[0xC6, 0x85, 0x73, 0xF6, 0x66, 0xCE, 0x90, 0xA9]),
    // The mark of swap is at the end of the first page. Pages have other sizes on other machines; arm64 has three
    // sizes.
    ("a swap header", 8192 - 10, b"SWAPSPACE2"),
    ("a swap header", 16_384 - 10, b"SWAPSPACE2"),
    ("a swap header", 32_768 - 10, b"SWAPSPACE2"),
    ("a swap header", 65_536 - 10, b"SWAPSPACE2"),
    ("a jfs superblock", 32_768, b"JFS1"),
    ("an ISO 9660 descriptor", 32_769, b"CD001"),
    ("a UDF descriptor", 32_769, b"BEA01"),
    ("a gfs2 superblock", 65_536, &[0x01, 0x16, 0x19, 0x70]),
    ("a reiserfs superblock", 65_536 + 0x34, b"ReIsEr"),
    (BTRFS, 65_536 + 0x40, b"_BHRfS_M"),
];

pub(super) const BTRFS: &str = "a btrfs superblock";

/// `MD_SB_MAGIC` of Linux software RAID.
const MD: [u8; 4] = 0xA92B_4EFC_u32.to_le_bytes();
/// `ub_magic` of ZFS.
const ZFS: [u8; 8] = 0x00BA_B10C_u64.to_le_bytes();

/// The content whose mark is in `sector`, which is at byte `offset` of a device of `size` bytes.
pub(super) fn in_sector(sector: &[u8], offset: u64, size: u64) -> Option<&'static str> {
    let is_at = |place: u64, mark: &[u8]| {
        place
            .checked_sub(offset)
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| sector.get(at..))
            .is_some_and(|rest| rest.starts_with(mark))
    };
    let known = MARKS
        .iter()
        .find(|(_, place, mark)| is_at(*place, mark))
        .map(|(name, ..)| *name);
    // md's superblocks of the versions 1.0 and 0.90 are at the end of the device.
    let ends = [
        size.checked_sub(8192).map(|at| round_down(at, 4096)),
        round_down(size, 65_536).checked_sub(65_536),
    ];
    let is_md = || ends.into_iter().flatten().any(|place| is_at(place, &MD));
    // The place of LUKS2's second header depends on the size of the first (cryptsetup's docs/on-disk-format-luks2.pdf,
    // "Binary Header").
    let is_luks = || {
        sector.starts_with(b"SKUL\xBA\xBE")
            && offset.is_power_of_two()
            && (16 << 10..=4 << 20).contains(&offset)
    };
    known
        .or_else(|| is_luks().then_some("a second LUKS2 header"))
        .or_else(|| is_md().then_some("an md superblock"))
        .or_else(|| is_zfs(sector, offset, size).then_some("a ZFS label"))
}

/// Whether an uberblock of ZFS begins here. ZFS has two labels of 256 KiB at each end of a device. The second half of a
/// label is a ring of uberblocks.
fn is_zfs(sector: &[u8], offset: u64, size: u64) -> bool {
    const LABEL: u64 = 256 << 10;
    const LABELS: u64 = 2 * LABEL;
    let is_in_ring =
        |place: u64| place < LABELS && place % LABEL >= LABEL / 2 && place.is_multiple_of(1024);
    let second_pair = round_down(size, LABEL).checked_sub(LABELS);
    let at_the_end = second_pair.and_then(|start| offset.checked_sub(start));
    sector.starts_with(&ZFS) && (is_in_ring(offset) || at_the_end.is_some_and(is_in_ring))
}

fn round_down(number: u64, step: u64) -> u64 {
    number.saturating_sub(number.checked_rem(step).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use super::*;

    /// Searches a device of `size` bytes that contains only these bytes, at `place`.
    fn found(size: u64, place: u64, bytes: &[u8]) -> Option<&'static str> {
        let offset = place - place % 512;
        let at = usize::try_from(place - offset).unwrap();
        let mut sector = [0; 512];
        sector[at..at + bytes.len()].copy_from_slice(bytes);
        in_sector(&sector, offset, size)
    }

    #[test]
    fn a_mark_counts_at_its_own_place_only() {
        const SIZE: u64 = (32 << 20) + 4096;
        let places: Vec<u64> = MARKS.iter().map(|(_, place, _)| *place).collect();
        let want = [
            4086, 4096, 4120, 4120, 8182, 16_374, 32_758, 65_526, 32_768, 32_769, 32_769, 65_536,
            65_588, 65_600,
        ];
        assert_eq!(places, want);
        for (name, place, mark) in MARKS {
            assert_eq!(found(SIZE, *place, mark), Some(*name), "{place}");
            assert_eq!(found(SIZE, place + (7 << 20), mark), None, "{name} {place}");
        }
        let cases: [(&str, u64, &[u8], bool); 13] = [
            ("second LUKS2 header", 16 << 10, b"SKUL\xBA\xBE", true),
            ("LUKS2 of the largest", 4 << 20, b"SKUL\xBA\xBE", true),
            ("LUKS2 too near", 8 << 10, b"SKUL\xBA\xBE", false),
            ("LUKS2 elsewhere", 48 << 10, b"SKUL\xBA\xBE", false),
            ("md 1.0", SIZE - 8192, &MD, true),
            ("md 0.90", (32 << 20) - (64 << 10), &MD, true),
            ("md elsewhere", SIZE - 4096, &MD, false),
            ("first ZFS label", 128 << 10, &ZFS, true),
            ("second ZFS label", (384 << 10) + 1024, &ZFS, true),
            ("third ZFS label", (32 << 20) - (384 << 10), &ZFS, true),
            ("fourth ZFS label", (32 << 20) - (1 << 10), &ZFS, true),
            ("before a ring", 127 << 10, &ZFS, false),
            ("between the labels", 16 << 20, &ZFS, false),
        ];
        for (name, place, mark, want) in cases {
            assert_eq!(found(SIZE, place, mark).is_some(), want, "{name}");
        }
        for size in [0, 512, 4096, 8192] {
            assert_eq!(found(size, 4096, &MD), Some("an md superblock"), "{size}");
        }
    }
}
