//! Marks of content, by which a sector that is not zero gets a name in messages.
//!
//! A volume is blank only if all is zero that is read of it. So this table does not decide whether a plain volume is
//! blank. It decides inside an encrypted volume, which holds noise, and where a tag says that a killed mkfs may have
//! left data: a mark is neither.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ext::{PRIMARY_EXT, ext};
use super::superblock::Fields;
use crate::names::Shown;

/// A mark that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub what: String,
    /// The sector of the mark, in bytes from the beginning of the device.
    pub offset: u64,
    /// The command that shows more of the content. The device follows it. Empty: there is none.
    pub look: String,
}

impl Mark {
    /// The mark in the sector at the beginning of `bytes`, which lie at `offset` of the device.
    pub(super) fn of(bytes: &[u8], offset: u64) -> Option<Self> {
        let (what, look) = by_bytes(bytes).or_else(|| by_fields(&Fields(bytes), offset))?;
        Some(Self {
            what: what.to_owned(),
            offset,
            look: look.to_owned(),
        })
    }

    /// Whether the content is an ext, an xfs or a btrfs.
    pub(super) fn is_of_own_filesystem(&self) -> bool {
        let mut words = self.what.split(' ');
        words.any(|word| ["ext", "xfs", "btrfs"].contains(&word))
    }

    /// Whether this is the first superblock of an ext. If its checksum were right, blkid would name the ext.
    pub fn is_first_of_ext(&self) -> bool {
        self.what == EXT && self.offset == PRIMARY_EXT
    }

    /// The command that shows more of the content on `device`.
    pub fn shown_by(&self, device: &Path) -> Option<String> {
        let Self { look, .. } = self;
        (!look.is_empty()).then(|| format!("`{look} {}`", device.shown()))
    }
}

