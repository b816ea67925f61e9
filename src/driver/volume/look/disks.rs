//! Looks at the disks that a volume's device is on, if they may not be those of its group any more.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::Look;
use crate::fs;
use crate::host::DeviceNumber;
use crate::lvm;
use crate::volume::decide::{Content, Help, May, State};
use crate::volume::subject::Subject;

impl Look<'_> {
    /// Looks for disks that the device is on, and that LVM's metadata does not have. Does so only if the device cannot
    /// be read, if LVM has printed a warning, or if LVM says that a RAID which spreads its data is not well. Does
    /// nothing if LVM calls the volume partial, since LVM itself then misses a disk.
    pub(super) fn see_astray(&mut self) {
        let (kernel, facts) = (self.subject.host.kernel, &self.facts);
        let is_unreadable = matches!(facts.top_content(), Some(Content::Unreadable { .. }));
        let (Some(volume), Some(device)) = (facts.volume(), &facts.device) else {
            return;
        };
        let state = State::of(volume);
        let spreads_data = volume.spare_disks().is_some();
        let is_unwell = spreads_data && state.may < May::Make;
        if state.help == Help::Disk || !is_unreadable && !volume.warned && !is_unwell {
            return;
        }
        let mapped = device.mapped();
        let images = is_unreadable || volume.is_raid0() || spreads_data;
        let known = self.numbers_of_disks();
        let mut astray = match known {
            Some(known) if !known.is_empty() => lvm::astray(kernel, &known, &mapped, images),
            _ => return,
        };
        // If the volume was activated on one path of a multipath device, the path is as good as that device. So only a
        // dead disk counts.
        if !is_unreadable {
            astray.retain(|disk| self.is_dead(disk));
        }
        self.facts.astray = astray;
    }

    /// Looks for a device that stands in for a disk which was away when the volume was activated.
    pub(super) fn see_stand_in(&mut self) {
        let (kernel, device) = (self.subject.host.kernel, self.facts.device.as_ref());
        self.facts.stand_in = device.and_then(|device| device.mapped().stand_in(kernel));
    }

    /// The device numbers of the disks of the volume's group. `None`: LVM does not tell.
    fn numbers_of_disks(&self) -> Option<BTreeSet<DeviceNumber>> {
        let Subject { host, id, .. } = self.subject;
        let disks = match self.asker.known() {
            Some(known) => known.disks_of(id.vg()),
            None => lvm::disks_of(host, id.vg()).ok()?,
        };
        let numbers = disks.iter().filter_map(|disk| disk.number(host.kernel));
        Some(numbers.collect())
    }

    /// Whether this disk, by its name in /dev, is gone or cannot be read.
    fn is_dead(&self, disk: &str) -> bool {
        let host = self.subject.host;
        let path = Path::new("/dev").join(disk);
        let Ok(Some(number)) = host.kernel.device_number(&path) else {
            return true;
        };
        let Ok(file) = host.kernel.open_device(&path, number, false) else {
            return true;
        };
        fs::superblock_of(host, (&Arc::new(file), &path)).is_err()
    }
}
