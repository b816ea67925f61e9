//! Reads the superblock of an ext.
//!
//! Layout: the kernel's `Documentation/filesystems/ext4/super.rst`.

use super::superblock::{Condition, Family, Fields, Superblock};

pub(super) const PRIMARY_EXT: u64 = 1024;
pub(super) const COMPAT_HAS_JOURNAL: u32 = 0x4;
pub(super) const INCOMPAT_RECOVER: u32 = 0x4;

/// The backup superblock of an ext in `bytes`, which lie at `offset` of the device. `None`: these bytes are no backup,
/// or their own fields say that they belong to another place.
pub fn ext_backup(bytes: &[u8], offset: u64) -> Option<Superblock> {
    ext(&Fields(bytes), offset).filter(|_| offset != PRIMARY_EXT)
}

/// The superblock of an ext at `offset` of the device: the primary one, or a backup.
pub(super) fn ext(fields: &Fields, offset: u64) -> Option<Superblock> {
    const COMPAT_SPARSE_SUPER2: u32 = 0x200;

    let blocks = ExtBlocks::of(fields)?;
    if offset != PRIMARY_EXT && !blocks.is_backup_at(offset, fields)? {
        return None;
    }
    let compat = fields.le32(0x5C)?;
    let has_journal = compat & COMPAT_HAS_JOURNAL != 0;
    Some(Superblock {
        family: Family::Ext,
        uuid: fields.uuid(0x68)?,
        size: blocks.count.checked_mul(blocks.size)?,
        block_size: blocks.size,
        condition: condition(fields)?,
        // One time is not enough: very old tools leave `s_mkfs_time` 0, and growing rewrites the backups with a new
        // `s_wtime`.
        newest_time: Some(newest_time(fields)?),
        in_progress: false,
        // If `s_journal_inum` is 0, the journal is no file of the filesystem itself.
        is_part: has_journal && fields.le32(0xE0)? == 0,
        largest: blocks.largest(fields),
        // Source: Linux' fs/ext4/resize.c, `ext4_resize_begin`.
        only_unmounted: compat & COMPAT_SPARSE_SUPER2 != 0,
        // The kernel leaves out a last group that has no room for its own tables. Source: Linux' fs/ext4/resize.c,
        // `ext4_resize_fs`.
        step: blocks.of_group.saturating_mul(blocks.size),
        log: 0,
        certain_type: None,
        is_damaged: false,
    })
}

/// The features of an ext that a system must know to mount it. Source: Linux' fs/ext4/ext4.h, `EXT4_FEATURE_INCOMPAT_`.
fn incompat(fields: &Fields) -> Option<u32> {
    fields.le32(0x60)
}

fn condition(fields: &Fields) -> Option<Condition> {
    const STATE_ERRORS: u16 = 0x2;

    let has_errors = fields.le16(0x3A)? & STATE_ERRORS != 0;
    let has_log = incompat(fields)? & INCOMPAT_RECOVER != 0;
    Some(match (has_errors, has_log) {
        (true, _) => Condition::Errors,
        (false, true) => Condition::LogToReplay,
        (false, false) => Condition::Unknown,
    })
}

/// How an ext divides its device.
struct ExtBlocks {
    /// In bytes.
    size: u64,
    count: u64,
    /// The number of the block in which the first group begins.
    first: u64,
    of_group: u64,
    has_64bit: bool,
}

impl ExtBlocks {
    /// Reads these values from a superblock. `None`: it is not the superblock of an ext.
    fn of(fields: &Fields) -> Option<Self> {
        const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
        const INCOMPAT_64BIT: u32 = 0x80;

        if fields.le16(0x38)? != 0xEF53 {
            return None;
        }
        let log_block_size = fields.le32(0x18)?;
        let incompat = incompat(fields)?;
        if log_block_size > 6 || incompat & INCOMPAT_JOURNAL_DEV != 0 {
            return None;
        }
        let has_64bit = incompat & INCOMPAT_64BIT != 0;
        let mut count = u64::from(fields.le32(0x4)?);
        if has_64bit {
            count |= u64::from(fields.le32(0x150)?) << 32;
        }
        let first = u64::from(fields.le32(0x14)?);
        let of_group = u64::from(fields.le32(0x20)?);
        let is_possible = first <= 1 && count > first && of_group != 0;
        is_possible.then_some(Self {
            size: 1024 << log_block_size,
            count,
            first,
            of_group,
            has_64bit,
        })
    }

    /// Whether a backup of the superblock may be at `offset`: a backup is the first block of its group, and has the
    /// group's number.
    fn is_backup_at(&self, offset: u64, backup: &Fields) -> Option<bool> {
        let block = whole(offset, self.size)?;
        let group = whole(block.checked_sub(self.first)?, self.of_group)?;
        Some(group != 0 && block < self.count && names_group(backup, group)?)
    }

    /// The largest size of the filesystem, in bytes. The number of an inode has 32 bits. Without the feature `64bit`,
    /// the number of a block has 32 bits, too. Source: Linux' fs/ext4/resize.c, `ext4_resize_fs`; e2fsprogs
    /// resize/main.c.
    fn largest(&self, fields: &Fields) -> Option<u64> {
        let group = self.of_group.checked_mul(self.size)?;
        let groups = u64::from(u32::MAX).checked_div(u64::from(fields.le32(0x28)?))?;
        let by_inodes = groups.saturating_mul(group);
        let by_blocks = self.size.saturating_mul(1 << 32);
        Some(if self.has_64bit {
            by_inodes
        } else {
            by_inodes.min(by_blocks)
        })
    }
}

/// Whether a backup belongs to this group. The backup's field for the group's number has 16 bits: for a larger number,
/// e2fsprogs writes 65535. Kernels before 5.18 write 0 into backups when they grow the filesystem.
fn names_group(backup: &Fields, group: u64) -> Option<bool> {
    let named = backup.le16(0x5A)?;
    Some(named == 0 || named == u16::try_from(group).unwrap_or(u16::MAX))
}

/// When an ext was last made, written or mounted. A time has 32 bits, and 8 more in another field for years after 2106.
fn newest_time(fields: &Fields) -> Option<u64> {
    let made = time(fields, 0x108, 0x276)?;
    let written = time(fields, 0x30, 0x274)?;
    let mounted = time(fields, 0x2C, 0x275)?;
    Some(made.max(written).max(mounted))
}

fn time(fields: &Fields, low: usize, high: usize) -> Option<u64> {
    Some(u64::from(fields.le32(low)?) | u64::from(fields.byte(high)?) << 32)
}

/// `all` divided by `part`. `None`: the division leaves a remainder.
fn whole(all: u64, part: u64) -> Option<u64> {
    all.is_multiple_of(part).then(|| all.checked_div(part))?
}
