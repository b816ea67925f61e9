//! A lock that the tools of a call inherit.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;

use super::{Kernel, selinux};

/// A lock that is held. It ends when this and every child that got [`Lock::file`] are gone, and its file goes with it.
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

/// Where a lock file is, until nobody holds it.
#[derive(Debug)]
struct LockPath(PathBuf);

impl Drop for LockPath {
    fn drop(&mut self) {
        // Opened again, so that a child that still works under the lock keeps it. One that stays, after a
        // kill, is in nobody's way.
        if let Ok(file) = open(&self.0)
            && file.try_lock().is_ok()
            && is_at(&file, &self.0)
        {
            // Version 0.1.0 makes files.
            let _ = fs::remove_dir(&self.0).or_else(|_| fs::remove_file(&self.0));
        }
    }
}

#[allow(clippy::unused_self)] // having the kernel is what allows a function to use it
impl Kernel {
    /// Takes the flock(2) on `path`, which is made if missing, with its directory. `None` if somebody
    /// holds it.
    ///
    /// A directory is made: SELinux takes a file from the tools that inherit it, if their domains may not read
    /// it. LVM, mkfs and mount make files in /run, so they may read a directory that has the label of /run.
    pub fn try_lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        loop {
            let mut private = DirBuilder::new();
            private.mode(0o700);
            if let Some(dir) = path.parent() {
                private.recursive(true).create(dir)?;
            }
            match private.recursive(false).create(path) {
                // A domain that may not do this needs a policy of the node's own.
                Ok(()) => _ = selinux::label_as(path, Path::new("/run")),
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                Err(_) => {}
            }
            let file = match open(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            // std's lock is flock(2), and closing the last descriptor is what unlocks: a child that
            // still works under the lock keeps it.
            match file.try_lock() {
                // Its holder may have removed it since it was opened.
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
    options.read(true).custom_flags(OFlag::O_NOFOLLOW.bits());
    options.open(path)
}

/// Whether this open file is the one that has this path.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let named = fs::symlink_metadata(path).map(identity);
    named.is_ok_and(|named| file.metadata().map(identity).is_ok_and(|own| own == named))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The processes of this test are threads: flock(2) goes by the open file.
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
