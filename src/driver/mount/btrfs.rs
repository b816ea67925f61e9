//! Finds the disks of each btrfs in the table of mounts.
//!
//! A btrfs has a device number of its own, so its row names a disk only by a path. The kernel keeps that path until udev
//! tells it another one: after an lvrename without udevd, the path may lead to another volume, which has the name now.
//! So the kernel's list of the disks of each btrfs decides.

use std::path::Path;

use super::places::KubeletPath;
use super::row::Row;
use crate::host::{DeviceNumber, Kernel};

/// A btrfs that the kernel has mounted.
struct Btrfs {
    uuid: String,
    disks: Vec<DeviceNumber>,
}

/// What the table of mounts shows of a row of a btrfs.
#[derive(Clone, Copy)]
struct Seen {
    /// The filesystem's own number.
    device: DeviceNumber,
    /// The disk to which the path leads now.
    disk: Option<DeviceNumber>,
    /// Whether the filesystem can be asked which one it is.
    can_be_asked: bool,
}

/// Sets the disks of each row of a btrfs. `is_own`: these are mounts of this mount namespace.
pub fn find_disks(kernel: &Kernel, rows: &mut [Row], is_own: bool) {
    let all = rows.iter_mut().filter(|row| row.fs_type == "btrfs");
    let all: Vec<&mut Row> = all.collect();
    if all.is_empty() {
        return;
    }
    let shown = all.iter().map(|row| Seen {
        device: row.device,
        disk: kernel.device_number(&row.source).ok().flatten(),
        // The path of a mount of the host may be on a network server that hangs.
        can_be_asked: is_own && KubeletPath::of(&row.mount_point) != KubeletPath::Other,
    });
    let (shown, mounted): (Vec<Seen>, _) = (shown.collect(), mounted(kernel));
    let is_missing = is_one_missing(&shown, &mounted);
    for (row, one) in all.into_iter().zip(&shown) {
        let ask = || kernel.filesystem_id(&row.mount_point, row.id).ok();
        row.disks = disks(*one, &shown, &mounted, is_missing, ask);
    }
}

/// Whether there is a btrfs to none of whose disks a path leads. Then one of the paths should perhaps lead there.
fn is_one_missing(all: &[Seen], mounted: &[Btrfs]) -> bool {
    let mut each = mounted.iter();
    each.any(|btrfs| !all.iter().any(|row| btrfs.has(row.disk)))
}

/// The disks of one of these rows, the disk of its path first. `ask`: asks its filesystem for [`Btrfs::id`].
fn disks(
    one: Seen,
    all: &[Seen],
    mounted: &[Btrfs],
    is_one_missing: bool,
    ask: impl Fn() -> Option<u64>,
) -> Vec<DeviceNumber> {
    if mounted.is_empty() {
        return one.disk.into_iter().collect(); // The kernel has no list, so the path decides.
    }
    let found = mounted.iter().find(|btrfs| btrfs.has(one.disk));
    let is_shared = |other: &Seen| other.disk == one.disk && other.device != one.device;
    let is_certain = found.is_some() && !is_one_missing && !all.iter().any(is_shared);
    let its = if is_certain || !one.can_be_asked {
        found
    } else {
        let id = ask();
        let mut same = mounted
            .iter()
            .filter(|btrfs| id.is_some() && btrfs.id() == id);
        same.next().filter(|_| same.next().is_none())
    };
    let Some(its) = its else { return Vec::new() };
    let first = one.disk.filter(|disk| its.disks.contains(disk));
    let others = its
        .disks
        .iter()
        .copied()
        .filter(|disk| Some(*disk) != first);
    first.into_iter().chain(others).collect()
}

impl Btrfs {
    fn has(&self, disk: Option<DeviceNumber>) -> bool {
        disk.is_some_and(|disk| self.disks.contains(&disk))
    }

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

    /// What is tried, a row, all rows, the filesystem's answer, and the disks of the row.
    type Case<'a> = (&'a str, Seen, &'a [Seen], Option<u64>, &'a [&'a str]);

    /// Two filesystems: one of the disks 8:1 and 8:2, the other of the disk 8:3.
    #[test]
    #[rustfmt::skip] // a row is a line
    fn a_row_has_the_disks_of_its_filesystem_whatever_its_path_says() {
        let number = |text: &str| -> DeviceNumber { text.parse().unwrap() };
        let uuid = |part: u8| format!("000000{part:02x}-0000-0000-0000-000000000000");
        let of = |part, disks: &[&str]| Btrfs { uuid: uuid(part), disks: disks.iter().map(|one| number(one)).collect() };
        let row = |device: &str, disk: &str| Seen { device: number(device), disk: disk.parse().ok(), can_be_asked: true };
        let (a, b) = (row("0:41", "8:1"), row("0:42", "8:3"));
        let stale = row("0:41", "8:3"); // The row of the first filesystem, with the path of the other.
        let host = Seen { can_be_asked: false, ..stale };
        let cases: [Case; 9] = [
            ("by its path", a, &[a, b], None, &["8:1", "8:2"]),
            ("by its path, to the second disk", row("0:41", "8:2"), &[row("0:41", "8:2"), b], None, &["8:2", "8:1"]),
            ("two rows have the path", stale, &[stale, b], Some(1), &["8:1", "8:2"]),
            ("two rows have the path, the other one", b, &[stale, b], Some(2), &["8:3"]),
            ("the other has no row here", stale, &[stale], Some(1), &["8:1", "8:2"]),
            ("the path leads to no disk of a btrfs", row("0:41", "8:9"), &[row("0:41", "8:9"), b], Some(1), &["8:1", "8:2"]),
            ("no answer", stale, &[stale, b], None, &[]),
            ("an answer that no filesystem gives", stale, &[stale, b], Some(9), &[]),
            ("the host's", host, &[host, b], Some(1), &["8:3"]),
        ];
        let mounted = [of(1, &["8:1", "8:2"]), of(2, &["8:3"])];
        let texts = |found: Vec<DeviceNumber>| -> Vec<String> { found.iter().map(ToString::to_string).collect() };
        for (name, one, all, answer, want) in cases {
            let is_missing = is_one_missing(all, &mounted);
            assert_eq!(texts(disks(one, all, &mounted, is_missing, || answer)), want, "{name}");
        }
        let twins = [of(1, &["8:1"]), of(1, &["8:3"])];
        assert_eq!(disks(stale, &[stale, b], &twins, true, || Some(1)), []);
        assert_eq!(texts(disks(stale, &[stale], &[], false, || None)), ["8:3"], "without a list");
    }

    #[test]
    fn the_id_is_made_of_the_first_and_the_third_part_of_the_uuid() {
        let id = id_of("00000001-ffff-ffff-0000-0010ffffffff");
        assert_eq!(id, Some(0x11));
        assert_eq!(id_of("features"), None);
    }
}
