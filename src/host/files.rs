//! What `lvm install` does with files. No call-out uses any of this: a driver that serves kubelet
//! deletes no file and writes none beside itself.
//!
//! Every error names what was done to which path.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result, bail};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Missing,
    Dir,
    Link,
    /// A file, or something else that is neither.
    File,
}

pub fn kind(path: &Path) -> Result<Kind> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(Kind::Dir),
        Ok(metadata) if metadata.is_symlink() => Ok(Kind::Link),
        Ok(_) => Ok(Kind::File),
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(Kind::Missing),
        Err(e) => Err(e).with_context(|| did("looking at", path)),
    }
}

pub fn exists(path: &Path) -> Result<bool> {
    Ok(kind(path)? != Kind::Missing)
}

/// Whether two names lead to one file, as far as this process may see.
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let one = identity(one);
    one.is_some() && one == identity(other)
}

/// Whether two files have the same content, or two links the same target.
pub fn is_same(one: &Path, other: &Path) -> Result<bool> {
    match (kind(one)?, kind(other)?) {
        (Kind::File, Kind::File) => Ok(read(one)? == read(other)?),
        (Kind::Link, Kind::Link) => Ok(target(one)? == target(other)?),
        _ => Ok(false),
    }
}

pub fn read(path: &Path) -> Result<Vec<u8>> {
    let read = || {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        fs::read(path)
    };
    read().with_context(|| did("reading", path))
}

/// Whether `path` is a regular file with these bytes that its owner may execute.
pub fn is_executable_with(path: &Path, bytes: &[u8]) -> bool {
    const OWNER_EXECUTES: u32 = 0o100;
    let fits = |metadata: fs::Metadata| {
        metadata.is_file() && metadata.permissions().mode() & OWNER_EXECUTES != 0
    };
    fs::symlink_metadata(path).is_ok_and(fits) && fs::read(path).is_ok_and(|have| have == bytes)
}

/// Takes the lock of a directory, which lasts as long as the file.
pub fn lock_dir(dir: &Path) -> Result<File> {
    let file = File::open(dir).with_context(|| did("opening", dir))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another run is at work on {}; try again when it has ended",
            dir.display()
        ),
        Err(TryLockError::Error(e)) => Err(e).with_context(|| did("locking", dir)),
    }
}

/// Makes a file anew, whole on the disk before this returns.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    remove(path)?;
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        file.write_all(bytes)?;
        // The umask of the caller does not matter.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    };
    write().with_context(|| did("writing", path))
}

/// Makes a symbolic link.
pub fn link(to: &Path, at: &Path) -> Result<()> {
    symlink(to, at).with_context(|| did("making", at))
}

/// Gives a file, or a symbolic link itself, a second name; a copy where that is not possible.
pub fn second_name(of: &Path, name: &Path) -> Result<()> {
    remove(name)?;
    if fs::hard_link(of, name).is_ok() {
        return Ok(());
    }
    if kind(of)? == Kind::Link {
        return symlink(target(of)?, name).with_context(|| did("making", name));
    }
    let metadata = fs::metadata(of).with_context(|| did("looking at", of))?;
    write(name, &read(of)?, metadata.permissions().mode() & 0o777)
}

/// Where a symbolic link leads.
pub fn target(link: &Path) -> Result<std::path::PathBuf> {
    fs::read_link(link).with_context(|| did("reading", link))
}

/// Renames in one step, and lasts; what had the name `to` before is gone.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    let identity = |path| fs::symlink_metadata(path).map(|m| (m.dev(), m.ino())).ok();
    if identity(from).is_some() && identity(from) == identity(to) {
        // rename(2) does nothing for two names of one file.
        remove(from)?;
    } else {
        fs::rename(from, to)
            .with_context(|| format!("{} to {}", did("renaming", from), to.display()))?;
    }
    sync_parent(to)
}

/// Makes what happened to names in the directory of `path` last.
pub fn sync_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    let sync = || File::open(parent)?.sync_all();
    sync().with_context(|| did("syncing", parent))
}

/// Removes a file or a link, if it is there. It is looked for first, because a read-only filesystem
/// says no before it looks.
#[allow(clippy::disallowed_methods)] // The installer takes away what it made itself.
pub fn remove(path: &Path) -> Result<()> {
    if !exists(path)? {
        return Ok(());
    }
    fs::remove_file(path).with_context(|| did("removing", path))
}

/// rmdir(2), if the directory is there.
pub fn remove_dir(path: &Path) -> Result<()> {
    if !exists(path)? {
        return Ok(());
    }
    fs::remove_dir(path).with_context(|| did("removing", path))
}

pub fn make_dirs(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o755).create(path);
    made.with_context(|| did("making", path))
}

pub fn list(dir: &Path) -> Result<Vec<std::ffi::OsString>> {
    let list = || {
        let entries = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name()));
        entries.collect::<io::Result<Vec<_>>>()
    };
    let mut names = list().with_context(|| did("reading", dir))?;
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

fn did(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}
