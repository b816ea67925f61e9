//! The system calls that ask about mounts and change them.

use super::Kernel;
use super::paths::{mount_id_of, open_path};
use nix::libc::ESTALE;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::{chroot, fchdir};
use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The space of a filesystem.
pub struct Space {
    pub bytes: u64,
    pub used: u64,
    /// What users other than root have run out of. `None`: nothing.
    pub lack: Option<Lack>,
}

/// What a mounted filesystem has run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Less than a thousandth of the bytes is free.
    Space,
    Inodes,
}

#[allow(clippy::unused_self)] // only a function with a `Kernel` can make these calls
impl Kernel {
    /// The id of the mount that `path` is on (first column of mountinfo). Does not ask the mounted filesystem, so this
    /// also works if its server is dead.
    pub fn mount_id(&self, path: &Path) -> io::Result<u64> {
        mount_id_of(&open_path(path)?)
    }

    /// Asks the filesystem of the mount with this id, which is at `path`, for its root. ESTALE: the path is on
    /// another mount now.
    pub fn ask_mount(&self, path: &Path, mount_id: u64) -> io::Result<()> {
        open_mount(path, mount_id)?.metadata().map(drop)
    }

    /// Whether the filesystem at this path is mounted `noexec`.
    pub fn is_noexec(&self, path: &Path) -> io::Result<bool> {
        let statistics = fstatvfs(&open_path(path)?)?;
        Ok(statistics.flags().contains(FsFlags::ST_NOEXEC))
    }

    /// The size of this mount's filesystem, and the used space.
    pub fn space(&self, path: &Path, mount_id: u64) -> io::Result<Space> {
        let statistics = fstatvfs(&open_mount(path, mount_id)?)?;
        let blocks = statistics.blocks();
        let used = blocks.saturating_sub(statistics.blocks_free());
        let bytes = |blocks: u64| blocks.saturating_mul(statistics.fragment_size());
        Ok(Space {
            bytes: bytes(blocks),
            used: bytes(used),
            lack: if statistics.blocks_available() <= blocks >> 10 {
                Some(Lack::Space)
            } else {
                // xfs and btrfs create inodes when they are needed.
                let has_none = statistics.files() > 0 && statistics.files_available() == 0;
                has_none.then_some(Lack::Inodes)
            },
        })
    }

    /// The first 32 bits of the filesystem's ID, which is `f_fsid` of statfs(2).
    pub fn filesystem_id(&self, path: &Path, mount_id: u64) -> io::Result<u64> {
        let statistics = fstatvfs(&open_mount(path, mount_id)?)?;
        Ok(statistics.filesystem_id() & u64::from(u32::MAX))
    }

    /// Binds the mount with this id, which is at `from`, to `to`. ESTALE: another mount is at `from`, or none.
    pub(crate) fn bind(&self, from: &Path, mount_id: u64, to: &Path) -> io::Result<()> {
        // Opens the mount first, then checks it. If mount(2) got the path, and the mount had just been unmounted, it
        // would bind the host's own directory at that path.
        let source = open_mount(from, mount_id)?;
        let source = format!("/proc/self/fd/{}", source.as_raw_fd());
        let (source, none) = (Some(source.as_str()), None::<&str>);
        Ok(mount(source, to, none, MsFlags::MS_BIND, none)?)
    }

    /// Binds the mount with this id, which is at `from`, to `to`, with these flags and no others. `MS_RDONLY` may be
    /// among them. The new mount has the flags before anybody sees it. ESTALE: another mount is at `from`.
    pub(crate) fn bind_with(
        &self,
        from: &Path,
        mount_id: u64,
        to: &Path,
        flags: MsFlags,
    ) -> io::Result<()> {
        attach(&copy_mount(from, mount_id, flags)?, to)
    }

    /// Replaces the mount with this id at `dir` by a new one with these flags and no others. Fails with EBUSY while a
    /// process has the old mount open.
    pub(crate) fn replace_mount(
        &self,
        dir: &Path,
        mount_id: u64,
        flags: MsFlags,
    ) -> io::Result<()> {
        let copy = copy_mount(dir, mount_id, flags)?;
        let clone = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let old = File::from(open_tree(open_mount(dir, mount_id)?, "", clone)?);
        self.unmount(dir)?;
        attach(&copy, dir).inspect_err(|_| {
            // If this fails, too, the first error says why.
            let _ = attach(&old, dir);
        })
    }

    pub(crate) fn unmount(&self, at: &Path) -> io::Result<()> {
        Ok(umount2(at, MntFlags::UMOUNT_NOFOLLOW)?)
    }
}

/// Copies the mount with this id, which is at `from`, and gives the copy these flags and no others. Nobody sees the
/// copy before it is [attached](attach). If the file is closed before that, the copy is gone. Source: `open_tree(2)`,
/// since Linux 5.2.
fn copy_mount(from: &Path, mount_id: u64, flags: MsFlags) -> io::Result<File> {
    let original = open_mount(from, mount_id)?.metadata()?;
    // An unattached mount can get flags only by mount_setattr(2), which Linux has since 5.12, but no crate offers
    // without `unsafe`. So the mount is attached in a copied namespace: nobody sees it there, and a kill leaves nothing
    // of it.
    let copy = in_copied_namespace(|| {
        let (none, flags) = (None::<&str>, flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND);
        mount(none, from, none, flags, none)?;
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Ok(File::from(open_tree(CWD, from, clone)?))
    })?;
    let copied = copy.metadata()?;
    if (copied.dev(), copied.ino()) != (original.dev(), original.ino()) {
        return Err(io::Error::from_raw_os_error(ESTALE));
    }
    Ok(copy)
}

/// Puts the copy of a mount at a directory.
fn attach(copy: &File, to: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(copy, "", CWD, to, flags)?)
}

/// Does `work` in a copy of this mount namespace. The copy ends with the work.
fn in_copied_namespace<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let own = File::open("/proc/self/ns/mnt")?;
    // setns(2) changes root and working directory to the namespace's root. So both are set back: the driver may run in
    // a chroot(2).
    let (root, here) = (open_path(Path::new("/"))?, open_path(Path::new("."))?);
    unshare(CloneFlags::CLONE_NEWNS)?;
    let done = work();
    setns(own, CloneFlags::CLONE_NEWNS)?;
    fchdir(root)?;
    chroot(".")?;
    fchdir(here)?;
    done
}

/// Opens the root of the mount with this id, which is at `path`. ESTALE: another mount is there.
fn open_mount(path: &Path, mount_id: u64) -> io::Result<File> {
    let root = open_path(path)?;
    if mount_id_of(&root)? != mount_id {
        return Err(io::Error::from_raw_os_error(ESTALE));
    }
    Ok(root)
}
