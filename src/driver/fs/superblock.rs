//! Reads superblocks of the filesystems that this driver makes: the primary one and ext's backups.
//!
//! Layouts: the kernel's `Documentation/filesystems/ext4/super.rst`, `fs/xfs/libxfs/xfs_format.h`
//! (big-endian) and `include/uapi/linux/btrfs_tree.h`.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::host::Uncached;
use crate::names::{FsType, with_hyphens};

pub trait ReadAt {
    /// Reads bytes at `offset` and returns their number, like pread(2). 0: the end of the device.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
}

impl ReadAt for Uncached {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        Self::read_at(self, into, offset)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    Ext,
    Xfs,
    Btrfs,
}

impl Family {
    pub fn of(fs: FsType) -> Self {
        match fs {
            FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => Self::Ext,
            FsType::Xfs => Self::Xfs,
            FsType::Btrfs => Self::Btrfs,
        }
    }
}

/// In which condition a filesystem was left. Only ext's superblock shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    Unknown,
    /// A crash left a log that the next mount or check must replay.
    LogToReplay,
    /// The kernel has found errors that no check has repaired.
    Errors,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superblock {
    pub family: Family,
    /// The filesystem's UUID, in lower case with hyphens, as blkid prints it.
    pub uuid: String,
    pub size: u64,
    pub block_size: u64,
    /// The smallest unit, in bytes, in which the filesystem reads and writes: the sector that it was made for.
    pub sector: u64,
    pub condition: Condition,
    /// The later of two times: when it was made, and when it was last written. In seconds since the epoch. Superblocks
    /// of xfs and btrfs have no time.
    pub newest_time: Option<u64>,
    /// Whether its mkfs has not ended. mkfs.xfs clears this flag last of all, and mkfs.btrfs writes its magic number
    /// last. mke2fs writes the superblock last, after everything else is on the disk. So an ext with a superblock is
    /// whole, unless the disk lost data that it had confirmed.
    pub in_progress: bool,
    /// Whether a part of the filesystem is on another device: another disk of a btrfs, or the journal of an ext.
    pub is_part: bool,
    /// The largest size to which it can grow, in bytes. `None`: it can fill each volume.
    pub largest: Option<u64>,
    /// The unit of growth, in bytes: if there is less room than this, its tool may not grow it.
    pub step: u64,
    /// The size of an xfs's log in bytes, which statfs(2) does not count.
    pub log: u64,
    /// The filesystem's type, if it is certain that nothing else is on the device: see `alone::named`.
    pub alone: Option<FsType>,
}

impl Superblock {
    /// The size of this filesystem. `shown`: its size by statfs(2). After growing an xfs, the kernel writes the
    /// superblock to the log first, so the superblock on the disk may be older.
    pub fn covers(&self, shown: Option<u64>) -> u64 {
        match (self.family, shown) {
            (Family::Xfs, Some(shown)) => self.size.max(shown.saturating_add(self.log)),
            (Family::Xfs | Family::Ext | Family::Btrfs, _) => self.size,
        }
    }

    /// Whether its tool could still grow it on a device of `device` bytes.
    pub fn has_room(&self, shown: Option<u64>, device: u64) -> bool {
        device.saturating_sub(self.covers(shown)) >= self.step
    }
}

const PRIMARY_EXT: u64 = 1024;

/// How many bytes contain all fields below, the last of which is ext's `s_mkfs_time_hi`.
const LONGEST: usize = 1024;

