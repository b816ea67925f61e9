//! Examines a device that may be blank: reads every place where data leaves signs.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::backup::Backup;
use super::marks::Mark;
use super::places::ranges;
use super::superblock::{ReadAt, Superblock, fill};
use crate::host::{Command, Effect, Host, Lock, Pages, file_to_clean};
use crate::names::{Bytes, Shown};

/// How much is read or written at once, in whole pages. Most disks take this as one request or a few.
const CHUNK: usize = 1 << 20;

/// A sector. Every superblock begins at a whole sector.
const SECTOR: usize = 512;

/// How much of a device is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Extent {
    Whole,
    /// Like `Whole`, but the data stays in the page cache for blkid, which reads next.
    Cached,
    /// At most 1 MiB, where most kinds of content have their marks. For a device that was all zero a moment ago, if the
    /// kernel has counted no write since.
    Marks,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examination {
    /// The first place that could not be read. Nothing was looked at after it.
    pub unreadable: Option<Unreadable>,
    pub data: Option<Data>,
    /// The first mark of content.
    pub mark: Option<Mark>,
    /// The first backup superblock of an ext, and the first one with another UUID, if there is one.
    pub backups: Vec<Backup>,
    /// Whether a mark was found that none of the driver's filesystems has.
    pub is_foreign: bool,
}

/// What is not zero in the places that were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Byte offset of the first sector that is not zero.
    pub offset: u64,
    /// A checksum of all sectors that are not zero, and of their offsets.
    pub sum: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Bytes from the beginning of the device, accurate to a page.
    pub offset: u64,
    pub error: String,
}

/// A device that is open, and its name.
pub type Opened<'a> = (&'a Arc<File>, &'a Path);

/// Reads a device that the caller has open. `flush`: flushes the device before and after, so that the disk keeps
/// everything written. lvcreate does not flush: after a power cut, data that lvcreate wiped could show again.
pub fn scan(
    host: &Host,
    size: Bytes,
    extent: Extent,
    flush: bool,
    claim: Opened,
) -> Result<Examination> {
    let mut words = vec![size.get().to_string(), extent.to_string()];
    if flush {
        words.push(super::FLUSH.to_owned());
    }
    ask_child(host, claim, super::EXAMINE, words)
}

/// Makes every place zero that [`examine`] reads, on a volume that this call's lvcreate has just made. Otherwise, what
/// a removed volume left there would count as data. The child that writes inherits the group's `lock`, and fails if
/// anybody has claimed the device.
pub(crate) fn clean(host: &Host, size: Bytes, device: File, lock: &Lock) -> Result<()> {
    let command = Command::myself(super::CLEAN, Effect::Writes, host.limits.make)
        .stdin(lock.file())
        .args([size.get().to_string()])
        .hands_on("device", device);
    host.run(&command)?;
    Ok(())
}

/// The child's part of [`clean`]. `device`: a path of the device, which has `size` bytes.
pub fn clean_places(device: &str, size: u64) -> io::Result<()> {
    let file = file_to_clean(device)?;
    let zeros = vec![0; CHUNK];
    for (start, length) in parts(size, Extent::Whole) {
        file.write_all_at(zeros.get(..length).unwrap_or_default(), start)?;
    }
    file.sync_all()
}

/// The parts of a device that are read or cleaned, with at most [`CHUNK`] bytes each: where a part begins, and its
/// length.
fn parts(size: u64, extent: Extent) -> impl Iterator<Item = (u64, usize)> {
    let all = ranges(size, extent).into_iter();
    all.flat_map(|Range { start, end }| {
        (start..end).step_by(CHUNK).map(move |at| {
            let left = usize::try_from(end.saturating_sub(at)).unwrap_or(CHUNK);
            (at, left.min(CHUNK))
        })
    })
}

/// Reads the superblock of the filesystem on a device. `None`: there is no valid superblock.
pub fn superblock_of(host: &Host, device: Opened) -> Result<Option<Superblock>> {
    ask_child(host, device, super::SUPERBLOCK, [])
}

