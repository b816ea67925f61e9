//! Lists of all volumes, read once, so that a look at each volume need not ask again.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::Result;

use super::device;
use super::openers::Openings;
use crate::host::{DeviceNumber, Host, Kernel};
use crate::lvm::{self, Group, Lost, Volume};
use crate::mount::Table;
use crate::names::LvId;
use crate::volume::decide::{Lvm, Pool, Wish};
use crate::volume::device::Device;
use crate::volume::subject::Subject;

/// The kernel's tables, read once for a look at many volumes.
pub struct Tables {
    pub mounts: Table,
    pub(super) swaps: Vec<DeviceNumber>,
    /// Read once LVM says that some volume is open.
    openings: OnceLock<Openings>,
    /// Whether any device is suspended.
    suspended: OnceLock<bool>,
}

impl Tables {
    pub fn read(kernel: &Kernel) -> Result<Self> {
        Ok(Self {
            mounts: Table::read(kernel)?,
            swaps: device::swaps(kernel),
            openings: OnceLock::new(),
            suspended: OnceLock::new(),
        })
    }

    pub(super) fn openings(&self, host: &Host) -> Result<&Openings> {
        if let Some(openings) = self.openings.get() {
            return Ok(openings);
        }
        let read = Openings::read(host, None)?;
        Ok(self.openings.get_or_init(|| read))
    }
}

/// Lists of all volumes, groups and devices, made once for many looks.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub volumes: &'a [Volume],
    pub groups: &'a [Group],
    /// Devices of the active volumes.
    pub devices: &'a BTreeMap<LvId, Device>,
    pub tables: &'a Tables,
}

impl<'a> Known<'a> {
    pub(super) fn device(&self, id: &LvId) -> Option<&'a Device> {
        self.devices.get(id)
    }

    /// Whether LVM says that nobody has the volume open. Then it has no holders either.
    pub(super) fn is_closed(&self, id: &LvId) -> bool {
        Volume::among(self.volumes, id).is_some_and(|volume| !volume.open)
    }

    /// Whether no device was suspended, so that no volume is built on one that is.
    pub(super) fn is_nothing_suspended(&self, kernel: &Kernel) -> bool {
        let suspended = &self.tables.suspended;
        !*suspended.get_or_init(|| device::is_any_suspended(kernel))
    }

    /// LVM's answer for one volume, taken from the list. `None`: the volume is not in the list.
    pub(super) fn of(&self, Subject { host, id, .. }: Subject, wish: &Wish) -> Option<Lvm> {
        let is_its = |group: &&Group| group.name == id.vg().as_str();
        let number = self.groups.iter().filter(is_its).count();
        if number > 1 {
            return Some(Lvm::Silent(lvm::twins(id.vg(), number)));
        }
        let volume = Volume::among(self.volumes, id)?;
        let pool = match volume.pool.as_ref().filter(|_| !wish.read_only) {
            None => None,
            Some(name) => Some(match volume.pool_among(self.volumes) {
                Some(pool) => Pool::Seen(Box::new(pool.clone())),
                None => Pool::Unseen(LvId::new(id.vg().clone(), name.clone()).ok()?),
            }),
        };
        let is_partial = volume.health.contains("partial");
        Some(Lvm::Volume {
            volume: Box::new(volume.clone()),
            pool,
            unused_table: false,
            lost: is_partial
                .then(|| lvm::lost(host, volume).unwrap_or(Some(Lost::Data)))
                .flatten(),
        })
    }
}
