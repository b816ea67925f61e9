//! The device inside an encrypted volume that is open, by the kernel's tables. Starts no process.

use std::path::Path;

use super::device::Device;
use crate::crypt::{self, Luks, Unlocked};
use crate::host::Kernel;
use crate::lvm::Mapped;

/// The device inside an encrypted volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    pub device: Device,
    /// Whether the device was opened read-only.
    pub read_only: bool,
}

impl Device {
    /// The device inside, if this is an encrypted volume that is open. Only a device with the driver's name for it
    /// counts: see [`Self::opened_by_anybody`] for others.
    pub fn inside(&self, kernel: &Kernel) -> Option<Self> {
        self.inside_among(kernel, &self.holders(kernel).ok()?)
    }

    /// Finds the device inside among `holders`, the devices on top of this one: the LUKS2 device with the name that the
    /// driver gives to it.
    fn inside_among(&self, kernel: &Kernel, holders: &[String]) -> Option<Self> {
        let own = Path::new("/dev/mapper").join(crypt::name_of(&self.lv_uuid));
        let mut all = holders
            .iter()
            .filter_map(|holder| self.over(kernel, holder));
        all.find(|inside| inside.path == own)
    }

    /// The device inside, whatever its name: a person may have opened the volume. `None`: no device is on top of this
    /// one, or several are, or the one on top is no LUKS2 device.
    pub fn opened_by_anybody(&self, kernel: &Kernel) -> Option<Self> {
        match &self.holders(kernel).ok()?[..] {
            [holder] => self.over(kernel, holder),
            _ => None,
        }
    }

    /// The device with the kernel name `holder`, which is on top of this one. `None`: it is no LUKS2 device.
    fn over(&self, kernel: &Kernel, holder: &str) -> Option<Self> {
        let holder = Mapped::called(holder);
        let name = holder.name(kernel)?;
        Some(Self {
            path: Path::new("/dev/mapper").join(&name),
            number: holder.number(kernel)?,
            luks: Some(crypt::luks_of(&holder.uuid(kernel)?, &name)?),
            ..self.clone()
        })
    }

    /// The first LUKS device among `holders`, the devices on top of a volume, by kernel name.
    pub fn unlocked(kernel: &Kernel, holders: &[String]) -> Option<Unlocked> {
        holders.iter().find_map(|holder| {
            let holder = Mapped::called(holder);
            let kind = Luks::of(&holder.uuid(kernel)?)?;
            let name = holder.name(kernel)?;
            Some(Unlocked { kind, name })
        })
    }

    /// The device inside, if this is an encrypted volume that is open. `holders`: the devices on top of this one, by
    /// kernel name. This function replaces the device inside in that list by the devices on top of the device inside.
    pub fn opened(&self, kernel: &Kernel, holders: &mut Vec<String>) -> Option<Inside> {
        let device = self.inside_among(kernel, holders)?;
        let name = device.kernel_name();
        holders.retain(|holder| *holder != name);
        holders.extend(device.holders(kernel).unwrap_or_default());
        Some(Inside {
            read_only: device.is_read_only(kernel),
            device,
        })
    }
}
