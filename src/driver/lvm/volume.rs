//! A logical volume, by LVM's report.

use std::num::NonZeroU64;

use super::promised::Promised;
use super::record::Record;
use super::spread::Spread;
use crate::host::DeviceNumber;
use crate::names::{Bytes, LvId, LvName, LvUuid};

/// A volume's name, with the UUID that tells it from another volume of that name.
pub type Target<'a> = (&'a LvId, &'a LvUuid);

#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // LVM reports each of them by itself
pub struct Volume {
    pub id: LvId,
    pub uuid: LvUuid,
    /// The space that LVM gave to the volume (`lv_size`). For a thick snapshot that is the store of its changes.
    pub(super) size: Bytes,
    /// The size of the origin, if this is a thick snapshot.
    pub origin_size: Option<Bytes>,
    pub record: Record,
    /// All tags (`lv_tags`), separated by commas.
    pub tags: String,
    /// The number of the volume's device. `None`: the volume is not active.
    pub number: Option<DeviceNumber>,
    /// Whether anybody may have the volume's device open: a mount, a device on top of it, a process. Source:
    /// `lv_device_open`, which can also be "unknown".
    pub open: bool,
    /// Whether the volume may be written (`lv_attr`, second letter). `None`: the volume is not active, so LVM does not
    /// say.
    pub writable: Option<bool>,
    /// Whether the volume is read-only in the kernel, though it is writable by LVM's metadata.
    pub overridden: bool,
    /// `lv_attr`, `lv_health_status` and `lv_merge_failed`, as LVM prints them. `decide` has a table of what they say.
    pub attr: String,
    pub health: String,
    pub merge_failed: String,
    /// The kind of volume (`lv_layout`): "linear", "thin,sparse", "raid,raid1", …
    pub layout: String,
    pub role: String,
    pub pool: Option<LvName>,
    /// The origin, if this is a snapshot.
    pub origin: Option<LvName>,
    /// How full the volume is, in percent. For a pool: how full its data is.
    pub data_percent: Option<f64>,
    pub metadata_percent: Option<f64>,
    pub group: GroupFacts,
    pub spread: Spread,
    /// The lock that an activation of the volume takes. `None`: nodes do not share the volume's group.
    pub lock: Option<Lease>,
    /// Whether LVM printed a warning when it listed the volume. It warns, for example, of a disk that is smaller than
    /// its metadata says, and of a volume whose table and metadata have different disks.
    pub warned: bool,
    /// What the pool has promised to its volumes. `None`: this is no pool, or LVM was not asked.
    pub promised: Option<Promised>,
}

/// What LVM's row of a volume says of the volume's group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupFacts {
    pub extent: NonZeroU64,
    /// The free space by LVM's metadata (`vg_free`), also where LVM may allocate none.
    pub free: Bytes,
    /// The free space for LVM's metadata of the group (`vg_mda_free`), on the disk with the least.
    pub metadata_free: Bytes,
    /// How many disks of the group are missing (`vg_missing_pv_count`).
    pub missing: u64,
}

/// Why a volume is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyBy {
    /// LVM's metadata says so.
    Metadata,
    /// It is the external origin of thin volumes, which LVM keeps read-only.
    Origin,
    /// It is read-only only in the kernel, and writable by LVM's metadata.
    Kernel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The UUID of the volume that the lock belongs to: for a thin volume, its pool. `None`: LVM does not report it, as
    /// for a snapshot, which has the lock of its origin.
    pub of: Option<String>,
    /// The place of the lock (`lv_lockargs`): a version, and sanlock's place in bytes. Empty: the lock is another
    /// volume's, see `of`.
    pub args: String,
}

/// A letter of `attr`, a volume's `lv_attr`: see [`Volume::letter`].
pub(super) fn letter(attr: &str, place: usize) -> &str {
    let letters = place.saturating_sub(1)..place;
    attr.get(letters).unwrap_or_default()
}

impl Volume {
    /// A letter of `lv_attr`, counted from 1 as in lvs(8). Empty: there are not so many.
    pub fn letter(&self, place: usize) -> &str {
        letter(&self.attr, place)
    }

    /// Whether the volume is raid0, which keeps no copy of any image. LVM calls raid0 with metadata just `raid`.
    pub fn is_raid0(&self) -> bool {
        self.layout.starts_with("raid") && !self.keeps_copies()
    }

    /// Whether the volume itself is a RAID that does without one of its disks: the kernel fails each read of what is
    /// lost.
    pub fn keeps_copies(&self) -> bool {
        let copied = ["raid1", "raid4", "raid5", "raid6", "raid10"];
        self.layout.split(',').any(|kind| copied.contains(&kind))
    }

    /// How many disks a RAID can do without, whichever they are. `None`: each image has all data, or the volume is no
    /// such RAID.
    pub fn spare_disks(&self) -> Option<u8> {
        self.layout.split(',').find_map(|kind| match kind {
            "raid4" | "raid5" | "raid10" => Some(1),
            "raid6" => Some(2),
            _ => None,
        })
    }

    pub fn is_active(&self) -> bool {
        self.number.is_some()
    }

