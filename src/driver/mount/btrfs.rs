//! Finds the disks of each btrfs in the table of mounts.
//!
//! A btrfs has a device number of its own, so its row names a disk only by a path. The kernel keeps that path until udev
//! tells it another one: after an lvrename without udevd, the path may lead to another volume, which has the name now.
//! So the kernel's list of the disks of each btrfs decides.

use std::path::Path;

use super::row::Row;
use crate::host::{DeviceNumber, Kernel};

/// A btrfs that the kernel has mounted.
struct Btrfs {
    uuid: String,
    disks: Vec<DeviceNumber>,
}

/// Sets the disks of each row of a btrfs. `is_own`: these are mounts of this mount namespace, so that a filesystem can be
/// asked which one it is.
pub fn find_disks(kernel: &Kernel, rows: &mut [Row], is_own: bool) {
    let all = rows.iter_mut().filter(|row| row.fs_type == "btrfs");
    let all: Vec<&mut Row> = all.collect();
    if all.is_empty() {
        return;
    }
    let mounted = mounted(kernel);
    let disk_of = |row: &Row| kernel.device_number(&row.source).ok().flatten();
    let named: Vec<_> = all.iter().map(|row| (row.device, disk_of(row))).collect();
    for (row, (device, disk)) in all.into_iter().zip(&named) {
        let found = disk.and_then(|disk| mounted.iter().find(|one| one.disks.contains(&disk)));
        let is_of_several = disk.is_some()
            && named
                .iter()
                .any(|(other, its)| its == disk && other != device);
        let asked = if is_own && (found.is_none() || is_of_several) {
            let id = kernel.filesystem_id(&row.mount_point, row.id).ok();
            mounted.iter().find(|one| id.is_some() && one.id() == id)
        } else {
            None
        };
        let first = disk.filter(|disk| {
            let its = asked.or(found).map(|one| &one.disks);
            // If there is no such list, the path decides.
            its.map_or(mounted.is_empty(), |its| its.contains(disk))
        });
        let others = asked.or(found).into_iter().flat_map(|one| &one.disks);
        let others = others.filter(|one| Some(**one) != first);
        row.disks = first.into_iter().chain(others.copied()).collect();
    }
}

impl Btrfs {
    /// The first 32 bits of `f_fsid` (statfs(2)). C libraries differ in the other bits, and in these no subvolume does.
    /// Source: Linux' fs/btrfs/super.c, `btrfs_statfs`.
    fn id(&self) -> Option<u64> {
        id_of(&self.uuid)
    }
}

fn id_of(uuid: &str) -> Option<u64> {
    let uuid = u128::from_str_radix(&uuid.replace('-', ""), 16).ok()?;
    let part = |shift: u32| u64::try_from(uuid >> shift & u128::from(u32::MAX)).ok();
    Some(part(96)? ^ part(32)?)
}

/// Each mounted btrfs. Source: Linux' fs/btrfs/sysfs.c, `/sys/fs/btrfs/<UUID>/devices`.
fn mounted(kernel: &Kernel) -> Vec<Btrfs> {
    let all = Path::new("/sys/fs/btrfs");
    let names = kernel.list(all).unwrap_or_default().into_iter();
    let each = names.map(|uuid| {
        let devices = all.join(&uuid).join("devices");
        let names = kernel.list(&devices).unwrap_or_default().into_iter();
        let texts = names.filter_map(|name| kernel.read(&devices.join(name).join("dev")).ok());
        let disks = texts.filter_map(|text| text.parse().ok()).collect();
        Btrfs { uuid, disks }
    });
    each.filter(|one| !one.disks.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_made_of_the_first_and_the_third_part_of_the_uuid() {
        let id = id_of("00000001-ffff-ffff-0000-0010ffffffff");
        assert_eq!(id, Some(0x11));
        assert_eq!(id_of("features"), None);
    }
}
