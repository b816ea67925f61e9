//! Reads the content of a device to which nobody else is seen to write.

use std::fs::File;
use std::sync::Arc;

use anyhow::{Error, Result, bail};
use nix::libc::EBUSY;

use super::Look;
use super::ground::largest_block;
use crate::crypt;
use crate::fs::{self, Examination, Extent, Probed, Superblock, Unreadable};
use crate::host::ToolError;
use crate::names::{Bytes, Filesystem, FsType, Shown};
use crate::volume::decide::{Content, Decrypted, Doubt, FilesystemState, Openers};
use crate::volume::device::Device;

impl Look<'_> {
    /// Reads the content of the volume's own device.
    pub(super) fn content(&mut self) -> Result<Content> {
        let device = self.facts.require_device()?.clone();
        let kernel = self.subject.host.kernel;
        self.facts.read_only = device.is_read_only(kernel);
        self.facts.read_only_disk = device.read_only_disk(kernel);
        if self.facts.top() != Some(&device) {
            // The device inside has claimed this device, so it cannot be opened exclusively.
            let file = device.open(kernel, false)?;
            return self.read(&device, &Arc::new(file), false);
        }
        self.content_of(&device)
    }

    /// Reads the content of the device inside an encrypted volume that is open, and the kernel's table of that device.
    pub(super) fn content_inside(&mut self) -> Result<Decrypted> {
        let Some(device) = self.facts.top().cloned() else {
            bail!("{} is not open", self.facts.id);
        };
        let table = crypt::table_of(self.subject.host, device.number)?;
        let content = self.content_of(&device)?;
        Ok(Decrypted { content, table })
    }

    fn content_of(&mut self, device: &Device) -> Result<Content> {
        let kernel = self.subject.host.kernel;
        let openers = self.facts.openers.as_ref();
        if self.facts.is_mounted_here() || openers.is_some_and(Openers::is_mounted) {
            return Ok(self.claimed(device));
        }
        // Opened exclusively: until it is closed, nobody can mount the device, swap on it or build a device on it.
        let claim = match device.open(kernel, !self.asker.is_person()) {
            Ok(file) => Arc::new(file),
            Err(e) if e.raw_os_error() == Some(EBUSY) => {
                self.facts.openers = Some(self.openers(0)?);
                return Ok(self.claimed(device));
            }
            Err(e) => bail!("opening {}: {e}", device.path.shown()),
        };
        let is_new = self.facts.require_volume()?.record.new;
        let seen = self.read(device, &claim, is_new);
        self.claim = Some(claim);
        seen
    }

    fn claimed(&self, device: &Device) -> Content {
        Content::Claimed(
            match fs::probe(self.subject.host, &device.node(self.subject.host.kernel)) {
                Ok(Probed::Filesystem(found)) => Some(found),
                _ => None,
            },
        )
    }

    /// Lets the process that reads devices read the places where content leaves signs: the head, the tail and every
    /// place of a copy of a superblock. With [`Extent::Marks`]: at most 1 MiB of them.
    pub(super) fn examined(
        &self,
        device: &Device,
        claim: &Arc<File>,
        extent: Extent,
        flush: bool,
    ) -> Result<Examination> {
        let host = self.subject.host;
        let size = device.size(host.kernel)?;
        fs::scan(host, size, extent, flush, (claim, &device.path))
    }

    /// Reads a device. `flush`: flushes the device before and after the reading, so that the disk keeps everything that
    /// was written. lvcreate does not flush what it wipes.
    ///
    /// What outweighs what, in this order:
    ///
    /// 1. A record that fits: the recorded LUKS2 header, or the valid superblock of the recorded filesystem. Other marks
    ///    do not matter then, since a pod may keep a disk image in a file.
    /// 2. Zeros in every place that is read, if no filesystem is recorded.
    /// 3. What blkid names.
    /// 4. Any byte that is not zero: a sign of data.
    pub(super) fn read(&self, device: &Device, claim: &Arc<File>, flush: bool) -> Result<Content> {
        let record = &self.facts.require_volume()?.record;
        let host = self.subject.host;
        if device.luks.is_none() && record.luks_uuid().is_some() {
            match crypt::header_of(host, (claim, &device.path)) {
                Ok(Some(header)) => return Ok(Content::Luks(header)),
                Ok(None) => {}
                Err(error) if has_failed(&error) => {
                    // Both copies of a header are in the head, which this reads.
                    let seen = self.examined(device, claim, Extent::Whole, flush)?;
                    return match seen.unreadable {
                        Some(_) => Ok(unnamed(seen)),
                        None => Err(error),
                    };
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(made) = &record.made {
            match fs::superblock_of(host, (claim, &device.path)) {
                Ok(Some(found)) => {
                    if let Some(fs) = recorded(&found, made) {
                        return self.filesystem(device, fs, found);
                    }
                }
                // If one place cannot be read, the code below reads everything.
                Err(error) if !has_failed(&error) => return Err(error),
                Ok(None) | Err(_) => {}
            }
        } else {
            let seen = self.examined(device, claim, Extent::Whole, flush)?;
            if seen.is_zero() {
                return Ok(unnamed(seen));
            }
        }
        self.read_by_blkid(device, claim, flush)
    }

    /// Has blkid name the content. If blkid names nothing, the driver's own reading decides.
    fn read_by_blkid(&self, device: &Device, claim: &Arc<File>, flush: bool) -> Result<Content> {
        let (host, node) = (self.subject.host, device.node(self.subject.host.kernel));
        let mut found = fs::probe(host, &node)?;
        if found == Probed::Nothing {
            let seen = self.examined(device, claim, Extent::Cached, flush)?;
            if seen.is_zero() {
                return Ok(unnamed(seen));
            }
            // A failing disk may fail only sometimes. Now that everything has been read into the kernel's cache, blkid
            // runs again.
            found = match seen.unreadable {
                None => fs::probe(host, &node)?,
                // If one page cannot be read, blkid names nothing, even if no filesystem's probe needs that page.
                Some(_) if !seen.is_foreign => fs::probe_filesystems(host, &node)?,
                Some(_) => Probed::Nothing,
            };
            let is_whole = matches!(found, Probed::Filesystem(_));
            if (seen.unreadable.is_some() && !is_whole)
                || (found == Probed::Nothing && !fs::has_several(host, &node)?)
            {
                return Ok(unnamed(seen));
            }
        }
        self.named(device, claim, found)
    }

    /// The content that blkid has named.
    fn named(&self, device: &Device, claim: &Arc<File>, found: Probed) -> Result<Content> {
        let (host, opened) = (self.subject.host, (claim, &*device.path));
        match found {
            Probed::Nothing | Probed::Several => Ok(Content::Several),
            // blkid gives LUKS2 and LUKS1 the same name.
            Probed::Other(what) if what.to_string() == "crypto_LUKS" => {
                let header = crypt::header_of(host, opened)?;
                Ok(header.map_or(Content::Other(what), Content::Luks))
            }
            Probed::Other(what) => Ok(Content::Other(what)),
            Probed::Filesystem(Filesystem { fs, uuid }) => match fs::superblock_of(host, opened)? {
                Some(found) if !found.is_damaged => {
                    self.filesystem(device, fs, Superblock { uuid, ..found })
                }
                Some(_) | None => Ok(Content::Damaged(fs)),
            },
        }
    }

    fn filesystem(&self, device: &Device, fs: FsType, found: Superblock) -> Result<Content> {
        Ok(Content::Filesystem(FilesystemState {
            filesystem: Filesystem {
                fs,
                uuid: found.uuid,
            },
            covers: Bytes::new(found.size),
            device: device.size(self.subject.host.kernel)?,
            block: Bytes::new(found.block_size),
            largest_block: largest_block(self.subject.host.kernel, fs),
            half: found.in_progress,
            condition: found.condition,
            is_part: found.is_part,
            only_unmounted: found.only_unmounted,
        }))
    }
}

/// The content by the driver's own reading, if blkid names nothing or was not run.
pub(super) fn unnamed(seen: Examination) -> Content {
    if let Some(Unreadable { offset: at, error }) = seen.unreadable {
        return Content::Unreadable { at, error };
    }
    let zero = seen.data.is_none();
    let marks = seen.mark.map(Doubt::Mark).into_iter();
    let doubts = marks
        .chain(seen.backups.into_iter().map(Doubt::Backup))
        .chain(seen.data.map(Doubt::Data))
        .collect();
    Content::Blank { zero, doubts }
}

/// The type of the filesystem that was found, if it is certainly the recorded one.
fn recorded(found: &Superblock, made: &Filesystem<String>) -> Option<FsType> {
    let fs = found.certain_type.filter(|fs| fs.as_str() == made.fs)?;
    (found.uuid == made.uuid && !found.in_progress).then_some(fs)
}

/// Whether the disk could not be read. False if the process that was to read has failed.
fn has_failed(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(ToolError::Failed { .. }))
}
