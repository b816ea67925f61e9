//! A backup superblock of an ext whose beginning is gone.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ext::ext_backup;
use super::superblock::{Fields, ReadAt, bytes};
use crate::names::{Shown, date};

const COMPAT_HAS_JOURNAL: u32 = 0x4;
const COMPAT_ORPHAN_FILE: u32 = 0x1000;
const INCOMPAT_64BIT: u32 = 0x80;
const RO_COMPAT_PROJECT: u32 = 0x2000;
/// The magic number of a tree of extents.
const EXTENTS: u16 = 0xF30A;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub offset: u64,
    pub uuid: String,
    pub block_size: u64,
    /// When the backup was written, in seconds since the epoch.
    pub written: u64,
    /// Whether a killed mke2fs may have left the backup: see [`is_unused`].
    pub is_unused: bool,
}

impl Backup {
    /// The backup in `bytes`, which lie at `offset` of the device.
    pub(super) fn of(bytes: &[u8], offset: u64) -> Option<Self> {
        let found = ext_backup(bytes, offset)?;
        Some(Self {
            offset,
            uuid: found.uuid,
            block_size: found.block_size,
            written: found.newest_time?,
            is_unused: true,
        })
    }

    /// The commands that show the rest of the filesystem on `device`, and repair it. The repair destroys data that was
    /// written after the backup.
    pub fn repair(&self, device: &Path) -> String {
        let size = self.block_size;
        let block = self.offset.checked_div(size).unwrap_or(0);
        let by = format!("-b {block} -B {size} {}", device.shown());
        format!("`e2fsck -n {by}` shows what is left, and `e2fsck {by}` repairs it")
    }
}

impl fmt::Display for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, uuid, .. } = self;
        write!(f, "an ext backup superblock at byte {offset} (UUID {uuid}")?;
        write!(f, ", written {})", date(self.written))
    }
}

/// Whether nobody has used this ext: mke2fs was killed before it wrote the primary superblock, which it writes last. In
/// that case, everything that mke2fs writes before its first backup is as mke2fs leaves it: the descriptor of the first
/// group, the root directory's inode, and the beginning of the journal. A mount changes these.
///
/// Sources: e2fsprogs lib/ext2fs/closefs.c, `ext2fs_flush2`, and mkjournal.c; the kernel's
/// Documentation/filesystems/ext4, "Group Descriptors", "Inode Table" and "Journal".
pub(super) fn is_unused(device: &impl ReadAt, backup: &Backup) -> bool {
    is_as_made(device, backup).unwrap_or(false)
}

/// See [`is_unused`]. `None`: a part cannot be read, or is not where mke2fs puts it.
fn is_as_made(device: &impl ReadAt, backup: &Backup) -> Option<bool> {
    let at_block = |block: u64, length: usize| {
        let at = block.checked_mul(backup.block_size)?;
        bytes(device, at, length).ok()?
    };
    let superblock = bytes(device, backup.offset, 1024).ok()??;
    let superblock = Fields(&superblock);
    let first_block = u64::from(superblock.le32(0x14)?);
    let group = at_block(first_block.checked_add(1)?, 64)?;
    let group = Group::of(&Fields(&group), &superblock)?;
    let inode_size = match superblock.le32(0x4C)? {
        0 => 128,
        _ => usize::from(superblock.le16(0x58)?),
    };
    // The root directory has inode 2, and the table begins with inode 1.
    let inodes = at_block(group.inode_table, inode_size.checked_mul(2)?)?;
    let root = Fields(inodes.get(inode_size..)?);
    Some(
        group.used_inodes <= new_inodes(&superblock)?
            && is_new_root(&root, superblock.le32(0x108)?.into()..=backup.written)?
            && is_new_journal(&superblock, at_block)?,
    )
}

/// The descriptor of the first group.
struct Group {
    inode_table: u64,
    used_inodes: u32,
}

