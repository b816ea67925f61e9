//! Device-mapper's devices in the kernel's /sys.

use std::path::{Path, PathBuf};

use crate::host::{DeviceNumber, Kernel};
use crate::names::Shown;

/// The most layers of devices that are looked at. Even LVM on RAID on a cache on LUKS on multipath has fewer.
pub const DEEPEST: usize = 16;

/// The directory of a device in /sys.
pub struct Mapped(pub PathBuf);

impl Mapped {
    pub fn all(kernel: &Kernel) -> Vec<Self> {
        let all = Path::new("/sys/block");
        let mut names = kernel.list(all).unwrap_or_default();
        names.retain(|name| name.starts_with("dm-"));
        names.iter().map(|name| Self(all.join(name))).collect()
    }

    /// The device's name. `None`: it is not device-mapper's, or is gone.
    pub fn name(&self, kernel: &Kernel) -> Option<String> {
        let name = kernel.read(&self.0.join("dm/name")).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// The device's UUID, whose beginning tells which program made the device. `None`: as for [`Self::name`].
    pub fn uuid(&self, kernel: &Kernel) -> Option<String> {
        let uuid = kernel.read(&self.0.join("dm/uuid")).ok()?;
        Some(uuid.trim_end().to_owned())
    }

    pub fn is_suspended(&self, kernel: &Kernel) -> bool {
        let suspended = kernel.read(&self.0.join("dm/suspended"));
        suspended.is_ok_and(|suspended| suspended.trim_end() == "1")
    }

    /// The directory of the device with this number.
    pub fn of(number: DeviceNumber) -> Self {
        Self(PathBuf::from(format!("/sys/dev/block/{number}")))
    }

    /// The devices below this one, the lowest first, and then this one.
    pub fn stack(self, kernel: &Kernel) -> Vec<Self> {
        self.stack_within(kernel, DEEPEST)
    }

    fn stack_within(self, kernel: &Kernel, deepest: usize) -> Vec<Self> {
        let Some(deepest) = deepest.checked_sub(1) else {
            return Vec::new();
        };
        let below = self.below(kernel);
        let below = below.flat_map(|one| one.stack_within(kernel, deepest));
        let mut stack: Vec<Self> = below.collect();
        stack.push(self);
        stack
    }

    /// The devices directly below this one.
    fn below(&self, kernel: &Kernel) -> impl Iterator<Item = Self> + use<> {
        let dir = self.0.join("slaves");
        let names = kernel.list(&dir).unwrap_or_default().into_iter();
        names.map(move |name| Self(dir.join(name)))
    }

    /// The name of a device, this one or one below it, that stands in for a part of a disk. LVM makes such a device if
    /// the disk is missing at the activation, and by `missing_stripe_filler` in lvm.conf it reads as errors or as
    /// zeroes. It stays when the disk is back. Source: lvm2 `lib/activate/dev_manager.c`, `_add_error_or_zero_device`.
    pub fn stand_in(self, kernel: &Kernel) -> Option<String> {
        let is_one = |one: &Self| {
            let uuid = one.uuid(kernel).unwrap_or_default();
            uuid.starts_with("LVM-") && uuid.contains("-missing_")
        };
        let found = self.stack(kernel).into_iter().find(is_one)?;
        Some(found.name(kernel).unwrap_or_default())
    }

    /// The name of the first suspended device: this one, or one below it. `None`: none of them is suspended.
    pub fn suspended(&self, kernel: &Kernel) -> Option<String> {
        self.suspended_within(kernel, DEEPEST)
    }

    fn suspended_within(&self, kernel: &Kernel, deepest: usize) -> Option<String> {
        if self.is_suspended(kernel) {
            return Some(self.name(kernel).unwrap_or_default());
        }
        let deepest = deepest.checked_sub(1)?;
        self.below(kernel)
            .find_map(|one| one.suspended_within(kernel, deepest))
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
