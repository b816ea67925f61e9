//! What `lvm install` does with files. No call-out uses any of this: a driver that serves kubelet
//! deletes no file and writes none beside itself.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

/// What a name stands for, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing has this name.
    Missing,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A file, or something else that is neither.
    File,
}

/// What changes when a file is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// What `path` is.
///
/// # Errors
/// The kernel's, other than that it does not exist.
pub fn kind(path: &Path) -> io::Result<Kind> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(Kind::Dir),
        Ok(metadata) if metadata.is_symlink() => Ok(Kind::Link),
        Ok(_) => Ok(Kind::File),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Kind::Missing),
        Err(e) => Err(e),
    }
}

/// The stamp of a file; None: it cannot be looked at.
#[must_use]
pub fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// Whether two names lead to one file, as far as this process may see.
#[must_use]
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let one = identity(one);
    one.is_some() && one == identity(other)
}

/// The whole content of a regular file.
///
/// # Errors
/// The kernel's, or that it is something else.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    fs::read(path)
}

/// Whether `path` is a regular file with these bytes that its owner may execute.
#[must_use]
pub fn is_executable_with(path: &Path, bytes: &[u8]) -> bool {
    const OWNER_EXECUTES: u32 = 0o100;
    let fits = |metadata: fs::Metadata| {
        metadata.is_file()
            && metadata.permissions().mode() & OWNER_EXECUTES != 0
            && metadata.len() == bytes.len() as u64
    };
    fs::symlink_metadata(path).is_ok_and(fits) && fs::read(path).is_ok_and(|have| have == bytes)
}

/// Takes the lock of a directory, which lasts as long as the file. None: another has it.
///
/// # Errors
/// The kernel's.
pub fn lock_dir(dir: &Path) -> io::Result<Option<File>> {
    let file = File::open(dir)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Makes a file anew, whole on the disk before this returns.
///
/// # Errors
/// The kernel's.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    remove(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    // The umask of the caller does not matter.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Gives a file, or a symbolic link itself, a second name; a copy where that is not possible.
///
/// # Errors
/// The kernel's.
pub fn second_name(of: &Path, name: &Path) -> io::Result<()> {
    remove(name)?;
    if fs::hard_link(of, name).is_ok() {
        return Ok(());
    }
    let metadata = fs::symlink_metadata(of)?;
    if metadata.is_symlink() {
        symlink(fs::read_link(of)?, name)
    } else {
        write(name, &read(of)?, metadata.permissions().mode() & 0o777)
    }
}

/// Renames in one step, and lasts; what had the name `to` before is gone.
///
/// # Errors
/// The kernel's.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let identity = |path| fs::symlink_metadata(path).map(|m| (m.dev(), m.ino())).ok();
    if identity(from).is_some() && identity(from) == identity(to) {
        // rename(2) does nothing for two names of one file.
        remove(from)?;
    } else {
        fs::rename(from, to)?;
    }
    sync_parent(to)
}

/// Makes what happened to names in the directory of `path` last.
///
/// # Errors
/// The kernel's.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Removes a file or a link. It may be gone already.
///
/// # Errors
/// The kernel's.
#[allow(clippy::disallowed_methods)] // The installer takes away what it made itself.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if !is_missing(&e, path) => Err(e),
        _ => Ok(()),
    }
}

/// rmdir(2). The directory may be gone already.
///
/// # Errors
/// The kernel's.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(e) if !is_missing(&e, path) => Err(e),
        _ => Ok(()),
    }
}

/// Whether a removal failed at a name that is not there. A read-only filesystem says that it is
/// one before it looks for the name.
fn is_missing(error: &io::Error, path: &Path) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || kind(path).is_ok_and(|kind| kind == Kind::Missing)
}

/// Makes a directory, and those above it, for all to read.
///
/// # Errors
/// The kernel's.
pub fn make_dirs(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// The names in a directory, sorted.
///
/// # Errors
/// The kernel's.
pub fn list(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Writes to standard output at once, for a command that does not end. All other commands hand
/// what they have to say to `main`.
pub fn tell(text: &str) {
    let mut out = io::stdout();
    // Nobody may be reading.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
