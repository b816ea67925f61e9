//! A lock that the tools of a call inherit.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;

use super::{Kernel, selinux};

/// A lock that is held. It ends when this value is dropped and every child that got [`Lock::file`] has ended. If no
/// such child is left at the drop, the drop removes the lock's file.
#[derive(Debug)]
pub struct Lock {
    // The file is closed before the path is dropped.
    file: Arc<File>,
    _path: LockPath,
}

impl Lock {
    /// The lock file, to be handed to a writer as its standard input.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }
}

/// The path of a lock file, which is removed on drop if nobody holds the lock any more.
#[derive(Debug)]
struct LockPath(PathBuf);

impl Drop for LockPath {
    fn drop(&mut self) {
        // Removes the file only if the lock can be taken again: a child may still hold it. A file that stays after a
        // kill does no harm.
        if let Ok(file) = open(&self.0)
            && file.try_lock().is_ok()
            && is_at(&file, &self.0)
        {
            // Version 0.1.0 made files, not directories.
            let _ = fs::remove_dir(&self.0).or_else(|_| fs::remove_file(&self.0));
        }
    }
}

#[allow(clippy::unused_self)] // only a function with a `Kernel` can make these calls
impl Kernel {
    /// Takes the flock(2) on `path`, and makes `path` and its parent if they are missing. `None`: somebody holds the
    /// lock.
    ///
    /// A tool that the driver runs can inherit the lock's open descriptor, and then keeps the lock. SELinux closes a
    /// descriptor of a file that the tool's domain may not read. So `path` is a directory, which gets the label of
    /// /run: LVM, mkfs and mount make files in /run, so their domains may read such a directory.
    pub fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        loop {
            let mut private = DirBuilder::new();
            private.mode(0o700);
            if let Some(dir) = path.parent() {
                private.recursive(true).create(dir)?;
            }
            match private.recursive(false).create(path) {
                // A failure is ignored. A domain that may not set labels needs a rule in the node's own policy.
                Ok(()) => _ = selinux::label_as(path, Path::new("/run")),
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                Err(_) => {}
            }
            let file = match open(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            // The lock of std is flock(2). It ends when the last descriptor is closed, so a child that inherited a
            // descriptor keeps the lock.
            match file.try_lock() {
                // The last holder may have removed the file after this function opened it.
                Ok(()) if !is_at(&file, path) => {}
                Ok(()) => {
                    return Ok(Some(Lock {
                        file: Arc::new(file),
                        _path: LockPath(path.to_owned()),
                    }));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(e),
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // O_NONBLOCK: if somebody put a FIFO there, the open would wait for a writer.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    options.read(true).custom_flags(flags.bits()).open(path)
}

/// Whether this open file is still the file at this path.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let named = fs::symlink_metadata(path).map(identity);
    named.is_ok_and(|named| file.metadata().map(identity).is_ok_and(|own| own == named))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Threads stand for processes in this test, since flock(2) belongs to the open file.
    #[test]
    fn a_lock_file_lasts_as_long_as_its_lock_and_never_has_two_holders() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("made/it.lock");
        let holders = AtomicUsize::new(0);
        let hold = || {
            let kernel = Kernel::new().unwrap();
            for _ in 0..1000 {
                let lock = loop {
                    if let Some(lock) = kernel.try_lock(&path).unwrap() {
                        break lock;
                    }
                    std::thread::yield_now();
                };
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                std::thread::yield_now();
                holders.fetch_sub(1, Ordering::SeqCst);
                drop(lock);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(hold);
            }
        });
        assert!(!path.exists());

        let kernel = Kernel::new().unwrap();
        let lock = kernel.try_lock(&path).unwrap().unwrap();
        let of_child = lock.file();
        drop(lock);
        assert!(
            kernel.try_lock(&path).unwrap().is_none(),
            "a child works under it"
        );
        drop(of_child);
        assert!(path.exists());
        drop(kernel.try_lock(&path).unwrap().unwrap());
        assert!(!path.exists());
    }
}
