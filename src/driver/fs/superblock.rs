//! The superblock of a filesystem that this driver makes, read from the bytes of a device.

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
#[allow(clippy::struct_excessive_bools)] // each is asked for by itself
pub struct Superblock {
    pub family: Family,
    /// The filesystem's UUID, in lower case with hyphens, as blkid prints it.
    pub uuid: String,
    pub size: u64,
    pub block_size: u64,
    pub condition: Condition,
    /// The latest of three times, in seconds since the epoch: when the filesystem was made, last written and last
    /// mounted. `None`: an xfs or a btrfs, whose superblocks have no time.
    pub newest_time: Option<u64>,
    /// Whether the mkfs of this xfs has not ended: it clears this flag last of all. mkfs.btrfs writes its magic number
    /// last, and mke2fs the superblock, so an ext or a btrfs with a superblock is whole, unless the disk lost data that
    /// it had confirmed.
    pub in_progress: bool,
    /// Whether a part of the filesystem is on another device: another disk of a btrfs, or the journal of an ext.
    pub is_part: bool,
    /// The largest size to which the filesystem can grow, in bytes. `None`: it can fill a volume of any size.
    pub largest: Option<u64>,
    /// Whether the kernel refuses to grow the filesystem while it is mounted. False also for an ext2, which
    /// [`FsType`] tells.
    pub only_unmounted: bool,
    /// The unit of growth, in bytes. If there is less room than this, the filesystem may stay as it is.
    pub step: u64,
    /// The size of an xfs's log in bytes, which statfs(2) does not count.
    pub log: u64,
    /// The filesystem's type, if its superblock is valid by its checksum: see `certain.rs`.
    pub certain_type: Option<FsType>,
    /// Whether the checksum is wrong, so that the kernel does not mount the filesystem: see `certain.rs`.
    pub is_damaged: bool,
}

impl Superblock {
    /// The size of this filesystem, in bytes. `shown`: its size by statfs(2). After growing an xfs, the kernel writes
    /// the superblock to the log first, so the superblock on the disk may be older.
    pub fn covers(&self, shown: Option<u64>) -> u64 {
        match (self.family, shown) {
            (Family::Xfs, Some(shown)) => self.size.max(shown.saturating_add(self.log)),
            (Family::Xfs | Family::Ext | Family::Btrfs, _) => self.size,
        }
    }

    /// Whether the filesystem could still grow on a device of `device` bytes.
    pub fn has_room(&self, shown: Option<u64>, device: u64) -> bool {
        device.saturating_sub(self.covers(shown)) >= self.step
    }
}

/// Reads `length` bytes from `offset`. `None`: the device ends before the last of them.
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

    pub(super) fn be64(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_be_bytes)
    }

    /// Whether a journal of ext begins here. Source: the kernel's Documentation/filesystems/ext4/journal.rst.
    pub(super) fn is_ext_journal(&self) -> bool {
        self.be32(0) == Some(0xC03B_3998) && matches!(self.be32(4), Some(3 | 4))
    }

    /// Whether this journal was ever used, by the number of its next transaction and the beginning of its log.
    pub(super) fn is_used_journal(&self) -> Option<bool> {
        Some(self.be32(0x18)? != 1 || self.be32(0x1C)? != 0)
    }

    pub(super) fn le64(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    pub(super) fn uuid(&self, at: usize) -> Option<String> {
        let number = u128::from_be_bytes(self.array(at)?);
        with_hyphens(&format!("{number:032x}"))
    }
}
