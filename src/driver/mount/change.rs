//! Mounts filesystems, checks which one the kernel has mounted, unmounts them.

use super::advice::{busy, has_unknown_features, too_many_mounts, twin, unwritable, without_data};
use super::alone;
use super::source::Source;
use super::table::{Row, Table, mounted_at};
use crate::failed_step::FailedStep;
use crate::host::{Command, Host, Kernel, KernelLog, Lock, ToolError};
use crate::names::{FsType, Shown};
use anyhow::{Context, Error, Result, anyhow, bail};
use nix::libc::{EBUSY, EINVAL, ENOENT, ENOSPC};
use nix::mount::MsFlags;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The most mounts on one directory that `ensure_unmounted` unmounts. Nobody stacks more by accident.
const MOST_STACKED: usize = 64;

/// How often the unmount of a busy mount is tried again, each time after a [`PAUSE`]. Another call that binds from the
/// mount, or a container that has just ended, may keep the mount busy for a moment.
const PATIENCE: u32 = 4;

const PAUSE: Duration = Duration::from_millis(50);

/// Mounts a device with mount(8), and compares what is mounted with `source`. If mount(8) fails or is stopped, or
/// something else is mounted, undoes the mount.
pub fn mount_device(host: &Host, source: &Source, dir: &Path, lock: &Lock) -> Result<()> {
    let Source { id, node, .. } = *source;
    let fs = source.filesystem.fs;
    let mut command = Command::writes("mount", host.limits.mount)
        .stdin(lock.file())
        .args(["-t", fs.as_str()])
        // Always one of the two: without them, mount(8) mounts a device read-only if it cannot be written.
        .args([if source.read_only {
            "--read-only"
        } else {
            "--rw"
        }]);
    if let Some(options) = source.options.joined() {
        command = command.args(["-o".to_owned(), options]);
    }
    let log = KernelLog::from_now();
    let Err(error) = host.run(&command.device(node).operand(dir)) else {
        return require_mounted(host, source, dir);
    };
    let said = log.about(&format!("dm-{}", source.number.minor), fs.as_str());
    // Counted before the undo, which may end a mount.
    let too_many = is_full(&error).then(|| too_many_mounts(host.kernel));
    let advice = too_many.flatten().or_else(|| advice(source, &error, &said));
    let mut error = Error::from(error);
    if !said.is_empty() {
        error = error.context(format!("the kernel says \"{said}\""));
    }
    let error = host.after_undo(error, || ensure_unmounted(host, dir));
    let doing = format!("mounting {id} on {} (see also `dmesg`)", dir.shown());
    let error = FailedStep::Mount.of(host, error, doing);
    Err(match advice {
        Some(advice) => error.context(advice),
        None => error,
    })
}

fn is_full(error: &ToolError) -> bool {
    error.to_string().contains("No space left on device")
}

/// Advice for a mount that failed, if its cause is known by the words of mount(8) or of the kernel.
fn advice(source: &Source, error: &ToolError, said: &str) -> Option<String> {
    let Source { id, node, .. } = *source;
    let fs = source.filesystem.fs;
    if fs == FsType::Btrfs && error.to_string().contains("File exists") {
        return Some(twin(source));
    }
    if !has_unknown_features(said) {
        return None;
    }
    let helps = without_data(fs, id, node.name != id.device());
    Some(if source.is_new {
        format!(
            "this call has made {fs} on {id} with features that this node's kernel does not know. {helps}"
        )
    } else {
        format!(
            "{id} has a filesystem with features that this node's kernel does not know: mount it on a node with a newer \
             kernel. {helps}"
        )
    })
}

