//! Changes files for `flexvolume-lvm install` and other commands for people. No call-out uses this: when the driver
//! serves kubelet, it deletes no files, and writes none beside itself.

#![allow(clippy::disallowed_methods)] // all of this crate's access to files is here

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{self as fs, File, OpenOptions};

use driver::host::{Kernel, Lock, at_most_a_mebibyte, open_regular};
use driver::names::Shown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Missing,
    Dir,
    Link,
    /// A file, or anything else that is neither a link nor a directory.
    File,
}

pub fn kind(path: &Path) -> Result<Kind> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(Kind::Dir),
        Ok(metadata) if metadata.is_symlink() => Ok(Kind::Link),
        Ok(_) => Ok(Kind::File),
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(Kind::Missing),
        Err(e) => Err(e.into()),
    }
}

pub fn exists(path: &Path) -> Result<bool> {
    Ok(kind(path)? != Kind::Missing)
}

/// Whether `path` is a regular file, or a link to one.
pub fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Whether `path` is a regular file with a permission to execute.
pub fn is_executable(path: &Path) -> bool {
    const EXECUTES: u32 = 0o111;
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & EXECUTES != 0)
}

/// The content of a file, or of standard input if it is called `-`: at most 1 MiB.
pub fn read_or_stdin(kernel: &Kernel, file: &Path) -> io::Result<Vec<u8>> {
    if file != Path::new("-") {
        return kernel.read_bytes(file);
    }
    at_most_a_mebibyte(io::stdin().lock())
}

/// Takes the lock of the runs that change `dir`. Fails if another run holds it. The lock is on a private directory in
/// `dir`, which only root can open: everybody who can read `dir` could lock `dir` itself. kubelet ignores the private
/// directory, since its name begins with a dot.
pub fn take_turn(kernel: &Kernel, dir: &Path) -> Result<Lock> {
    let file = dir.join(".flexvolume-lvm.lock");
    let lock = kernel
        .try_lock(&file)
        .with_context(|| format!("locking {}", file.shown()))?;
    lock.with_context(|| {
        format!(
            "another run is at work on {}; try again when it has ended",
            dir.shown()
        )
    })
}

/// The content of a regular file, of any length.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    open_regular(path)
        .and_then(|mut file| file.read_to_end(&mut content))
        .with_context(|| format!("reading {}", path.shown()))?;
    Ok(content)
}

/// The device and inode of the file that `path` leads to. `None`: they cannot be read.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Whether `path` is a link to `target`.
pub fn is_link_to(path: &Path, target: &Path) -> Result<bool> {
    Ok(kind(path)? == Kind::Link && fs::read_link(path)? == target)
}

pub fn link(path: &Path, target: &Path) -> Result<()> {
    Ok(fs::os::unix::fs::symlink(target, path)?)
}

/// Replaces a file by a new one. When this returns, the whole file is on the disk.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    remove(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    // Sets the mode regardless of the caller's umask.
    file.set_permissions(PermissionsExt::from_mode(mode))?;
    Ok(file.sync_all()?)
}

/// Makes `name` a hard link to the file or symbolic link `of`. Replaces a file that has this name.
pub fn second_name(of: &Path, name: &Path) -> Result<()> {
    remove(name)?;
    Ok(fs::hard_link(of, name)?)
}

/// Renames in one step, durably. Replaces a file that has the name `to`.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)?;
    // If both names are hard links to one file, rename(2) does nothing.
    remove(from)?;
    sync_parent(to)
}

/// Makes the changes of names in the parent directory of `path` durable.
pub fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => Ok(File::open(parent)?.sync_all()?),
        None => Ok(()),
    }
}

/// Removes a file or a link, if it exists. First checks whether it does: on a read-only filesystem, unlink(2) fails
/// even if the file is missing.
pub fn remove(path: &Path) -> Result<()> {
    if exists(path)? {
        fs::remove_file(path)?;
    }
    Ok(())
}

pub fn remove_dir(path: &Path) -> Result<()> {
    if exists(path)? {
        fs::remove_dir(path)?;
    }
    Ok(())
}

/// Makes a directory and its missing parents, readable for all.
pub fn make_dirs(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o755).create(path);
    made.with_context(|| format!("making {}", path.shown()))
}

pub fn list(dir: &Path) -> Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name());
    }
    names.sort_unstable();
    Ok(names)
}
