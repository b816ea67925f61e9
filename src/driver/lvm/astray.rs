//! Compares the disks in the kernel's table of a volume with the disks in LVM's metadata.

use std::collections::BTreeSet;

use super::mapped::{Mapped, group_of};
use crate::host::{DeviceNumber, Kernel};

/// The disks that a device is on by the kernel's table, but that are no disks of its group by LVM: such a disk was
/// pulled out, and came back under another name. Returns their names in /dev. `known`: the numbers of the group's
/// disks. `images`: whether to look also below the images of a RAID or mirror, whose data other images have,
/// too.
pub fn astray(
    kernel: &Kernel,
    known: &BTreeSet<DeviceNumber>,
    device: &Mapped,
    images: bool,
) -> BTreeSet<String> {
    let uuid = device.uuid(kernel).unwrap_or_default();
    let Some(group) = group_of(&uuid) else {
        return BTreeSet::new();
    };
    let stack = device.stack_into(kernel, &|one| {
        is_of_group(kernel, one, group)
            && (images || !is_image(&one.name(kernel).unwrap_or_default()))
    });
    let mut astray = BTreeSet::new();
    // Any device that is not a device of the group is one of its disks, also a volume of another group.
    for disk in stack {
        if is_of_group(kernel, &disk, group) {
            continue;
        }
        // A disk that was pulled out has no number.
        let number = disk.number(kernel);
        if !number.is_some_and(|number| known.contains(&number)) {
            astray.insert(disk.in_dev());
        }
    }
    astray
}

fn is_of_group(kernel: &Kernel, device: &Mapped, group: &str) -> bool {
    let uuid = device.uuid(kernel);
    uuid.is_some_and(|uuid| uuid.starts_with(group))
}

/// Whether a device of this name is an image of RAID or of a mirror, or the metadata of one: `…_rimage_1`.
fn is_image(name: &str) -> bool {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let kinds = ["_rimage_", "_rmeta_", "_mimage_"];
    kinds.iter().any(|end| kind.ends_with(end))
}