/// Checks that the wanted filesystem was mounted, and writable if that is wanted. Unmounts anything else. mount(8)
/// opens the device by name, and the name may mean another device by now, or the device may hold another filesystem.
fn require_mounted(host: &Host, source: &Source, dir: &Path) -> Result<()> {
    let id = mounted_at(host.kernel, dir)?;
    let table = Table::read(host.kernel)?;
    let row = id.and_then(|id| table.by_id(id));
    let difference = match row {
        Some(row) => difference(host.kernel, source, row),
        None => Some("it was unmounted"),
    };
    let is_unwritable = !source.read_only && row.is_some_and(Row::is_filesystem_read_only);
    let error = if let Some(difference) = difference {
        FailedStep::Mount.error(format!(
            "{} is not what is mounted at {} now: {difference} meanwhile; repeat the call",
            source.id,
            dir.shown()
        ))
    } else if is_unwritable {
        FailedStep::Mount.error(unwritable(source))
    } else {
        return Ok(());
    };
    Err(host.after_undo(error, || ensure_unmounted(host, dir)))
}

/// How the mount `row` differs from the filesystem that the driver read on this source's device. `None`: no difference
/// is seen. mount(8) and the kernel read the filesystem later, and may have found another one. This function reads
/// nothing from the device.
fn difference(kernel: &Kernel, source: &Source, row: &Row) -> Option<&'static str> {
    const ANOTHER: &str = "its filesystem has become another one";
    if !row.is_of(source.number) {
        return Some("it was renamed or unmounted");
    }
    match source.filesystem.fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => {
            let id = kernel.filesystem_id(&row.mount_point, row.id);
            let is_it =
                id.is_ok_and(|id| ext_id(&source.filesystem.uuid).is_none_or(|want| want == id));
            (!is_it).then_some(ANOTHER)
        }
        // The kernel tells an xfs's UUID only by an ioctl, so it is not compared. The kernel mounts an xfs by its first
        // superblock, which the driver has read, too.
        FsType::Xfs => None,
        FsType::Btrfs => (!is_btrfs(kernel, source)).then_some(ANOTHER),
    }
}

/// The first 32 bits of `f_fsid` (statfs(2)) of an ext with this UUID: both halves of the UUID, combined by XOR. C
/// libraries differ in the other bits. `None`: the ext has no UUID, and e2fsck may give it one. Source: Linux'
/// fs/ext4/super.c, `ext4_statfs`, since 2.6.19.
fn ext_id(uuid: &str) -> Option<u64> {
    let uuid = u128::from_str_radix(&uuid.replace('-', ""), 16).ok()?;
    let bytes = uuid.to_be_bytes();
    let (first, second) = bytes.split_at(8);
    let beginning = |half: &[u8]| half.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    Some(u64::from(beginning(first)? ^ beginning(second)?))
}

/// Whether the kernel has mounted this btrfs on this device. If a copy is mounted beside its original, Linux 6.7 and
/// newer give it a temporary UUID, and show its own UUID in another file. Source: Linux' fs/btrfs/sysfs.c.
fn is_btrfs(kernel: &Kernel, source: &Source) -> bool {
    let disk = format!("dm-{}", source.number.minor);
    let all = Path::new("/sys/fs/btrfs");
    let want = &source.filesystem.uuid;
    let names = kernel.list(all).unwrap_or_default();
    names.iter().any(|name| {
        let dir = all.join(name);
        let uuid = || kernel.read(&dir.join("metadata_uuid"));
        kernel.exists(&dir.join("devices").join(&disk))
            && (name == want || uuid().is_ok_and(|uuid| uuid.trim_end() == want))
    })
}

/// Binds the mount `from` to `dir` with these [flags](super::restricting) from the beginning. Starts a process
/// only if `from` has other flags. A failure leaves no mount.
pub fn bind(host: &Host, from: &Row, dir: &Path, flags: MsFlags, lock: &Lock) -> Result<()> {
    let at = &from.mount_point;
    // A plain bind asks no disk.
    let bound = if flags == from.flags() {
        host.kernel.bind(at, from.id, dir)
    } else {
        alone::bind(host, (at, from.id), dir, flags, lock)?
    };
    let bound = bound.map_err(|error| explained(host.kernel, error));
    let doing = || format!("binding {} to {}", at.shown(), dir.shown());
    bound.map_err(|error| FailedStep::Mount.of(host, error, doing()))
}

