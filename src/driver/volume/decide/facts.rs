//! The facts about a volume, level by level. Each level costs more than the one before it, and is looked at
//! only when [`decide`](super::decide) asks for it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::doubt::Doubt;
use super::uses::{Openers, Uses};
use crate::crypt::{DmTable, Header};
use crate::fs::Condition;
use crate::lvm::{self, Group, GroupDisk, LeaseState, Record, Volume};
use crate::names::{Bytes, Filesystem, Foreign, FsType, LvId};
use crate::volume::device::Device;
use crate::volume::inside::Inside;

/// Facts about one volume. A level that is `None` was not looked at.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is looked at by itself
pub struct Facts {
    pub id: LvId,
    /// The volume's device, from the kernel's tables. `None`: the volume is not active here.
    pub device: Option<Device>,
    /// If the device with the volume's name is not this volume's device: the error that says why.
    pub not_its_device: Option<String>,
    pub uses: Option<Uses>,
    pub lvm: Option<Lvm>,
    /// The size of the volume's device, if it is larger than LVM's metadata says. Looked at with LVM's answer.
    pub larger_device: Option<Bytes>,
    /// The record of the volume's origin, if no filesystem is recorded for the volume itself. `None`: it has no origin,
    /// or LVM does not list the origin. Looked at with LVM's answer.
    pub origin: Option<Record>,
    /// Whether LVM's answer is from before this call activated the volume.
    pub lvm_before_activation: bool,
    /// Whether it is certain that the lvcreate of a killed call has ended. Until it ends, it may still wipe the volume.
    pub lvcreate_ended: bool,
    /// The group or pool in which to create the volume.
    pub room: Option<Room>,
    /// The state of lvmlockd's lock, for a volume in a shared group.
    pub locks: Option<LeaseState>,
    /// Everyone who has the volume's device open. Looked at if LVM says that the device is open or cannot know that, if
    /// the device cannot be opened exclusively, before a mount that was delayed, and if a command shows the users.
    pub openers: Option<Openers>,
    pub content: Option<Content>,
    /// Where the volume may grow. Looked at only for a call that grows it.
    pub ground: Option<Ground>,
    /// The content of the device inside an encrypted volume that is open.
    pub decrypted: Option<Decrypted>,
    /// Whether the volume's device is read-only in the kernel. Looked at with the content.
    pub read_only: bool,
    /// If all disks of the volume are read-only: the first of them.
    pub read_only_disk: Option<String>,
    /// A device of LVM's below the volume's device that stands in for a disk which was away at the activation, by its
    /// device-mapper name. Looked at with the content.
    pub stand_in: Option<String>,
    /// Disks that the device is on, and that are not in the volume's group. Looked at only if the device cannot be read
    /// or LVM has printed a warning, and never if LVM itself misses a disk of the volume.
    pub astray: BTreeSet<String>,
    /// The time of the look, in seconds since 1970.
    pub now: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Lvm {
    /// LVM could not be asked, or its answer could not be read.
    Silent(String),
    /// LVM knows no such volume group on this node.
    NoGroup,
    /// LVM has the volume, but hides it.
    Hidden,
    /// The group has no such volume.
    NoVolume,
    Volume {
        volume: Box<Volume>,
        /// The volume's thin pool. `None`: it is in no pool, or is only to be read.
        pool: Option<Pool>,
        /// Whether a killed LVM command left a device-mapper table that is loaded, and that the kernel does not use
        /// yet.
        unused_table: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Room {
    Group(Group),
    Pool(Pool),
}

impl Room {
    /// Whether nodes share the group that the room is in.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Group(group) => group.shared,
            Self::Pool(Pool::Seen(pool)) => pool.lock.is_some(),
            Self::Pool(Pool::Unseen(_)) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Pool {
    Seen(Box<Volume>),
    Unseen(LvId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Blank {
        /// Whether all places of signatures are zero. If they are not, blkid ran before and after the driver's own
        /// reading, and named nothing.
        zero: bool,
        /// Signs of data that the driver's own reading found.
        doubts: Vec<Doubt>,
    },
    Filesystem(FilesystemState),
    /// A LUKS2 header on the volume.
    Luks(Header),
    /// blkid names this filesystem, but its superblock is not valid, or has a wrong checksum.
    Damaged(FsType),
    Other(Foreign),
    /// Several signatures at once.
    Several,
    Unreadable {
        at: u64,
        error: String,
    },
    /// Somebody has claimed the device, perhaps one of [`Facts::openers`]. The filesystem is the one that blkid names.
    Claimed(Option<Filesystem>),
    Failed(String),
}

/// The content of the device inside an open encrypted volume, and the kernel's table of that device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decrypted {
    pub content: Content,
    pub table: DmTable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is looked at by itself
pub struct FilesystemState {
    pub filesystem: Filesystem,
    pub covers: Bytes,
    pub device: Bytes,
    /// Whether the superblock says that mkfs did not finish. An ext superblock cannot say so.
    pub half: bool,
    pub block: Bytes,
    /// The largest blocks with which this kernel mounts a filesystem of this type.
    pub largest_block: Bytes,
    pub condition: Condition,
    /// Whether a part of the filesystem is on another device.
    pub is_part: bool,
    /// Whether the kernel refuses to grow the filesystem while it is mounted.
    pub only_unmounted: bool,
}

/// Where a volume may grow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ground {
    /// The size of the volume's own device. `None`: the kernel does not tell.
    pub device: Option<Bytes>,
    /// The size of the logical sectors of the volume's own device.
    pub sector: Bytes,
    /// The disks of the volume's group. Empty: LVM was not asked for them, since no device of the node has larger
    /// sectors than the volume's device, and LVM has printed no warning.
    pub disks: Vec<DiskToGrowOn>,
    /// The first disk of the volume that is smaller than LVM's metadata says.
    pub short: Option<GroupDisk>,
    /// The size of the volume above which its filesystem cannot use the space. `None`: there is no such size, or it was
    /// not looked at.
    pub largest: Option<Bytes>,
}

/// A disk of a group, onto which a volume may grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskToGrowOn {
    pub disk: GroupDisk,
    /// The size of the disk's logical sectors. `None`: the disk has no device.
    pub sector: Option<Bytes>,
}

/// The disks of a group that a volume may grow onto: see [`Ground::fitting`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fitting {
    /// If a disk has larger sectors than the volume's device: the size of the device's sectors.
    pub sector: Option<Bytes>,
    pub disks: Vec<PathBuf>,
    /// The free space on these disks.
    pub free: Bytes,
    /// The free space of the whole group, also on disks with larger sectors.
    pub of_group: Bytes,
    /// The first disk of the group that is smaller than LVM's metadata says.
    pub short: Option<GroupDisk>,
}

impl Ground {
    /// The disks that the volume may grow onto: those that are as large as LVM's metadata says, and whose sectors are
    /// not larger than those of the volume's device. A filesystem may be unable to use larger ones. `None`: all disks
    /// of the group.
    pub fn fitting(&self) -> Option<Fitting> {
        let disk = |one: &DiskToGrowOn| one.disk.clone();
        let all: Vec<GroupDisk> = self.disks.iter().map(disk).collect();
        let fits = |one: &&DiskToGrowOn| one.sector.is_some_and(|sector| sector <= self.sector);
        let mut disks: Vec<GroupDisk> = self.disks.iter().filter(fits).map(disk).collect();
        let is_mixed = disks.len() < all.len();
        let short = all.iter().find(|disk| disk.is_short()).cloned();
        disks.retain(|disk| disk.usable().get() > 0);
        (is_mixed || short.is_some()).then(|| Fitting {
            sector: is_mixed.then_some(self.sector),
            free: lvm::usable(&disks),
            of_group: lvm::usable(&all),
            disks: disks.into_iter().map(|disk| disk.path).collect(),
            short,
        })
    }
}

impl Facts {
    pub fn of(id: &LvId, now: u64) -> Self {
        Self {
            id: id.clone(),
            device: None,
            not_its_device: None,
            uses: None,
            lvm: None,
            larger_device: None,
            lvm_before_activation: false,
            lvcreate_ended: false,
            room: None,
            locks: None,
            openers: None,
            content: None,
            ground: None,
            decrypted: None,
            origin: None,
            read_only: false,
            read_only_disk: None,
            stand_in: None,
            astray: BTreeSet::new(),
            now,
        }
    }

    pub fn volume(&self) -> Option<&Volume> {
        match &self.lvm {
            Some(Lvm::Volume { volume, .. }) => Some(volume),
            _ => None,
        }
    }

    /// LVM's row of the volume; an error if LVM was not asked.
    pub fn require_volume(&self) -> Result<&Volume> {
        self.volume()
            .with_context(|| format!("LVM was not asked for {}", self.id))
    }

    /// The volume's own device; an error if the volume is not active.
    pub fn require_device(&self) -> Result<&Device> {
        let device = self.device.as_ref();
        device.with_context(|| format!("{} has no device", self.id))
    }

    /// The only disks on which the volume may be created. Empty: any disk.
    pub fn disks_to_create_on(&self) -> Vec<PathBuf> {
        match &self.room {
            Some(Room::Group(group)) => lvm::allowed(&group.disks),
            // A thin volume takes nothing from the group.
            Some(Room::Pool(_)) | None => Vec::new(),
        }
    }

    /// The device inside, if an encrypted volume is open.
    pub fn inside(&self) -> Option<&Inside> {
        self.uses.as_ref()?.inside.as_ref()
    }

    /// The device that is mounted or can be mounted. If an encrypted volume is open: the device inside.
    pub fn top(&self) -> Option<&Device> {
        let inside = self.inside().map(|inside| &inside.device);
        inside.or(self.device.as_ref())
    }

    /// The content of [`Self::top`].
    pub fn top_content(&self) -> Option<&Content> {
        let decrypted = self.decrypted.as_ref();
        let inside = decrypted.map(|decrypted| &decrypted.content);
        inside.or(self.content.as_ref())
    }

    /// Whether the volume's tags record a filesystem.
    pub fn is_recorded(&self) -> bool {
        self.volume()
            .is_some_and(|volume| volume.record.made.is_some())
    }

    /// Whether the volume is mounted for writing in the driver's mount namespace.
    pub fn is_written_here(&self) -> bool {
        let mounts = self.uses.iter().flat_map(|uses| &uses.mounts);
        mounts
            .into_iter()
            .any(|mounted| !mounted.row.is_read_only())
    }

    /// Whether the volume is mounted in the driver's mount namespace.
    pub fn is_mounted_here(&self) -> bool {
        let uses = self.uses.as_ref();
        uses.is_some_and(|uses| !uses.mounts.is_empty())
    }
}
