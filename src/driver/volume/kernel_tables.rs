//! Finds devices of this host in the kernel's tables. Starts no process.

use std::path::Path;

use crate::crypt;
use crate::host::{DeviceNumber, Kernel};
use crate::lvm::Mapped;
use crate::names::{LvId, Shown};
use crate::volume::device::Device;

/// The device with this number, if it is an active logical volume, or the device inside an encrypted one. `None`: it is
/// neither.
pub fn volume_of(kernel: &Kernel, number: DeviceNumber) -> Option<Device> {
    let name = Mapped::of(number).name(kernel)?;
    let Some(id) = LvId::from_dm_name(&name) else {
        let (uuid, below) = crypt::volume_below(kernel, &name, number)?;
        let volume = volume_of(kernel, below).filter(|volume| volume.lv_uuid == uuid)?;
        return volume
            .inside(kernel)
            .filter(|inside| inside.number == number);
    };
    Device::find(kernel, &id)
        .ok()
        .flatten()
        .filter(|device| device.number == number)
}

/// The devices inside all encrypted volumes that are open.
pub fn all_inside(kernel: &Kernel) -> Vec<Device> {
    let numbers = crypt::all_open(kernel).into_iter();
    numbers
        .filter_map(|number| volume_of(kernel, number))
        .collect()
}

/// Whether the kernel has the volume's device. True also if /dev has no node for the device.
pub fn is_in_kernel(kernel: &Kernel, id: &LvId) -> bool {
    let name = id.dm_name();
    let all = Mapped::all(kernel);
    all.iter()
        .any(|device| device.name(kernel).as_ref() == Some(&name))
}

/// The devices that the host swaps on.
pub fn swaps(kernel: &Kernel) -> Vec<DeviceNumber> {
    // Columns: Filename Type Size Used Priority, below a line of titles; see proc(5).
    let swaps = kernel.read(Path::new("/proc/swaps")).unwrap_or_default();
    let paths = swaps.lines().skip(1);
    paths
        .filter_map(|line| line.split_whitespace().next())
        .filter_map(|path| kernel.device_number(Path::new(path)).ok()?)
        .collect()
}

/// The name of a block device: for a device-mapper device, the name that `dmsetup` shows; for any other, the kernel's
/// name.
pub fn name_of(kernel: &Kernel, block: &str) -> String {
    let name = Mapped::called(block).name(kernel);
    name.map_or_else(|| block.to_owned(), |name| name.shown().to_string())
}