/// Flushes the device, so that the disk keeps everything mkfs has written. Then reads the superblock of the new
/// filesystem. `None`: there is no valid superblock.
///
/// mkfs.xfs does not flush: after a power cut, a disk may have the superblock, which mkfs writes last, but not the
/// rest. Source: xfsprogs' `libxfs/linux.c`, `platform_flush_device`.
pub fn superblock_of_new(host: &Host, device: Opened) -> Result<Option<Superblock>> {
    ask_child(host, device, super::SUPERBLOCK, [super::FLUSH.to_owned()])
}

/// Lets another process read a device. A read of a failing disk may never return; then the driver can leave that
/// process behind.
pub(crate) fn ask_child<T: DeserializeOwned>(
    host: &Host,
    (device, path): Opened,
    question: &'static str,
    words: impl IntoIterator<Item = String>,
) -> Result<T> {
    let command = Command::asks(question, Arc::clone(device), host.limits.query).args(words);
    let reading = || format!("reading {}", path.shown());
    let output = host.run(&command).with_context(reading)?;
    serde_json::from_slice(&output.stdout).with_context(reading)
}

/// Reads the head, the tail and every usual place of a copy of a superblock of `device`, which has `size` bytes.
pub fn examine(device: &impl ReadAt, size: u64, extent: Extent) -> Examination {
    let mut seen = Examination::default();
    let mut sum = Sha256::new();
    let mut pages = Pages::new(CHUNK);
    let buffer = pages.bytes();
    for (start, length) in parts(size, extent) {
        let chunk = buffer.get_mut(..length).unwrap_or_default();
        if let Err((offset, error)) = fill(device, chunk, start) {
            seen.unreadable = Some(Unreadable {
                offset,
                error: error.to_string(),
            });
            return seen;
        }
        seen.take(chunk, start, &mut sum);
    }
    if let Some(data) = &mut seen.data {
        let half = sum.finalize().first_chunk().copied();
        data.sum = format!("{:032x}", u128::from_be_bytes(half.unwrap_or_default()));
    }
    seen
}

impl Examination {
    /// Whether all could be read and is zero.
    pub fn is_zero(&self) -> bool {
        self.unreadable.is_none() && self.data.is_none()
    }

    fn take(&mut self, chunk: &[u8], start: u64, sum: &mut Sha256) {
        const ZERO: [u8; SECTOR] = [0; SECTOR];
        for (index, sector) in chunk.chunks(SECTOR).enumerate() {
            if ZERO.starts_with(sector) {
                continue;
            }
            let at = index.saturating_mul(SECTOR);
            let bytes = chunk.get(at..).unwrap_or_default();
            let offset = start.saturating_add(at as u64);
            sum.update(offset.to_le_bytes());
            sum.update(sector);
            self.data.get_or_insert_with(|| Data {
                offset,
                sum: String::new(),
            });
            if let Some(found) = Backup::of(bytes, offset) {
                self.take_backup(found);
            } else if let Some(mark) = Mark::of(bytes, offset) {
                self.is_foreign |= !mark.is_of_own_filesystem();
                self.mark.get_or_insert(mark);
            }
        }
    }

    fn take_backup(&mut self, found: Backup) {
        let is_known = self.backups.iter().any(|known| known.uuid == found.uuid);
        if !is_known && self.backups.len() < 2 {
            self.backups.push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_a_second_filesystem_is_told() {
        let mut seen = Examination::default();
        for (uuid, want) in [
            ("u", "u"),
            ("u", "u"),
            ("v", "uv"),
            ("u", "uv"),
            ("w", "uv"),
        ] {
            let found = Backup {
                offset: 128 << 20,
                uuid: uuid.to_owned(),
                block_size: 4096,
                written: 0,
            };
            seen.take_backup(found);
            let told: String = seen.backups.iter().map(|one| &*one.uuid).collect();
            assert_eq!(told, want, "{uuid}");
        }
    }
}
