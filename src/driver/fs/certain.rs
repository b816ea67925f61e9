//! Judges a superblock by its checksum: which filesystem it certainly is, without blkid, and whether it is damaged.

use super::ext::{COMPAT_HAS_JOURNAL, INCOMPAT_RECOVER};
use super::superblock::{Family, Fields};
use crate::names::FsType;

/// The type of the filesystem whose valid superblock is in `fields`. `None`: the checksum is wrong, or the superblock
/// has features by which blkid gives it another name.
pub(super) fn type_by(fields: &Fields, family: Family) -> Option<FsType> {
    match family {
        Family::Ext => ext(fields),
        Family::Xfs => xfs(fields),
        Family::Btrfs => btrfs(fields),
    }
}

/// The type of an ext by its features. `None`: its checksum is wrong, or its features fit no type. Without a checksum,
/// the fields of the superblock must be enough. Source: libblkid's `superblocks/ext.c`.
fn ext(fields: &Fields) -> Option<FsType> {
    const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
    // The features of ext2 and ext3. In the first constant: filetype, recover and meta_bg. In the second: sparse_super,
    // large_file and btree_dir.
    const INCOMPAT_OF_EXT3: u32 = 0x16;
    const RO_COMPAT_OF_EXT3: u32 = 0x7;
    const TEST_FILESYSTEM: u32 = 0x4;
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

/// Names an xfs whose checksum is right. Version 4 of xfs has no checksum, and its fields must be enough. Source: the
/// kernel's `fs/xfs/libxfs/xfs_format.h`, `XFS_SB_CRC_OFF`.
fn xfs(fields: &Fields) -> Option<FsType> {
    let is_right = xfs_version(fields)? == 4 || xfs_checksum(fields)?;
    is_right.then_some(FsType::Xfs)
}

fn xfs_version(fields: &Fields) -> Option<u16> {
    Some(u16::from_be_bytes(fields.array(100)?) & 0xF)
}

/// Whether the checksum of an xfs is right. `None`: the superblock has none, or its sector was not read as a whole.
fn xfs_checksum(fields: &Fields) -> Option<bool> {
    const CHECKSUM: usize = 224;
    if xfs_version(fields)? != 5 {
        return None;
    }
    let sector = usize::from(u16::from_be_bytes(fields.array(102)?));
    let whole = fields.0.get(..sector)?;
    let (before, rest) = whole.split_at_checked(CHECKSUM)?;
    let sum = crc32c(crc32c(u32::MAX, before), &[0; 4]);
    Some(fields.le32(CHECKSUM)? == !crc32c(sum, rest.get(4..)?))
}

/// Names a btrfs whose checksum is not wrong.
fn btrfs(fields: &Fields) -> Option<FsType> {
    (btrfs_checksum(fields) != Some(false)).then_some(FsType::Btrfs)
}

/// Whether the checksum of a btrfs is right. `None`: it is not a CRC-32C, so the kernel checks it, not the driver.
/// Source: the kernel's `include/uapi/linux/btrfs_tree.h`, `struct btrfs_super_block`.
fn btrfs_checksum(fields: &Fields) -> Option<bool> {
    const CRC32C: u16 = 0;
    let sum = !crc32c(u32::MAX, fields.0.get(0x20..0x1000)?);
    (fields.le16(0xC4)? == CRC32C).then_some(fields.le32(0)? == sum)
}

/// Whether the superblock is certainly wrong by its checksum, so that the kernel mounts no such filesystem. False for
/// an ext: before the mount, e2fsck says what is wrong.
pub(super) fn has_wrong_checksum(fields: &Fields, family: Family) -> bool {
    let is_right = match family {
        Family::Ext => None,
        Family::Xfs => xfs_checksum(fields),
        Family::Btrfs => btrfs_checksum(fields),
    };
    is_right == Some(false)
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
