//! Reads a block device without the page cache: the data that is on the disk now.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use nix::fcntl::{FcntlArg, OFlag, PosixFadviseAdvice, fcntl, posix_fadvise};
use nix::libc::EINVAL;

/// The alignment of a direct read: most disks have no larger blocks. Source: open(2), `O_DIRECT`.
const PAGE: usize = 4096;

pub struct Uncached {
    file: File,
    is_direct: Cell<bool>,
}

impl Uncached {
    pub(crate) fn open(path: &str) -> io::Result<Self> {
        let open = |flags: OFlag| {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(flags.bits()).open(path)
        };
        let (file, is_direct) = match open(OFlag::O_DIRECT) {
            Err(e) if e.raw_os_error() == Some(EINVAL) => (open(OFlag::empty())?, false),
            file => (file?, true),
        };
        let is_direct = Cell::new(is_direct);
        Ok(Self { file, is_direct })
    }

    /// Flushes the device: afterwards, everything that anybody has written is on the disk.
    pub fn flush(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// From now on, reads fill the page cache for a tool that reads the device next.
    pub fn fill_cache(&self) -> io::Result<()> {
        fcntl(&self.file, FcntlArg::F_SETFL(OFlag::empty()))?;
        self.is_direct.set(false);
        // Drops the cached pages; a length of 0 means to the end. The kernel may keep a page. Then a read gets that
        // page, whose bytes were once read from the device.
        let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        Ok(())
    }

    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.is_direct.get() {
            return self.file.read_at(into, offset);
        }
        let skip = offset.checked_rem(PAGE as u64).unwrap_or(0);
        let is_aligned = into.as_ptr().align_offset(PAGE) == 0 && into.len().is_multiple_of(PAGE);
        let read = if is_aligned && skip == 0 {
            self.direct(into, offset)
        } else {
            self.surrounding(into, offset, skip)
        };
        match read {
            // The device has larger blocks, or does not support direct reads.
            Err(e) if e.raw_os_error() == Some(EINVAL) => {
                self.fill_cache()?;
                self.file.read_at(into, offset)
            }
            read => read,
        }
    }

    /// Reads the whole pages around the wanted bytes, and copies the wanted bytes. `skip`: the bytes of the first page
    /// before `offset`.
    fn surrounding(&self, into: &mut [u8], offset: u64, skip: u64) -> io::Result<usize> {
        let start = offset.saturating_sub(skip);
        let skip = usize::try_from(skip).unwrap_or(0);
        let mut pages = Pages::new(skip.saturating_add(into.len()).next_multiple_of(PAGE));
        let length = self.direct(pages.bytes(), start)?;
        let found = pages.bytes().get(skip..length).unwrap_or_default();
        for (to, from) in into.iter_mut().zip(found) {
            *to = *from;
        }
        Ok(found.len().min(into.len()))
    }

    /// Reads up to the first page that cannot be read. The kernel does not say which page that is, so after an error
    /// this function reads page by page.
    fn direct(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let error = match self.file.read_at(into, offset) {
            Err(error) if into.len() > PAGE => error,
            read => return read,
        };
        let mut good = 0_usize;
        for page in into.chunks_mut(PAGE) {
            match self.file.read_at(page, offset.saturating_add(good as u64)) {
                Ok(PAGE) => good = good.saturating_add(PAGE),
                // The device ends.
                Ok(length) => return Ok(good.saturating_add(length)),
                Err(error) if good == 0 => return Err(error),
                Err(_) => return Ok(good),
            }
        }
        // Each page could be read, though the whole could not: the first error counts.
        Err(error)
    }
}

/// Zeroed memory that begins at a page.
pub struct Pages {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Pages {
    pub fn new(length: usize) -> Self {
        let memory = vec![0; length.saturating_add(PAGE)];
        let start = memory.as_ptr().align_offset(PAGE);
        Self {
            memory,
            start,
            length,
        }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let end = self.start.saturating_add(self.length);
        self.memory.get_mut(self.start..end).unwrap_or_default()
    }
}
