//! A volume group, and its disks.

use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::Deserialize;

use super::report::{bytes, is_set, is_shared, number};
use crate::host::{DeviceNumber, Kernel};
use crate::names::Bytes;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Group {
    #[serde(rename = "vg_name")]
    pub name: String,
    #[serde(rename = "vg_size", deserialize_with = "bytes")]
    pub size: Bytes,
    /// The space that LVM may allocate to volumes: see [`usable`](super::usable).
    #[serde(rename = "vg_free", deserialize_with = "bytes")]
    pub free: Bytes,
    /// See [`GroupFacts::metadata_free`](super::GroupFacts::metadata_free).
    #[serde(rename = "vg_mda_free", deserialize_with = "bytes")]
    pub metadata_free: Bytes,
    /// The size of the smallest area with LVM's metadata of the group. An area holds two versions of the metadata.
    #[serde(rename = "vg_mda_size", deserialize_with = "bytes")]
    pub metadata_size: Bytes,
    #[serde(rename = "vg_extent_size", deserialize_with = "number")]
    pub extent: NonZeroU64,
    #[serde(rename = "vg_missing_pv_count", deserialize_with = "number")]
    pub missing: u64,
    #[serde(rename = "vg_exported", deserialize_with = "is_set")]
    pub exported: bool,
    /// Whether nodes share the group, so that its changes need locks of lvmlockd.
    #[serde(rename = "vg_lock_type", deserialize_with = "is_shared")]
    pub shared: bool,
    #[serde(skip)]
    pub disks: Vec<GroupDisk>,
}

pub(super) const VG_FIELDS: &str = "vg_name,vg_size,vg_free,vg_mda_free,vg_mda_size,vg_extent_size,vg_missing_pv_count,vg_exported,vg_lock_type";

/// A disk of a group, as vgs(8) lists it with [`PV_FIELDS`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GroupDisk {
    #[serde(rename = "pv_name")]
    pub path: PathBuf,
    /// The free space, by LVM's metadata.
    #[serde(rename = "pv_free", deserialize_with = "bytes")]
    pub free: Bytes,
    /// The size of all extents, by LVM's metadata.
    #[serde(rename = "pv_size", deserialize_with = "bytes")]
    pub extents: Bytes,
    /// Where the extents begin.
    #[serde(rename = "pe_start", deserialize_with = "bytes")]
    pub begin: Bytes,
    /// The size of the device. 0: LVM finds no such device.
    #[serde(rename = "dev_size", deserialize_with = "bytes")]
    pub size: Bytes,
    #[serde(rename = "pv_allocatable", deserialize_with = "is_set")]
    pub allocatable: bool,
    #[serde(rename = "pv_missing", deserialize_with = "is_set")]
    pub missing: bool,
}

pub(super) const PV_FIELDS: &str =
    "pv_name,pv_free,pv_size,pe_start,dev_size,pv_allocatable,pv_missing";

impl GroupDisk {
    /// The number of the disk's device. `None`: the disk has none.
    pub fn number(&self, kernel: &Kernel) -> Option<DeviceNumber> {
        kernel.device_number(&self.path).ok()?
    }

    /// The end of the extents, by LVM's metadata.
    pub fn end(&self) -> Bytes {
        Bytes::new(self.begin.get().saturating_add(self.extents.get()))
    }

    /// Whether the disk exists, but is smaller than LVM's metadata says: somebody changed its partition, or the image
    /// below it. LVM only warns, and may allocate extents that do not exist.
    pub fn is_short(&self) -> bool {
        self.size.get() > 0 && self.size < self.end()
    }

    /// The disk's free space that LVM may allocate to volumes. 0 if the disk is smaller than LVM's metadata says, since
    /// LVM may allocate extents that do not exist: see [`Self::is_short`].
    pub fn usable(&self) -> Bytes {
        let is_usable = self.allocatable && !self.missing && self.size >= self.end();
        if is_usable {
            self.free
        } else {
            Bytes::default()
        }
    }
}
