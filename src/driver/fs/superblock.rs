//! Reads superblocks of the filesystems that this driver makes: the primary one, and ext's backups.
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
    /// Reads some bytes at `offset`, as pread(2) does: 0 of them means that nothing is there.
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

/// How a filesystem was left. Only ext shows that here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    Unknown,
    /// A crash left a log, which its next mount or check replays.
    LogToReplay,
    /// The kernel has met errors in it that no check has mended.
    Errors,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superblock {
    pub family: Family,
    /// The filesystem's UUID, in lower case with hyphens, as blkid prints it.
    pub uuid: String,
    pub size: u64,
    pub block_size: u64,
    /// The fewest bytes that the filesystem reads or writes at once: the sectors that it was made for.
    pub sector: u64,
    pub condition: Condition,
    /// When it was made or last written, whichever is later, in seconds since the epoch. xfs and
    /// btrfs have no time in their superblocks.
    pub newest_time: Option<u64>,
    /// Whether its mkfs has not ended. mkfs.xfs clears that last of all. mkfs.btrfs writes its magic
    /// number last, and mke2fs its superblock, after all else is on the disk: an ext that has one is
    /// whole, unless the disk has lost what it said to have written.
    pub in_progress: bool,
    /// Whether a part of it is on another device: a disk of a btrfs, or the journal of an ext.
    pub is_part: bool,
    /// The largest size that it can be given, in bytes. `None`: no size of a volume is too large.
    pub largest: Option<u64>,
    /// Its tool grows it by whole steps of so many bytes, or by less than a step more.
    pub step: u64,
    /// The bytes of its log that statfs(2) does not count: only of an xfs.
    pub log: u64,
    /// The type, where it is beyond doubt that this filesystem is alone on the device: see [`named`].
    pub alone: Option<FsType>,
}

impl Superblock {
    /// The size of this filesystem, of which statfs(2) says that it has `shown`. The kernel writes the superblock of an
    /// xfs that it has grown to its log first, so that of the disk may be older.
    pub fn covers(&self, shown: Option<u64>) -> u64 {
        match (self.family, shown) {
            (Family::Xfs, Some(shown)) => self.size.max(shown.saturating_add(self.log)),
            (Family::Xfs | Family::Ext | Family::Btrfs, _) => self.size,
        }
    }

    /// Whether its tool could make it larger on a device of `device` bytes.
    pub fn has_room(&self, shown: Option<u64>, device: u64) -> bool {
        device.saturating_sub(self.covers(shown)) >= self.step
    }
}

const PRIMARY_EXT: u64 = 1024;

/// How many bytes hold all fields below: the last is `s_mkfs_time_hi` of ext.
const LONGEST: usize = 1024;

/// The primary superblock of the filesystem on `device`. None: there is no valid one.
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

/// The ext superblock in `bytes`, which lie at `offset` of the device, if it is a backup. None: it
/// is not one, or by its own geometry it does not belong to this place.
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

/// Fills `into` from `offset`. An error comes with the offset up to which bytes could be read: the kernel hands out
/// what is good before a page that cannot be read.
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
        // A backup is the first block of its group, and names the group.
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
        // Very old tools leave `s_mkfs_time` 0. Growing rewrites the backups, `s_wtime` with them.
        newest_time: Some(newest_time_of_ext(fields)?),
        in_progress: false,
        // `s_journal_inum`: the journal is a file of the filesystem itself.
        is_part: has_journal && fields.le32(0xE0)? == 0,
        largest: largest_ext(fields, block_size, incompat & INCOMPAT_64BIT != 0),
        // A group with no room for its own tables is left out. Source: Linux' fs/ext4/resize.c, `ext4_resize_fs`.
        step: blocks_per_group.saturating_mul(block_size),
        log: 0,
        alone: None,
    })
}

/// Whether a backup is that of this group. The number has 16 bits: e2fsprogs writes the largest for every group that has
/// a larger one. Kernels before 5.18 leave 0 in the backups that they rewrite when they grow the filesystem.
fn names_group(backup: &Fields, group: u64) -> Option<bool> {
    let named = backup.le16(0x5A)?;
    Some(named == 0 || named == u16::try_from(group).unwrap_or(u16::MAX))
}

/// When an ext was made, written or mounted last. A time has 32 bits, and 8 more after 2106.
fn newest_time_of_ext(fields: &Fields) -> Option<u64> {
    let time = |low: usize, high: usize| -> Option<u64> {
        Some(u64::from(fields.le32(low)?) | u64::from(fields.byte(high)?) << 32)
    };
    let made = time(0x108, 0x276)?;
    let written = time(0x30, 0x274)?;
    let mounted = time(0x2C, 0x275)?;
    Some(made.max(written).max(mounted))
}

/// The largest size of an ext: its blocks, without the feature `64bit`, and its inodes have numbers of 32 bits. Source:
/// Linux' fs/ext4/resize.c, `ext4_resize_fs`; e2fsprogs resize/main.c.
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
    // mkfs.btrfs writes the second one while it is at work (BTRFS_MAGIC_TEMPORARY).
    let in_progress = match &fields.array(0x40)? {
        b"_BHRfS_M" => false,
        b"!BHRfS_M" => true,
        _ => return None,
    };
    let block_size = u64::from(fields.le32(0x90)?);
    // `dev_item.total_bytes`: the share of this device. A superblock names its own place.
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

/// How many of `part` make up `all`. None: no whole number of them.
fn whole(all: u64, part: u64) -> Option<u64> {
    all.is_multiple_of(part).then(|| all.checked_div(part))?
}

/// Bytes from the beginning of a superblock.
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

    /// Whether it ever held anything: the number of its next transaction, and where its log begins.
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
