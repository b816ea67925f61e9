//! Compares what the kernel has mounted with what was decided.

use std::path::Path;

use anyhow::Result;

use super::advice::unwritable;
use super::row::Row;
use super::source::Source;
use super::table::{Table, mounted_at};
use super::unmount::ensure_unmounted;
use crate::failed_step::FailedStep;
use crate::host::{Host, Kernel};
use crate::names::{FsType, Shown};

/// Checks that the wanted filesystem was mounted, and writable if that is wanted. Unmounts anything else. mount(8)
/// opens the device by name, and the name may mean another device by now, or the device may hold another filesystem.
pub(super) fn require_mounted(host: &Host, source: &Source, dir: &Path) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