/// A name, the place of the mark in its sector, the mark, and the command that looks further. The sector may be
/// anywhere in what is read: a partition of a disk image has its superblock somewhere behind the partition table, and
/// many formats keep copies of their heads. Sources: libblkid's `superblocks/*.c` and `partitions/*.c`; LVM's
/// `lib/format_text/layout.h`; Ceph's `src/os/bluestore/BlueStore.cc`.
type Row = (&'static str, usize, &'static [u8], &'static str);

#[rustfmt::skip] // a row is a line
const MARKS: &[Row] = &[
    ("an xfs superblock", 0, b"XFSB", XFS),
    ("a header of an xfs group", 0, b"XAGF\0\0\0\x01", XFS),
    ("a header of an xfs group", 0, b"XAGI\0\0\0\x01", XFS),
    ("a btrfs superblock", 0x40, b"_BHRfS_M", BTRFS),
    ("a LUKS header", 0, b"LUKS\xBA\xBE", LUKS),
    ("a second LUKS2 header", 0, b"SKUL\xBA\xBE", LUKS),
    ("an LVM label", 0, b"LABELONE", LVM),
    ("metadata of LVM", 4, b" LVM2 x[5A%r0N*>", LVM),
    ("a GPT partition table", 0, b"EFI PART", "sfdisk --list"),
    ("an md superblock", 0, &0xA92B_4EFC_u32.to_le_bytes(), "mdadm --examine"),
    ("a ZFS label", 0, &0x00BA_B10C_u64.to_le_bytes(), ZFS),
    ("a ZFS label", 0, &0x00BA_B10C_u64.to_be_bytes(), ZFS),
    ("a bluestore label", 0, b"bluestore block device\n", "ceph-bluestore-tool show-label --dev"),
    // The mark is the first half of a fixed UUID. blkid of util-linux 2.41 also needs a right checksum.
    ("a bcache superblock", 24, &[0xC6, 0x85, 0x73, 0xF6, 0x4E, 0x1A, 0x45, 0xCA], "bcache-super-show"),
    ("a bcachefs superblock", 24, &[0xC6, 0x85, 0x73, 0xF6, 0x66, 0xCE, 0x90, 0xA9], "bcachefs show-super"),
    ("an NTFS boot sector", 3, b"NTFS    ", "ntfsinfo --mft"),
    ("a BitLocker header", 3, b"-FVE-FS-", ""),
    ("an exFAT boot sector", 3, b"EXFAT   ", "dump.exfat"),
    ("an f2fs superblock", 0, &0xF2F5_2010_u32.to_le_bytes(), "dump.f2fs -i 3"),
    ("DRBD's metadata", 60, &0x8374_026D_u32.to_be_bytes(), ""),
    ("DRBD's metadata", 60, &0x8374_026B_u32.to_be_bytes(), ""),
    ("a stratis header", 4, b"!Stra0tis\x86\xff\x02^\x41rh", ""),
    ("a VDO volume", 0, b"dmvdo001", ""),
    ("an APFS container", 32, b"NXSB", ""),
    ("an Oracle ASM disk", 32, b"ORCLDISK", ""),
    // At the end of the first page. Pages have other sizes on other machines; arm64 has three sizes.
    ("a swap header", 502, b"SWAPSPACE2", ""),
    ("a swap header", 502, b"SWAP-SPACE", ""),
    ("a jfs superblock", 0, b"JFS1", ""),
    ("an ISO 9660 descriptor", 1, b"CD001", ""),
    ("a UDF descriptor", 1, b"BEA01", ""),
    ("a gfs2 superblock", 0, &[0x01, 0x16, 0x19, 0x70], ""),
    ("an ocfs2 superblock", 0, b"OCFSV2", ""),
    ("a squashfs superblock", 0, b"hsqs", ""),
    ("a reiserfs superblock", 0x34, b"ReIsEr", ""),
];

const EXT: &str = "an ext superblock";
const XFS: &str = "xfs_repair -n";
const BTRFS: &str = "btrfs inspect-internal dump-super --all";
const LUKS: &str = "cryptsetup luksDump";
const LVM: &str = "pvck --dump metadata_search";
const ZFS: &str = "zdb -l";

fn by_bytes(sector: &[u8]) -> Option<(&'static str, &'static str)> {
    let (what, _, _, look) = MARKS.iter().find(|(_, at, mark, _)| {
        let rest = sector.get(*at..);
        rest.is_some_and(|rest| rest.starts_with(mark))
    })?;
    Some((what, look))
}

/// Content without a mark that is long enough: its fields must fit together.
fn by_fields(fields: &Fields, offset: u64) -> Option<(&'static str, &'static str)> {
    if is_ext_superblock(fields, offset).unwrap_or(false) {
        Some((EXT, ""))
    } else if fields.is_ext_journal() && fields.is_used_journal().unwrap_or(false) {
        Some(("an ext journal", ""))
    } else if is_xfs_tree(fields).unwrap_or(false) {
        Some(("a block of xfs", XFS))
    } else {
        None
    }
}

/// Whether a primary superblock of an ext is here. It may be that of a partition, at any sector.
fn is_ext_superblock(fields: &Fields, offset: u64) -> Option<bool> {
    const GROUP: usize = 0x5A;
    let is_possible = ext(fields, PRIMARY_EXT).is_some() && offset >= PRIMARY_EXT;
    Some(is_possible && fields.le16(GROUP)? == 0)
}

/// Whether this is the root of one of xfs's trees. A root has no neighbours. Source: the kernel's
/// `fs/xfs/libxfs/xfs_format.h`, `xfs_btree_block`.
fn is_xfs_tree(fields: &Fields) -> Option<bool> {
    const TREES: [&[u8; 4]; 7] = [
        b"AB3B", b"AB3C", b"IAB3", b"FIB3", b"ABTB", b"ABTC", b"IABT",
    ];
    let magic: [u8; 4] = fields.array(0)?;
    Some(TREES.contains(&&magic) && fields.array(8)? == [0xFF; 8])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use super::*;

    impl From<&str> for Mark {
        fn from(what: &str) -> Self {
            Self {
                what: what.to_owned(),
                offset: 4096,
                look: String::new(),
            }
        }
    }

    #[test]
    fn each_mark_is_found_in_any_sector_at_its_own_place() {
        for (what, at, mark, look) in MARKS {
            let mut sector = [0; 512];
            sector[*at..*at + mark.len()].copy_from_slice(mark);
            for offset in [0, 512, 1 << 40] {
                let found = Mark::of(&sector, offset).unwrap();
                assert_eq!((&*found.what, &*found.look), (*what, *look));
            }
            sector.rotate_right(1);
            assert_eq!(Mark::of(&sector, 512), None, "{what}");
        }
    }

    #[test]
    fn noise_has_hardly_ever_a_mark() {
        // A volume full of noise is read in 35,000 sectors. Two bytes of a mark would be found in each.
        for (what, _, mark, _) in MARKS {
            assert!(mark.len() >= 4, "{what}");
        }
    }
}
