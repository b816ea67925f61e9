//! Reads the primary superblock of a filesystem.
//!
//! Layouts: the kernel's `fs/xfs/libxfs/xfs_format.h` (big-endian) and `include/uapi/linux/btrfs_tree.h`.

use std::io;

use super::certain::{has_wrong_checksum, type_by};
use super::ext::{PRIMARY_EXT, ext};
use super::superblock::{Condition, Family, Fields, ReadAt, Superblock, bytes};

/// The primary superblock of the filesystem on `device`. `None`: there is no valid one.
pub fn read_primary(device: &impl ReadAt) -> io::Result<Option<Superblock>> {
    for (offset, length, reader) in READERS {
        let Some(read) = bytes(device, offset, length)? else {
            continue;
        };
        let fields = Fields(&read);
        if let Some(found) = reader(&fields, offset) {
            return Ok(Some(Superblock {
                certain_type: type_by(&fields, found.family),
                is_damaged: has_wrong_checksum(&fields, found.family),
                ..found
            }));
        }
    }
    Ok(None)
}

type Reader = fn(&Fields, u64) -> Option<Superblock>;

/// The offset of each superblock, how many bytes of it are read, and its reader. The checksum of an xfs covers its
/// first sector, which may have 4 KiB; that of a btrfs covers 4 KiB.
const READERS: [(u64, usize, Reader); 3] = [
    (PRIMARY_EXT, 1024, ext),
    (0, 4096, xfs),
    (64 << 10, 4096, btrfs),
];

pub(super) fn xfs(fields: &Fields, _: u64) -> Option<Superblock> {
    if fields.array(0)? != *b"XFSB" {
        return None;
    }
    let block_size = u64::from(fields.be32(4)?);
    let blocks = fields.be64(8)?;
    let group_blocks = u64::from(fields.be32(84)?);
    let groups = u64::from(fields.be32(88)?);
    let whole_groups = group_blocks.checked_mul(groups.checked_sub(1)?)?;
    let is_sane = block_size.is_power_of_two()
        && (512..=65_536).contains(&block_size)
        && blocks > whole_groups
        && blocks.checked_sub(whole_groups)? <= group_blocks;
    if !is_sane {
        return None;
    }
    // `sb_logblocks`, and whether the log is on the device of the superblock (`sb_logstart`). Sources: the kernel's
    // `fs/xfs/libxfs/xfs_format.h`, `xfs_dsb`; `fs/xfs/xfs_super.c`, `xfs_open_devices` and `xfs_fs_statfs`.
    let log = u64::from(fields.be32(96)?).checked_mul(block_size)?;
    let has_log_inside = fields.be64(48)? != 0;
    Some(Superblock {
        family: Family::Xfs,
        uuid: fields.uuid(32)?,
        size: blocks.checked_mul(block_size)?,
        block_size,
        condition: Condition::Unknown,
        newest_time: None,
        in_progress: fields.byte(126)? != 0,
        is_part: log != 0 && !has_log_inside || has_realtime_outside(fields)?,
        largest: None,
        only_unmounted: false,
        // Sources: Linux' fs/xfs/xfs_fsops.c, `xfs_growfs_data_private`, and fs/xfs/libxfs/xfs_fs.h,
        // `XFS_MIN_AG_BLOCKS`.
        step: block_size.saturating_mul(64),
        log: if has_log_inside { log } else { 0 },
        certain_type: None,
        is_damaged: false,
    })
}

/// Whether the realtime section of an xfs is on another device. Since Linux 6.15, it can be on the same device
/// (`sb_rtstart`).
fn has_realtime_outside(fields: &Fields) -> Option<bool> {
    Some(fields.be64(16)? != 0 && fields.be64(288)? == 0)
}

pub(super) fn btrfs(fields: &Fields, offset: u64) -> Option<Superblock> {
    // While mkfs.btrfs works, the superblock has another magic number (BTRFS_MAGIC_TEMPORARY).
    if fields.array(0x40)? != *b"_BHRfS_M" {
        return None;
    }
    let block_size = u64::from(fields.le32(0x90)?);
    // `dev_item.total_bytes`: the size of the part on this device. The condition below also compares the offset that
    // the superblock names as its own (`bytenr`).
    let size = fields.le64(0xD1)?;
    if fields.le64(0x30)? != offset || !block_size.is_power_of_two() || size == 0 {
        return None;
    }
    Some(Superblock {
        family: Family::Btrfs,
        uuid: fields.uuid(0x20)?,
        size,
        block_size,
        condition: Condition::Unknown,
        newest_time: None,
        in_progress: false,
        // `num_devices`
        is_part: fields.le64(0x88)? > 1,
        largest: None,
        only_unmounted: false,
        // Source: Linux' fs/btrfs/ioctl.c, `btrfs_ioctl_resize`.
        step: block_size,
        log: 0,
        certain_type: None,
        is_damaged: false,
    })
}
