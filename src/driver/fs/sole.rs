//! Names the filesystem on a device without blkid, if there is no doubt. Otherwise blkid is asked, which knows more
//! kinds of content.

use std::io;

use super::signatures;
use super::superblock::{Family, Fields, ReadAt, Superblock, fill};
use crate::host::Pages;
use crate::names::FsType;

/// How many bytes of the device's head are read. The last place of a superblock is at 64 KiB, and the first ZFS label
/// has its ring of uberblocks from 128 KiB to 256 KiB.
const HEAD: usize = 256 << 10;
/// How many bytes of the device's tail are read. md 0.90 and vendors' RAIDs have their superblocks there, at most 257
/// sectors or 128 KiB before the end.
const TAIL: u64 = 256 << 10;
/// How many of the last bytes must be zero. DRBD and most vendors' RAIDs have their superblocks there.
const LAST: u64 = 16 << 10;
const SECTOR: usize = 512;
const PAGE: u64 = 4096;

/// The type of the filesystem whose valid superblock is `found`. `None`: blkid must decide. That is so if the device is
/// small, if the superblock's checksum is wrong or of an unknown kind, or if there are signs of other content: a RAID
/// with this filesystem inside, or content beside the filesystem. The filesystem's own data can look like such a sign.
pub fn sole_type(
    device: &impl ReadAt,
    size: u64,
    found: &Superblock,
) -> io::Result<Option<FsType>> {
    let mut pages = Pages::new(HEAD);
    let head = pages.bytes();
    let tail = size.saturating_sub(TAIL);
    let tail = tail.saturating_sub(tail.checked_rem(PAGE).unwrap_or(0));
    if tail < HEAD as u64 {
        return Ok(None);
    }
    read(device, head, 0)?;
    let Some(fs) = type_by(head, found.family) else {
        return Ok(None);
    };
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    // Boot code and partition tables are before the superblock. LVM's label is in one of the first four sectors.
    let before = match found.family {
        Family::Ext => 1024,
        Family::Xfs => 0,
        Family::Btrfs => 64 << 10,
    };
    let first = head.get(..4 * SECTOR).unwrap_or_default();
    let is_pv = first
        .chunks(SECTOR)
        .any(|sector| sector.starts_with(b"LABELONE"));
    if is_pv || !head.get(..before).is_some_and(is_zero) || has_others(head, 0, size, found.family)
    {
        return Ok(None);
    }
    let length = usize::try_from(size.saturating_sub(tail)).unwrap_or(HEAD);
    let mut pages = Pages::new(length);
    let end = pages.bytes();
    read(device, end, tail)?;
    let last = end
        .len()
        .saturating_sub(usize::try_from(LAST).unwrap_or(usize::MAX));
    let is_end_free = end.get(last..).is_some_and(is_zero);
    Ok((is_end_free && !has_others(end, tail, size, found.family)).then_some(fs))
}

fn read(device: &impl ReadAt, into: &mut [u8], offset: u64) -> io::Result<()> {
    fill(device, into, offset).map_err(|(_, error)| error)
}

/// Whether these bytes, which lie at `offset` of the device, contain the mark of other content than `own`.
fn has_others(bytes: &[u8], offset: u64, size: u64, own: Family) -> bool {
    let at = |index: usize| offset.saturating_add(index.saturating_mul(SECTOR) as u64);
    bytes.chunks(SECTOR).enumerate().any(|(index, sector)| {
        let mark = signatures::in_sector(sector, at(index), size);
        mark.is_some_and(|mark| own != Family::Btrfs || mark != signatures::BTRFS)
    })
}

