//! Devices in the kernel's /sys, and the devices below them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::{DeviceNumber, Kernel};
use crate::names::{Bytes, Shown};

/// The most layers of devices that are looked at. Even LVM on RAID on a cache on LUKS on multipath has fewer.
const DEEPEST: usize = 16;

/// The directory of a device in /sys.
#[derive(Debug, Clone)]
pub struct Mapped(pub PathBuf);

impl Mapped {
    /// All devices of device-mapper.
    pub fn all(kernel: &Kernel) -> Vec<Self> {
        Self::of_every_kind(kernel)
            .filter(|one| one.in_dev().starts_with("dm-"))
            .collect()
    }

    /// All block devices but partitions.
    pub fn of_every_kind(kernel: &Kernel) -> impl Iterator<Item = Self> + use<> {
        let all = Path::new("/sys/block");
        let names = kernel.list(all).unwrap_or_default().into_iter();
        names.map(|name| Self(all.join(name)))
    }

    /// An attribute of the device, without the newline at its end.
    pub fn read(&self, kernel: &Kernel, attribute: &str) -> io::Result<String> {
        let line = kernel.read(&self.0.join(attribute))?;
        Ok(line.trim_end_matches('\n').to_owned())
    }

    /// The device's name. `None`: it is not device-mapper's, or is gone.
    pub fn name(&self, kernel: &Kernel) -> Option<String> {
        self.read(kernel, "dm/name").ok()
    }

    /// The device's UUID, whose beginning tells which program made the device. `None`: as for [`Self::name`].
    pub fn uuid(&self, kernel: &Kernel) -> Option<String> {
        self.read(kernel, "dm/uuid").ok()
    }

    /// Whether this device itself is suspended: every access waits until somebody resumes it.
    pub fn is_suspended(&self, kernel: &Kernel) -> bool {
        let suspended = self.read(kernel, "dm/suspended");
        suspended.is_ok_and(|suspended| suspended == "1")
    }

    /// The directory of the device with this number.
    pub fn of(number: DeviceNumber) -> Self {
        Self(PathBuf::from(format!("/sys/dev/block/{number}")))
    }

    /// The directory of the device with this kernel name.
    pub fn called(name: &str) -> Self {
        Self(Path::new("/sys/class/block").join(name))
    }

    /// The devices below this one, the lowest first, and then this one.
    pub fn stack(&self, kernel: &Kernel) -> Vec<Self> {
        self.stack_into(kernel, &|_| true)
    }

    /// Like [`Self::stack`], without what is below a device for which `into` is false.
    pub fn stack_into(&self, kernel: &Kernel, into: &dyn Fn(&Self) -> bool) -> Vec<Self> {
        let mut stack = Vec::new();
        self.collect(kernel, DEEPEST, into, &mut stack);
        stack
    }

    fn collect(
        &self,
        kernel: &Kernel,
        deepest: usize,
        into: &dyn Fn(&Self) -> bool,
        stack: &mut Vec<Self>,
    ) {
        let Some(deepest) = deepest.checked_sub(1) else {
            return;
        };
        if into(self) {
            for below in self.below(kernel) {
                below.collect(kernel, deepest, into, stack);
            }
        }
        stack.push(self.clone());
    }

    /// The devices directly below this one.
    pub fn below(&self, kernel: &Kernel) -> impl Iterator<Item = Self> + use<> {
        let dir = self.0.join("slaves");
        let names = kernel.list(&dir).unwrap_or_default().into_iter();
        names.map(move |name| Self(dir.join(name)))
    }

    /// The disks below this device: the devices that are on no other device.
    pub fn disks(&self, kernel: &Kernel) -> Vec<Self> {
        let mut stack = self.stack(kernel);
        stack.pop();
        stack.retain(|one| one.below(kernel).next().is_none());
        stack
    }

    /// The device's name in /dev by its kernel name: `cciss!c0d0` is /dev/cciss/c0d0. A disk that was pulled out has
    /// this name, too. Source: Linux' `block/genhd.c`.
    pub fn in_dev(&self) -> String {
        let name = self.0.file_name().and_then(OsStr::to_str);
        name.unwrap_or_default().replace('!', "/")
    }

    /// The number of the device. `None`: it is gone.
    pub fn number(&self, kernel: &Kernel) -> Option<DeviceNumber> {
        self.read(kernel, "dev").ok()?.parse().ok()
    }