/// The error of a bind, with an explanation if the kernel's code has several meanings.
fn explained(kernel: &Kernel, error: io::Error) -> Error {
    let is_full = error.raw_os_error() == Some(ENOSPC);
    let why = is_full.then(|| too_many_mounts(kernel)).flatten();
    let error = Error::from(error);
    match why {
        Some(why) => error.context(why),
        None => error,
    }
}

/// Replaces the mount `row` at `dir` by a new one with these [flags](super::restricting) and no others.
/// Changing the flags of the old mount would not change its copies at other places. Fails while a process has the old
/// mount open.
pub fn restrict(host: &Host, row: &Row, dir: &Path, flags: MsFlags, lock: &Lock) -> Result<()> {
    let replaced = alone::replace(host, dir, row.id, flags, lock).and_then(|replaced| {
        replaced.map_err(|e| match e.raw_os_error() {
            Some(EBUSY) => anyhow!(busy(host.kernel, dir, row.id)),
            _ => Error::from(e),
        })
    });
    let doing = || format!("setting the flags of the mount at {}", dir.shown());
    replaced.map_err(|error| FailedStep::Mount.of(host, error, doing()))
}

/// Unmounts `dir` until nothing is mounted there. Succeeds also if the directory is missing or is no mount point, since
/// kubelet calls the driver even then.
pub fn ensure_unmounted(host: &Host, dir: &Path) -> Result<()> {
    let kernel = host.kernel;
    let mut patience = PATIENCE;
    for _ in 0..MOST_STACKED {
        let Some(id) = mounted_at(kernel, dir)? else {
            return Ok(());
        };
        match alone::unmount(host, dir)? {
            Ok(()) => {}
            // Somebody else has just unmounted it.
            Err(e) if matches!(e.raw_os_error(), Some(EINVAL | ENOENT)) => {}
            Err(e) if e.raw_os_error() == Some(EBUSY) => match patience.checked_sub(1) {
                Some(left) if !kernel.pause(PAUSE) => patience = left,
                _ => return Err(FailedStep::Unmount.error(busy(kernel, dir, id))),
            },
            Err(e) => {
                let doing = format!("unmounting {}", dir.shown());
                return Err(FailedStep::Unmount.of(host, e.into(), doing));
            }
        }
    }
    Err(FailedStep::Unmount.error(format!(
        "{} still has a mount after {MOST_STACKED} were taken off; see `findmnt {}`",
        dir.shown(),
        dir.quoted()
    )))
}

/// Makes `dir` and its missing parents, as kubelet does before it calls.
pub fn make_dirs(kernel: &Kernel, dir: &Path) -> Result<()> {
    let made = kernel.make_dirs(dir);
    let is_file = matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
    // With a link, the mount would be at another place than kubelet thinks.
    if is_file || kernel.link(dir).is_ok() {
        bail!("{} is not a directory; remove it", dir.shown());
    }
    made.with_context(|| format!("making {}", dir.shown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_a_directory_is_named() {
        let top = tempfile::tempdir().unwrap();
        let kernel = Kernel::new().unwrap();
        let made = |name: &str| make_dirs(&kernel, &top.path().join(name));
        std::fs::write(top.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("/nowhere", top.path().join("link")).unwrap();
        for name in ["file", "link"] {
            let error = format!("{:#}", made(name).unwrap_err());
            assert!(error.ends_with("is not a directory; remove it"), "{error}");
        }
        assert!(made("a/b").is_ok() && made("a/b").is_ok());
    }

    #[test]
    fn the_kernels_id_of_an_ext_is_made_of_its_uuid() {
        // The IDs are from `stat --file-system --format=%i` on Linux 6.1.
        let cases = [
            ("20989258-b172-42b6-9a28-f1a2a824f700", Some(0xfa63_b0ba)),
            ("", None),
        ];
        for (uuid, want) in cases {
            assert_eq!(ext_id(uuid), want, "{uuid}");
        }
    }
}