    /// The name and UUID by which a command of LVM changes this volume.
    pub fn target(&self) -> Target<'_> {
        (&self.id, &self.uuid)
    }

    pub fn is_pool(&self) -> bool {
        self.layout.contains("pool")
    }

    /// Whether the volume has a cache. A writecache does not count.
    pub fn is_cached(&self) -> bool {
        self.layout == "cache"
    }

    /// Finds a volume by name in a list sorted by name (binary search: a list may have thousands).
    pub fn among<'a>(sorted: &'a [Self], id: &LvId) -> Option<&'a Self> {
        let at = sorted.binary_search_by(|volume| volume.id.cmp(id)).ok()?;
        sorted.get(at)
    }

    pub fn pool_id(&self) -> Option<LvId> {
        Some(LvId::new(self.id.vg().clone(), self.pool.clone()?))
    }

    /// Whether the volume is a thick snapshot. Unlike a thin snapshot, it has its own space, and is lost if that space
    /// becomes full.
    pub fn is_thick_snapshot(&self) -> bool {
        self.has_role("thicksnapshot")
    }

    /// The size of the volume's device, which a pod sees. For a thick snapshot that is the origin's size.
    pub fn device_size(&self) -> Bytes {
        let of_origin = self.origin_size.filter(|_| self.is_thick_snapshot());
        of_origin.unwrap_or(self.size)
    }

    /// The space that LVM gave to the volume. For a thick snapshot that is the store of its changes, and the size of
    /// its device is [`Self::device_size`].
    pub fn takes(&self) -> Bytes {
        self.size
    }

    #[cfg(test)]
    pub(crate) fn sized(&mut self, size: Bytes) {
        self.size = size;
    }

    /// What makes the volume read-only, if it is.
    pub fn read_only_by(&self) -> ReadOnlyBy {
        if self.overridden {
            ReadOnlyBy::Kernel
        } else if self.role.contains("extthinorigin") {
            ReadOnlyBy::Origin
        } else {
            ReadOnlyBy::Metadata
        }
    }

    /// Whether the volume is a snapshot whose origin still exists.
    pub fn is_snapshot(&self) -> bool {
        self.has_role("snapshot")
    }

    /// Whether `lv_role` contains this role. Source: lvm2 `lib/metadata/lv_manip.c`, `lv_layout_and_role`.
    pub(super) fn has_role(&self, role: &str) -> bool {
        self.role.split(',').any(|part| part == role)
    }

    /// Whether the volume is in a thin pool.
    fn is_thin(&self) -> bool {
        self.layout.split(',').any(|part| part == "thin") && !self.is_pool()
    }

    /// The volume of which this one is a copy: a snapshot's origin, or the external origin of a thin volume. The origin
    /// of a cached volume is a part of it, and does not count.
    pub fn copy_of(&self) -> Option<LvId> {
        let is_copy = self.is_snapshot() || self.is_thin();
        let origin = self.origin.clone().filter(|_| is_copy)?;
        Some(LvId::new(self.id.vg().clone(), origin))
    }

    /// How much of a thin volume was ever written, in percent, with two digits after the point. LVM says 0.00 only if
    /// no block was written, and counts the blocks that a snapshot shares with its origin. `None`: no block was
    /// written, or the volume is not thin. "unknown": LVM does not tell. Source: lvm2 libdm/libdm-common.c,
    /// `dm_make_percent` and `dm_percent_to_round_float`.
    pub fn own_blocks(&self) -> Option<String> {
        match self.data_percent {
            _ if !self.is_thin() => None,
            Some(0.0) => None,
            Some(percent) => Some(format!("{percent:.2}")),
            None => Some("unknown".to_owned()),
        }
    }

    /// Whether the volume is a pool that may run out of data or metadata: see [`Self::short_of`].
    pub fn runs_out_at(&self, limit: u8) -> bool {
        self.is_pool() && self.short_of(limit, Bytes::default()).next().is_some()
    }

    /// The parts of a pool ("data", "metadata") that are filled to this percentage or more, and may run out. The data
    /// cannot run out if all that the pool has promised, and `more`, fits into it.
    pub fn short_of(&self, limit: u8, more: Bytes) -> impl Iterator<Item = (&'static str, f64)> {
        let fits = self.promised.is_some_and(|Promised { all, block }| {
            let blocks = more.round_up(block);
            let whole = blocks.and_then(|blocks| all.get().checked_add(blocks.get()));
            whole.is_some_and(|whole| whole <= self.size.get())
        });
        let parts = self.filled_to(limit);
        parts.filter(move |(what, _)| *what == "metadata" || !fits)
    }

    /// The parts of a pool ("data", "metadata") that are filled to this percentage or more, each with its percentage.
    pub fn filled_to(&self, limit: u8) -> impl Iterator<Item = (&'static str, f64)> {
        let parts = [
            ("data", self.data_percent),
            ("metadata", self.metadata_percent),
        ];
        parts
            .into_iter()
            .filter_map(|(what, percent)| Some((what, percent?)))
            .filter(move |(_, percent)| *percent >= f64::from(limit))
    }
}
