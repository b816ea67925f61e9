//! A logical volume, as LVM tells of it.

use std::num::NonZeroU64;

use super::record::Record;
use super::spread::Spread;
use crate::host::DeviceNumber;
use crate::names::{Bytes, LvId, LvName, LvUuid};

/// A volume by name, and by the UUID that tells it from another one of that name.
pub type Target<'a> = (&'a LvId, &'a LvUuid);

#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is told by itself
pub struct Volume {
    pub id: LvId,
    pub uuid: LvUuid,
    pub size: Bytes,
    /// The size of the volume of which it is a thick snapshot.
    pub origin_size: Option<Bytes>,
    /// When it was made (`lv_time`), in seconds since the epoch. 0: LVM does not know.
    pub created: u64,
    pub record: Record,
    /// All of its tags (`lv_tags`), with a comma between two.
    pub tags: String,
    pub active: bool,
    /// The number of its device. None: it is not active.
    pub number: Option<DeviceNumber>,
    /// Whether anybody may have its device open (`lv_device_open`, which can be "unknown"): a mount, a
    /// device on top of it, a process.
    pub open: bool,
    /// Whether it may be written (`lv_permissions`). None: LVM tells only of an active one.
    pub writable: Option<bool>,
    /// Whether only the kernel has it read-only: LVM's metadata says that it may be written.
    pub overridden: bool,
    /// `lv_health_status`: empty if it is well; "partial", "refresh needed", …; and what is not told there:
    /// `lv_snapshot_invalid`, and that a thin volume has "failed".
    pub health: String,
    /// Its kind (`lv_layout`): "linear", "thin,sparse", "raid,raid1", …
    pub layout: String,
    pub role: String,
    pub pool: Option<LvName>,
    /// The volume of which it is a snapshot.
    pub origin: Option<LvName>,
    pub merge: Option<Merge>,
    /// How full it is, in percent: of a pool, its data.
    pub data_percent: Option<f64>,
    pub metadata_percent: Option<f64>,
    pub extent: NonZeroU64,
    pub free: Bytes,
    /// Free space for LVM's metadata of the group (`vg_mda_free`), on the disk that has least.
    pub metadata_free: Bytes,
    /// How many disks its group lacks (`vg_missing_pv_count`).
    pub missing: u64,
    pub spread: Spread,
    /// The lock that an activation of the volume takes, if nodes share its group.
    pub lock: Option<Lease>,
    /// Whether LVM warned of something when it listed the volume, as it does of each disk that is smaller than its
    /// metadata says, and of a volume whose table leads to another disk than its metadata.
    pub warned: bool,
}

/// A merge of one of its snapshots into it: lvconvert(8), `--merge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// LVM merges when the volume is next activated. What is written until then is lost.
    Waits,
    Runs,
    /// The kernel has given the merge up. It begins again when the volume is next activated. The rest of the snapshot
    /// is still on the snapshot's disk.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The UUID of the volume that the lock belongs to: for a thin volume, its pool. None: LVM does not tell it. So it
    /// is with a snapshot, which has the lock of its origin.
    pub of: Option<String>,
    /// Where it is (`lv_lockargs`): a version, and sanlock's place in bytes. Empty: see `of`.
    pub args: String,
}

/// Health of a thick snapshot that had no room for the changes of its origin (`lv_snapshot_invalid`).
pub(super) const OVERFLOWED: &str = "snapshot invalid";

impl Volume {
    /// Whether it is RAID of which no image has a copy: raid0. LVM calls raid0 with metadata just `raid`.
    pub fn is_raid0(&self) -> bool {
        let copied = ["raid1", "raid4", "raid5", "raid6"];
        self.layout.starts_with("raid") && !copied.iter().any(|kind| self.layout.contains(kind))
    }

    /// The name and UUID by which a command of LVM changes this volume.
    pub fn target(&self) -> Target<'_> {
        (&self.id, &self.uuid)
    }

    pub fn has_overflowed(&self) -> bool {
        self.health == OVERFLOWED
    }

    pub fn is_pool(&self) -> bool {
        self.layout.contains("pool")
    }

    /// The kind of the cache that is before it: "cache" or "writecache". Source: lvm2 lib/metadata/lv.c,
    /// `lv_layout_and_role`.
    pub fn cache(&self) -> Option<&'static str> {
        ["cache", "writecache"]
            .into_iter()
            .find(|kind| !self.is_pool() && self.layout.split(',').any(|part| part == *kind))
    }

    /// Finds a volume by name in a list sorted by name (binary search: a list may have thousands).
    pub fn among<'a>(sorted: &'a [Self], id: &LvId) -> Option<&'a Self> {
        let at = sorted.binary_search_by(|volume| volume.id.cmp(id)).ok()?;
        sorted.get(at)
    }

    pub fn pool_id(&self) -> Option<LvId> {
        Some(LvId::new(self.id.vg().clone(), self.pool.clone()?))
    }

    /// Whether it has space of its own, unlike a thin snapshot, and is lost once that is full.
    pub fn is_thick_snapshot(&self) -> bool {
        self.has_role("thicksnapshot")
    }

    /// The size of its device. Of a thick snapshot, [`Self::size`] is that of the store of its changes.
    pub fn device_size(&self) -> Bytes {
        let of_origin = self.origin_size.filter(|_| self.is_thick_snapshot());
        of_origin.unwrap_or(self.size)
    }

    /// Whether it is a snapshot of a volume that is still there.
    pub fn is_snapshot(&self) -> bool {
        self.has_role("snapshot")
    }

    /// By `lv_role`. Source: lvm2 lib/metadata/lv.c, `lv_layout_and_role`.
    pub(super) fn has_role(&self, role: &str) -> bool {
        self.role.split(',').any(|part| part == role)
    }

    /// Whether it is a pool of which something is filled to this percentage or more.
    pub fn is_pool_filled_to(&self, limit: u8) -> bool {
        self.is_pool() && self.filled_to(limit).next().is_some()
    }

    /// The parts of a pool ("data", "metadata") that are filled to this percentage or more, and how far.
    pub fn filled_to(&self, limit: u8) -> impl Iterator<Item = (&'static str, f64)> {
        let parts = [
            ("data", self.data_percent),
            ("metadata", self.metadata_percent),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(what, percent)| Some((what, percent?)));
        parts.filter(move |(_, percent)| *percent >= f64::from(limit))
    }
}