    /// Whether the device is read-only in the kernel.
    pub fn is_read_only(&self, kernel: &Kernel) -> bool {
        self.read(kernel, "ro").is_ok_and(|ro| ro != "0")
    }

    /// The size of the device's logical sectors, in bytes. A partition has the sectors of its disk.
    pub fn sector(&self, kernel: &Kernel) -> Bytes {
        /// Source: Linux' `include/linux/blk_types.h`, `SECTOR_SIZE`.
        const SMALLEST: Bytes = Bytes::new(512);
        self.sector_by(kernel, "queue")
            .or_else(|| self.sector_by(kernel, "../queue"))
            .unwrap_or(SMALLEST)
    }

    fn sector_by(&self, kernel: &Kernel, queue: &str) -> Option<Bytes> {
        let size = self.read(kernel, &format!("{queue}/logical_block_size"));
        size.ok()?.parse().ok().map(Bytes::new)
    }

    /// The name of a device, this one or one below it, that stands in for a part of a disk. LVM makes such a device if
    /// the disk is missing at the activation, and by `missing_stripe_filler` in lvm.conf it reads as errors or as
    /// zeroes. It stays when the disk is back. Source: lvm2 `lib/activate/dev_manager.c`, `_add_error_or_zero_device`.
    pub fn stand_in(&self, kernel: &Kernel) -> Option<String> {
        let mut stack = self.stack(kernel).into_iter();
        let found = stack.find(|one| one.is_stand_in(kernel))?;
        Some(found.name(kernel).unwrap_or_default())
    }

    fn is_stand_in(&self, kernel: &Kernel) -> bool {
        let uuid = self.uuid(kernel).unwrap_or_default();
        uuid.starts_with("LVM-") && uuid.contains("-missing_")
    }

    /// The name of the first suspended device: this one, or else one below it. `None`: none of them is suspended.
    pub fn suspended(&self, kernel: &Kernel) -> Option<String> {
        let mut stack = self.stack(kernel).into_iter().rev();
        let found = stack.find(|one| one.is_suspended(kernel))?;
        Some(found.name(kernel).unwrap_or_default())
    }
}

/// How the UUIDs of all devices of a group begin: `LVM-` and the group's UUID. `None`: this UUID is not LVM's. Source:
/// lvm2 `lib/activate/dev_manager.c`, `build_dm_uuid`.
pub fn group_of(uuid: &str) -> Option<&str> {
    const LENGTH: usize = 4 + 32;
    let of_lvm = uuid.starts_with("LVM-").then(|| uuid.get(..LENGTH));
    of_lvm.flatten()
}

/// The command that resumes a device of this name with its present table. The command drops a second table: a killed
/// LVM command may have loaded one, with extents that the volume does not have by LVM's metadata. The command does not
/// wait for udev, since the LVM command may have failed because of udev.
pub fn with_its_table(name: &str) -> String {
    let name = name.quoted();
    format!(
        "dmsetup clear {name} && dmsetup {} {name}",
        RESUME.join(" ")
    )
}

