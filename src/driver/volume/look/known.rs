//! Lists that a person's command makes once for many looks.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Result, bail};

use super::openings::Openings;
use crate::host::{DeviceNumber, Host, Kernel};
use crate::lvm::{self, Group, GroupDisk, Volume};
use crate::mount::Table;
use crate::names::{LvId, VgName};
use crate::volume::device::Device;
use crate::volume::kernel_tables::swaps;

/// The kernel's tables, read once for a look at many volumes.
pub struct Tables {
    pub mounts: Table,
    pub(super) swaps: Vec<DeviceNumber>,
    /// Read when LVM says for the first time that some volume is open.
    openings: OnceLock<Openings>,
}

impl Tables {
    pub fn read(kernel: &Kernel) -> Result<Self> {
        Ok(Self {
            mounts: Table::read(kernel)?,
            swaps: swaps(kernel),
            openings: OnceLock::new(),
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
    /// LVM's row of a volume, taken from the list. `None`: it is not in the list.
    pub(super) fn volume(&self, id: &LvId) -> Result<Option<&'a Volume>> {
        let is_its = |group: &&Group| group.name == id.vg().as_str();
        let number = self.groups.iter().filter(is_its).count();
        if number > 1 {
            bail!("{}", lvm::twins(id.vg(), number));
        }
        let group = self.groups.iter().find(is_its);
        if group.is_some_and(|group| group.exported) {
            bail!("{}", lvm::exported(id.vg()));
        }
        Ok(Volume::among(self.volumes, id))
    }

    /// The disks of the groups of this name.
    pub(super) fn disks_of(&self, vg: &VgName) -> Vec<GroupDisk> {
        let its = self.groups.iter().filter(|group| group.name == vg.as_str());
        its.flat_map(|group| group.disks.clone()).collect()
    }
}
