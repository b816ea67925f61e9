//! Whether the kernel has mounted the filesystem that was decided on: tools and kernel read it after the
//! driver did.

use std::path::Path;

use super::source::{Source, by_hand};
use super::table::Row;
use crate::host::{Kernel, own_name};
use crate::names::FsType;

const BTRFS: &str = "/sys/fs/btrfs";

/// The fault of the mount `row`, if it is not of this source. Nothing is read from the device.
pub fn difference(kernel: &Kernel, source: &Source, row: &Row) -> Option<&'static str> {
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
        // The kernel tells nobody its UUID without an ioctl. There is one superblock to mount it by.
        FsType::Xfs => None,
        FsType::Btrfs => (!is_btrfs(kernel, source)).then_some(ANOTHER),
    }
}

/// The first 32 bits of `f_fsid` (statfs(2)) of an ext with this UUID: both halves of the UUID, combined. C
/// libraries differ in the other bits. `None`: the ext has no UUID, and e2fsck may give it one. Source: Linux'
/// fs/ext4/super.c, `ext4_statfs`, since 2.6.19.
fn ext_id(uuid: &str) -> Option<u64> {
    let uuid = u128::from_str_radix(&uuid.replace('-', ""), 16).ok()?;
    let bytes = uuid.to_be_bytes();
    let (first, second) = bytes.split_at(8);
    let beginning = |half: &[u8]| half.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    Some(u64::from(beginning(first)? ^ beginning(second)?))
}

/// Linux 6.7 and newer give a copy that is mounted beside its original an ID for that time, and keep its
/// UUID beside it. Source: Linux' fs/btrfs/sysfs.c.
fn is_btrfs(kernel: &Kernel, source: &Source) -> bool {
    let disk = format!("dm-{}", source.number.minor);
    let all = Path::new(BTRFS);
    let want = &source.filesystem.uuid;
    let names = kernel.list(all).unwrap_or_default();
    names.iter().any(|name| {
        let dir = all.join(name);
        let uuid = || kernel.read(&dir.join("metadata_uuid"));
        kernel.exists(&dir.join("devices").join(&disk))
            && (name == want || uuid().is_ok_and(|uuid| uuid.trim_end() == want))
    })
}

/// Why the kernel does not mount a btrfs that has a copy: it knows a filesystem by its UUID alone, and takes the second
/// one for the first. It does so even if the first was unmounted, and is newer.
pub fn twin(source: &Source) -> String {
    let Source { id, node, .. } = source;
    let own = by_hand(id, node, "btrfstune -u");
    format!(
        "a btrfs with the same UUID as that of {id} is mounted on this node, or the kernel remembers one that was \
         written to later: a snapshot or a copy. Unmount or remove the other one, or give this one a UUID of its own \
         ({own}) and run `{} adopt {id}`. What the kernel remembers goes with `btrfs device scan --forget`; where there \
         is a btrfs of several disks, `btrfs device scan` follows",
        own_name()
    )
}

#[cfg(test)]
mod tests {
    use super::ext_id;

    #[test]
    fn the_kernels_id_of_an_ext_is_made_of_its_uuid() {
        // As `stat --file-system --format=%i` of Linux 6.1 says.
        let cases = [
            ("20989258-b172-42b6-9a28-f1a2a824f700", Some(0xfa63_b0ba)),
            ("", None),
        ];
        for (uuid, want) in cases {
            assert_eq!(ext_id(uuid), want, "{uuid}");
        }
    }
}