/// Arguments with which dmsetup resumes a device without waiting for udev. A resume changes nothing that udev needs to
/// know.
pub const RESUME: [&str; 2] = ["resume", "--noudevsync"];

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::super::astray::astray;
    use super::*;

    const GROUP: &str = "LVM-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const OUTER: &str = "LVM-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    /// A device: its path, its number, its device-mapper UUID and name.
    type Device<'a> = (&'a str, &'a str, &'a str, &'a str);

    /// A name; the devices below the volume dm-1; its disks in /dev; the numbers that LVM knows; the disks that are
    /// astray; of these, the ones that are found if nothing below images counts.
    type Row<'a> = (
        &'a str,
        &'a [Device<'a>],
        &'a [&'a str],
        &'a [&'a str],
        &'a [&'a str],
        &'a [&'a str],
    );

    /// Makes the directories of these devices. A device's path shows the devices on top of it: `dm-1/sda` is the disk
    /// sda below dm-1.
    fn devices(top: &Path, devices: &[Device]) -> Mapped {
        let place = |path: &str| top.join(path.replace('/', "/slaves/"));
        for (path, number, uuid, name) in devices {
            let dir = place(path);
            create_dir_all(dir.join("slaves")).unwrap();
            write(dir.join("dev"), format!("{number}\n")).unwrap();
            if !uuid.is_empty() {
                create_dir_all(dir.join("dm")).unwrap();
                write(dir.join("dm/uuid"), format!("{uuid}\n")).unwrap();
                write(dir.join("dm/name"), format!("{name}\n")).unwrap();
                write(dir.join("dm/suspended"), "0\n").unwrap();
            }
        }
        Mapped(place(devices[0].0))
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn the_disks_of_a_volume_are_found_below_other_groups_and_images() {
        let (group, outer) = (&format!("{GROUP}volume"), &format!("{OUTER}volume"));
        let cases: [Row; 7] = [
            ("on a disk", &[("dm-1/sda", "8:0", "", "")], &["sda"], &["8:0"], &[], &[]),
            ("on a disk that came back", &[("dm-1/sda", "8:0", "", "")], &["sda"], &["8:16"], &["sda"], &["sda"]),
            ("on a disk of another name in /dev", &[("dm-1/cciss!c0d0", "8:0", "", "")], &["cciss/c0d0"], &["8:16"], &["cciss/c0d0"], &["cciss/c0d0"]),
            ("on a volume of another group", &[("dm-1/dm-0", "253:0", outer, "outer"), ("dm-1/dm-0/sda", "8:0", "", "")], &["sda"], &["253:0"], &[], &[]),
            ("on a volume of another group that came back", &[("dm-1/dm-0", "253:0", outer, "outer"), ("dm-1/dm-0/sda", "8:0", "", "")], &["sda"], &["253:7"], &["dm-0"], &["dm-0"]),
            ("on multipath", &[("dm-1/dm-0", "253:0", "mpath-x", "mpatha"), ("dm-1/dm-0/sda", "8:0", "", ""), ("dm-1/dm-0/sdb", "8:16", "", "")], &["sda", "sdb"], &["253:0"], &[], &[]),
            ("on images", &[("dm-1/dm-0", "253:0", group, "vg-lv_rimage_0"), ("dm-1/dm-0/sda", "8:0", "", ""), ("dm-1/dm-2", "253:2", group, "vg-lv_rimage_1"), ("dm-1/dm-2/sdb", "8:16", "", "")], &["sda", "sdb"], &["8:0"], &["sdb"], &[]),
        ];
        let kernel = Kernel::new().unwrap();
        for (name, below, disks, known, want, without_images) in cases {
            let top = tempfile::tempdir().unwrap();
            let all = [&[("dm-1", "253:1", &**group, "vg-lv")], below].concat();
            let volume = devices(top.path(), &all);
            let mut found: Vec<String> = volume.disks(&kernel).iter().map(Mapped::in_dev).collect();
            found.sort();
            assert_eq!(found, disks, "{name}");
            let known = known.iter().map(|number| number.parse().unwrap());
            let known = known.collect();
            for (images, want) in [(true, want), (false, without_images)] {
                let found = Vec::from_iter(astray(&kernel, &known, &volume, images));
                assert_eq!(found, want, "{name}, {images}");
            }
        }
    }

    #[test]
    fn the_highest_suspended_device_is_named() {
        let kernel = Kernel::new().unwrap();
        let top = tempfile::tempdir().unwrap();
        let volume = devices(
            top.path(),
            &[
                ("dm-2", "253:2", GROUP, "volume"),
                ("dm-2/dm-1", "253:1", GROUP, "hidden"),
                ("dm-2/dm-1/dm-0", "253:0", OUTER, "outer"),
                ("dm-2/dm-1/dm-0/sda", "8:0", "", ""),
            ],
        );
        let names = |all: Vec<Mapped>| -> Vec<String> { all.iter().map(Mapped::in_dev).collect() };
        assert_eq!(
            names(volume.stack(&kernel)),
            ["sda", "dm-0", "dm-1", "dm-2"]
        );
        assert_eq!(volume.suspended(&kernel), None);
        for (place, name) in [
            ("slaves/dm-1/slaves/dm-0", "outer"),
            ("slaves/dm-1", "hidden"),
        ] {
            write(volume.0.join(place).join("dm/suspended"), "1\n").unwrap();
            assert_eq!(volume.suspended(&kernel).as_deref(), Some(name));
        }
    }
}