/// The primary superblock of the filesystem on `device`. `None`: there is no valid one.
pub fn read_primary(device: &impl ReadAt) -> io::Result<Option<Superblock>> {
    let readers: [(u64, Reader); 3] = [(PRIMARY_EXT, ext), (0, xfs), (64 << 10, btrfs)];
    for (offset, reader) in readers {
        let read = bytes(device, offset, LONGEST)?;
        let found = read.and_then(|bytes| reader(&Fields(&bytes), offset));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The backup superblock of an ext in `bytes`, which lie at `offset` of the device. `None`: it is no backup, or its own
/// fields say that it belongs to another place.
pub fn ext_backup(bytes: &[u8], offset: u64) -> Option<Superblock> {
    ext(&Fields(bytes), offset).filter(|_| offset != PRIMARY_EXT)
}

type Reader = fn(&Fields, u64) -> Option<Superblock>;

/// Reads `length` bytes from `offset`. `None`: the device ends before.
pub fn bytes(device: &impl ReadAt, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; length];
    match fill(device, &mut bytes, offset) {
        Ok(()) => Ok(Some(bytes)),
        Err((_, e)) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err((_, e)) => Err(e),
    }
}

/// Fills `into` from `offset`. An error has the offset up to which bytes could be read: the kernel returns the good
/// bytes before a page that cannot be read.
pub(super) fn fill(
    device: &impl ReadAt,
    mut into: &mut [u8],
    mut offset: u64,
) -> Result<(), (u64, io::Error)> {
    while !into.is_empty() {
        match device.read_at(into, offset) {
            Ok(0) => return Err((offset, ErrorKind::UnexpectedEof.into())),
            Ok(length) => {
                into = into.get_mut(length..).unwrap_or_default();
                offset = offset.saturating_add(length as u64);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err((offset, e)),
        }
    }
    Ok(())
}

fn ext(fields: &Fields, offset: u64) -> Option<Superblock> {
    const COMPAT_HAS_JOURNAL: u32 = 0x4;
    const INCOMPAT_RECOVER: u32 = 0x4;
    const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
    const INCOMPAT_64BIT: u32 = 0x80;
    const STATE_ERRORS: u16 = 0x2;

    if fields.le16(0x38)? != 0xEF53 {
        return None;
    }
    let log_block_size = fields.le32(0x18)?;
    let incompat = fields.le32(0x60)?;
    if log_block_size > 6 || incompat & INCOMPAT_JOURNAL_DEV != 0 {
        return None;
    }
    let block_size = 1024_u64 << log_block_size;
    let mut blocks = u64::from(fields.le32(0x4)?);
    if incompat & INCOMPAT_64BIT != 0 {
        blocks |= u64::from(fields.le32(0x150)?) << 32;
    }
    let first_block = u64::from(fields.le32(0x14)?);
    let blocks_per_group = u64::from(fields.le32(0x20)?);
    if first_block > 1 || blocks <= first_block || blocks_per_group == 0 {
        return None;
    }
    if offset != PRIMARY_EXT {
        // A backup is the first block of its group, and has the group's number.
        let block = whole(offset, block_size)?;
        let group = whole(block.checked_sub(first_block)?, blocks_per_group)?;
        if group == 0 || block >= blocks || !names_group(fields, group)? {
            return None;
        }
    }
    let condition = if fields.le16(0x3A)? & STATE_ERRORS != 0 {
        Condition::Errors
    } else if incompat & INCOMPAT_RECOVER != 0 {
        Condition::LogToReplay
    } else {
        Condition::Unknown
    };
    let has_journal = fields.le32(0x5C)? & COMPAT_HAS_JOURNAL != 0;
    Some(Superblock {
        family: Family::Ext,
        uuid: fields.uuid(0x68)?,
        size: blocks.checked_mul(block_size)?,
        block_size,
        sector: block_size,
        condition,
        // Very old tools leave `s_mkfs_time` 0. Growing rewrites the backups, with a new `s_wtime`.
        newest_time: Some(newest_time_of_ext(fields)?),
        in_progress: false,
        // `s_journal_inum`: the journal is a file of the filesystem itself.
        is_part: has_journal && fields.le32(0xE0)? == 0,
        largest: largest_ext(fields, block_size, incompat & INCOMPAT_64BIT != 0),
        // The kernel leaves out a last group that has no room for its own tables. Source: Linux' fs/ext4/resize.c,
        // `ext4_resize_fs`.
        step: blocks_per_group.saturating_mul(block_size),
        log: 0,
        alone: None,
    })
}

/// Whether a backup belongs to this group. Its field has 16 bits: if a group's number is larger, e2fsprogs writes the
/// largest of 16 bits. Kernels before 5.18 write 0 into backups when they grow the filesystem.
fn names_group(backup: &Fields, group: u64) -> Option<bool> {
    let named = backup.le16(0x5A)?;
    Some(named == 0 || named == u16::try_from(group).unwrap_or(u16::MAX))
}

/// When an ext was last made, written or mounted. A time has 32 bits, and 8 more in another field for years after 2106.
fn newest_time_of_ext(fields: &Fields) -> Option<u64> {
    let time = |low: usize, high: usize| -> Option<u64> {
        Some(u64::from(fields.le32(low)?) | u64::from(fields.byte(high)?) << 32)
    };
    let made = time(0x108, 0x276)?;
    let written = time(0x30, 0x274)?;
    let mounted = time(0x2C, 0x275)?;
    Some(made.max(written).max(mounted))
}

/// The largest size of an ext. Its inodes have numbers of 32 bits, and so have its blocks without the feature `64bit`.
/// Source: Linux' fs/ext4/resize.c, `ext4_resize_fs`; e2fsprogs resize/main.c.
fn largest_ext(fields: &Fields, block_size: u64, is_64bit: bool) -> Option<u64> {
    let group = u64::from(fields.le32(0x20)?).checked_mul(block_size)?;
    let groups = u64::from(u32::MAX).checked_div(u64::from(fields.le32(0x28)?))?;
    let by_inodes = groups.saturating_mul(group);
    let by_blocks = block_size.saturating_mul(1 << 32);
    Some(if is_64bit {
        by_inodes
    } else {
        by_inodes.min(by_blocks)
    })
}

pub(super) fn xfs(fields: &Fields, _: u64) -> Option<Superblock> {
    if fields.array(0)? != *b"XFSB" {
        return None;
    }
    let block_size = u64::from(u32::from_be_bytes(fields.array(4)?));
    let blocks = u64::from_be_bytes(fields.array(8)?);
    let group_blocks = u64::from(u32::from_be_bytes(fields.array(84)?));
    let groups = u64::from(u32::from_be_bytes(fields.array(88)?));
    let whole_groups = group_blocks.checked_mul(groups.checked_sub(1)?)?;
    let is_sane = block_size.is_power_of_two()
        && (512..=65_536).contains(&block_size)
        && blocks > whole_groups
        && blocks.checked_sub(whole_groups)? <= group_blocks;
    if !is_sane {
        return None;
    }
    Some(Superblock {
        family: Family::Xfs,
        uuid: fields.uuid(32)?,
        size: blocks.checked_mul(block_size)?,
        block_size,
        sector: u64::from(u16::from_be_bytes(fields.array(102)?)),
        condition: Condition::Unknown,
        newest_time: None,
        in_progress: fields.byte(126)? != 0,
        is_part: false,
        largest: None,
        // Source: Linux' fs/xfs/xfs_fsops.c, `xfs_growfs_data_private`, and fs/xfs/libxfs/xfs_fs.h, `XFS_MIN_AG_BLOCKS`.
        step: block_size.saturating_mul(64),
        log: log_of_xfs(fields, block_size)?,
        alone: None,
    })
}

/// `sb_logblocks`, if the log is in the filesystem itself (`sb_logstart`). Source: Linux'
/// `fs/xfs/xfs_super.c`, `xfs_fs_statfs`.
fn log_of_xfs(fields: &Fields, block_size: u64) -> Option<u64> {
    let blocks = u64::from(fields.be32(96)?);
    let is_inside = u64::from_be_bytes(fields.array(48)?) != 0;
    Some(if is_inside {
        blocks.saturating_mul(block_size)
    } else {
        0
    })
}

pub(super) fn btrfs(fields: &Fields, offset: u64) -> Option<Superblock> {
    // While mkfs.btrfs is at work, the second of these magic numbers is there (BTRFS_MAGIC_TEMPORARY).
    let in_progress = match &fields.array(0x40)? {
        b"_BHRfS_M" => false,
        b"!BHRfS_M" => true,
        _ => return None,
    };
    let block_size = u64::from(fields.le32(0x90)?);
    // `dev_item.total_bytes`: the size of the part on this device. Below, the superblock's own offset is compared.
    let size = fields.le64(0xD1)?;
    if fields.le64(0x30)? != offset || !block_size.is_power_of_two() || size == 0 {
        return None;
    }
    Some(Superblock {
        family: Family::Btrfs,
        uuid: fields.uuid(0x20)?,
        size,
        block_size,
        sector: block_size,
        condition: Condition::Unknown,
        newest_time: None,
        in_progress,
        // `num_devices`
        is_part: fields.le64(0x88)? > 1,
        largest: None,
        // Source: Linux' fs/btrfs/ioctl.c, `btrfs_ioctl_resize`.
        step: block_size,
        log: 0,
        alone: None,
    })
}

/// `all` divided by `part`. `None`: the division leaves a remainder.
fn whole(all: u64, part: u64) -> Option<u64> {
    all.is_multiple_of(part).then(|| all.checked_div(part))?
}

/// The bytes of a superblock, from its beginning.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub(super) fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(super) fn le16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn le32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(super) fn be32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    /// Whether a journal of ext begins here. Source: the kernel's Documentation/filesystems/ext4/journal.rst.
    pub(super) fn is_ext_journal(&self) -> bool {
        self.be32(0) == Some(0xC03B_3998) && matches!(self.be32(4), Some(3 | 4))
    }

    /// Whether this journal was ever used, by the number of its next transaction and the beginning of its log.
    pub(super) fn is_used_journal(&self) -> Option<bool> {
        Some(self.be32(0x18)? != 1 || self.be32(0x1C)? != 0)
    }

    fn le64(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    fn uuid(&self, at: usize) -> Option<String> {
        let number = u128::from_be_bytes(self.array(at)?);
        with_hyphens(&format!("{number:032x}"))
    }
}