impl Group {
    fn of(group: &Fields, superblock: &Fields) -> Option<Self> {
        let is_wide = superblock.le32(0x60)? & INCOMPAT_64BIT != 0;
        let high = |value: u32| if is_wide { value } else { 0 };
        let table = u64::from(group.le32(0x8)?) | u64::from(high(group.le32(0x28)?)) << 32;
        let free = u32::from(group.le16(0xE)?) | high(group.le16(0x2E)?.into()) << 16;
        let used_inodes = superblock.le32(0x28)?.checked_sub(free)?;
        (table > 0).then_some(Self {
            inode_table: table,
            used_inodes,
        })
    }
}

/// How many inodes a new ext uses at most: ten reserved ones, `lost+found`, and one file each for orphans and for
/// project quotas.
fn new_inodes(superblock: &Fields) -> Option<u32> {
    let orphans = superblock.le32(0x5C)? & COMPAT_ORPHAN_FILE != 0;
    let projects = superblock.le32(0x64)? & RO_COMPAT_PROJECT != 0;
    11_u32
        .checked_add(orphans.into())?
        .checked_add(projects.into())
}

/// Whether this inode is a directory that contains only `lost+found`, and whose times are all in the range `mkfs`, in
/// seconds since the epoch. mke2fs writes no nanoseconds; the kernel does.
fn is_new_root(inode: &Fields, mkfs: RangeInclusive<u64>) -> Option<bool> {
    const TIMES: [usize; 3] = [0x8, 0xC, 0x10];
    const NANOSECONDS: [usize; 3] = [0x84, 0x88, 0x8C];
    let is_directory = inode.le16(0)? & 0xF000 == 0x4000;
    let of_mkfs = |at: &usize| {
        inode
            .le32(*at)
            .is_some_and(|time| mkfs.contains(&time.into()))
    };
    let is_whole_second = |at: &usize| inode.le32(*at).is_none_or(|nanoseconds| nanoseconds == 0);
    Some(
        is_directory
            && inode.le16(0x1A)? == 3
            && TIMES.iter().all(of_mkfs)
            && NANOSECONDS.iter().all(is_whole_second),
    )
}

/// Whether the ext has no journal, or one that was never used. A backup superblock says where the journal is. `None`:
/// it does not say that, or the journal cannot be read.
fn is_new_journal(
    superblock: &Fields,
    at_block: impl Fn(u64, usize) -> Option<Vec<u8>>,
) -> Option<bool> {
    const BLOCKS: usize = 0x10C;
    if superblock.le32(0x5C)? & COMPAT_HAS_JOURNAL == 0 {
        return Some(true);
    }
    if superblock.byte(0xFD)? != 1 {
        return None;
    }
    let mut first = u64::from(superblock.le32(BLOCKS)?);
    if superblock.le16(BLOCKS)? == EXTENTS {
        first = first_extent(superblock, BLOCKS, &at_block)?;
    }
    let journal = at_block(first, 32)?;
    let journal = Fields(&journal);
    Some(journal.is_ext_journal() && !journal.is_used_journal()?)
}

/// The first block of a file, by the root of its tree of extents. The root may point to further nodes: a large journal
/// has more extents than fit into the root.
fn first_extent(
    root: &Fields,
    at: usize,
    at_block: impl Fn(u64, usize) -> Option<Vec<u8>>,
) -> Option<u64> {
    let wide = |low: u32, high: u16| u64::from(low) | u64::from(high) << 32;
    let of_leaf = |leaf: &Fields, at: usize| {
        let is_leaf = leaf.le16(at)? == EXTENTS && leaf.le16(at.checked_add(6)?)? == 0;
        let extent = at.checked_add(12)?;
        let low = leaf.le32(extent.checked_add(8)?)?;
        is_leaf.then_some(wide(low, leaf.le16(extent.checked_add(6)?)?))
    };
    if root.le16(at.checked_add(6)?)? == 0 {
        return of_leaf(root, at);
    }
    let index = at.checked_add(12)?;
    let leaf = wide(
        root.le32(index.checked_add(4)?)?,
        root.le16(index.checked_add(8)?)?,
    );
    of_leaf(&Fields(&at_block(leaf, 24)?), 0)
}