/// The type of the filesystem whose superblock is in the head. `None`: another family has a superblock there, too, or
/// [`ext`], [`xfs`] or [`btrfs`] names no type.
fn type_by(head: &[u8], family: Family) -> Option<FsType> {
    let at = |offset: usize| head.get(offset..).map_or(Fields(&[]), Fields);
    let is_ext = at(1024).le16(0x38)? == 0xEF53;
    let is_xfs = at(0).array(0)? == *b"XFSB";
    let is_btrfs = at(64 << 10).array(0x40)? == *b"_BHRfS_M";
    match (family, is_ext, is_xfs, is_btrfs) {
        (Family::Ext, true, false, false) => ext(&at(1024)),
        (Family::Xfs, false, true, false) => xfs(&at(0)),
        (Family::Btrfs, false, false, true) => btrfs(&at(64 << 10)),
        _ => None,
    }
}

/// The type of an ext by its features. `None`: its checksum is wrong, or its features fit no type. Without a checksum,
/// the magic number must be enough. Source: libblkid's `superblocks/ext.c`.
fn ext(fields: &Fields) -> Option<FsType> {
    const COMPAT_HAS_JOURNAL: u32 = 0x4;
    const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
    // The features of ext2 and ext3. In the first constant: filetype, recover and meta_bg. In the second: sparse_super,
    // large_file and btree_dir.
    const INCOMPAT_OF_EXT3: u32 = 0x16;
    const RO_COMPAT_OF_EXT3: u32 = 0x7;
    const TEST_FILESYSTEM: u32 = 0x4;
    const INCOMPAT_RECOVER: u32 = 0x4;
    const CHECKSUM: usize = 0x3FC;
    let [compat, incompat, ro_compat] = [0x5C, 0x60, 0x64].map(|at| fields.le32(at));
    let (compat, incompat, ro_compat) = (compat?, incompat?, ro_compat?);
    if ro_compat & RO_COMPAT_METADATA_CSUM != 0
        && fields.le32(CHECKSUM)? != crc32c(u32::MAX, fields.0.get(..CHECKSUM)?)
    {
        return None;
    }
    let is_newer = incompat & !INCOMPAT_OF_EXT3 != 0 || ro_compat & !RO_COMPAT_OF_EXT3 != 0;
    match (is_newer, compat & COMPAT_HAS_JOURNAL != 0) {
        _ if fields.le32(0x160)? & TEST_FILESYSTEM != 0 => None,
        (true, _) => Some(FsType::Ext4),
        (false, true) => Some(FsType::Ext3),
        (false, false) if incompat & INCOMPAT_RECOVER != 0 => None,
        (false, false) => Some(FsType::Ext2),
    }
}

/// Names an xfs whose checksum is right. `None`: the checksum is wrong, or there is none. Only version 5 of xfs has a
/// checksum. Source: the kernel's `fs/xfs/libxfs/xfs_format.h`, `XFS_SB_CRC_OFF`.
fn xfs(fields: &Fields) -> Option<FsType> {
    const CHECKSUM: usize = 224;
    let version = u16::from_be_bytes(fields.array(100)?) & 0xF;
    let sector = usize::from(u16::from_be_bytes(fields.array(102)?));
    let whole = fields.0.get(..sector)?;
    let (before, rest) = whole.split_at_checked(CHECKSUM)?;
    let sum = crc32c(crc32c(u32::MAX, before), &[0; 4]);
    let sum = !crc32c(sum, rest.get(4..)?);
    (version == 5 && fields.le32(CHECKSUM)? == sum).then_some(FsType::Xfs)
}

/// Names a btrfs whose checksum is right. `None`: the checksum is wrong, or is not CRC-32C. Source: the kernel's
/// `include/uapi/linux/btrfs_tree.h`, `struct btrfs_super_block`.
fn btrfs(fields: &Fields) -> Option<FsType> {
    const CRC32C: u16 = 0;
    let sum = !crc32c(u32::MAX, fields.0.get(0x20..0x1000)?);
    (fields.le16(0xC4)? == CRC32C && fields.le32(0)? == sum).then_some(FsType::Btrfs)
}

/// CRC-32C (RFC 3720, appendix B.4), without the inversions at its beginning and end.
fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            let carry = if sum & 1 == 1 { 0x82F6_3B78 } else { 0 };
            sum >> 1 ^ carry
        })
    })
}
