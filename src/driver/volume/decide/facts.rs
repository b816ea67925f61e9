//! What is known of a volume, level by level. Each level costs more than the one before it, and is
//! looked at only when [`decide`](super::decide) asks for it.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::doubt::Doubt;
use crate::fs::Condition;
use crate::host::DeviceNumber;
use crate::host::holders::Opener;
use crate::lvm::{Group, Locks, Volume};
use crate::mount::Row;
use crate::names::{Bytes, Foreign, FsType, LvId, Shown};
use crate::volume::device::{Device, Failure};

/// Facts about one volume. A level that is `None` was not looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub id: LvId,
    /// Its device, from the kernel's own tables. None: it is not active here.
    pub device: Option<Device>,
    /// Why what stands in the device's place is not this volume's device.
    pub not_its_device: Option<String>,
    pub uses: Option<Uses>,
    pub lvm: Option<Lvm>,
    /// What it is to be made of.
    pub room: Option<Room>,
    /// Who has the lock of a volume in a shared group.
    pub locks: Option<Locks>,
    /// Who has its device open, if LVM says that somebody has.
    pub openers: Option<Openers>,
    pub content: Option<Content>,
    /// Whether this very call has made it with lvcreate, and the kernel has counted no write since,
    /// looked at with the content.
    pub untouched: bool,
    /// Whether the kernel lets nobody write to its device, looked at with the content.
    pub read_only: bool,
    /// First disk, if every disk below is read-only.
    pub read_only_disk: Option<String>,
    pub now: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    pub there: Option<There>,
    /// In attach mode, what the global directory of the call's volume name holds instead.
    pub name_taken: Option<Occupied>,
    /// Its mounts in the driver's mount namespace.
    pub mounts: Vec<Mounted>,
    pub swap: bool,
    /// Devices built on top of it, by kernel name.
    pub holders: Vec<String>,
    /// The device-mapper name of the device, at or below it, that is suspended.
    pub suspended: Option<String>,
    /// How its mounted filesystem failed. `None`: it is well, or nobody needs to know.
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    This(Row),
    Another(Occupied),
}

/// A directory that should hold the volume, and holds something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    pub dir: PathBuf,
    pub by: Foreign,
    /// kubelet's name of the volume, where kubelet keeps one mount for each name.
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    pub row: Row,
    /// Whether kubelet made it: it is in one of kubelet's directories.
    pub kubelets: bool,
    /// Whether it is the node's one mount for the very volume that the call names.
    pub own_global: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Openers {
    /// Those that write first.
    pub processes: Vec<Opener>,
    /// Loop devices over it, by kernel name.
    pub loops: Vec<String>,
    /// Its mounts in other mount namespaces.
    pub elsewhere: Vec<Elsewhere>,
    /// Whether the kernel has its filesystem mounted, be it where no table of mounts shows that.
    pub has_filesystem: bool,
    /// Whether the kernel has counted errors in that filesystem.
    pub has_errors: bool,
    /// How often it is open beside all these.
    pub unseen: usize,
}

impl Openers {
    pub fn is_mounted(&self) -> bool {
        self.has_filesystem || !self.elsewhere.is_empty()
    }

    pub fn is_nobody(&self) -> bool {
        !self.is_mounted() && self.processes.is_empty() && self.loops.is_empty() && self.unseen == 0
    }

    /// Whether waiting may help: nobody is seen who writes, and what is not seen, or only reads what is
    /// to be formatted, may look at it for a moment only.
    pub fn may_end(&self, is_recorded: bool) -> bool {
        let writes = self.processes.iter().any(|opener| opener.writes);
        let reads = !self.processes.is_empty() && !is_recorded;
        !writes && self.loops.is_empty() && (reads || self.unseen > 0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Lvm {
    /// It could not be asked, or its answer could not be read.
    Silent(String),
    /// It knows no such volume group here.
    NoGroup,
    /// It has the volume, and does not show it.
    Hidden,
    /// The group has no such volume.
    NoVolume,
    Volume {
        volume: Box<Volume>,
        /// Its thin pool. None: it is in none, or it is to be read only.
        pool: Option<Pool>,
        /// Whether a killed LVM command left a table that the kernel does not use yet.
        unused_table: bool,
        /// Whether a disk is missing and no redundancy makes up for it.
        lost: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Room {
    Group(Group),
    Pool(Pool),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Pool {
    Seen(Box<Volume>),
    Unseen(LvId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Blank {
        /// Every place that could hold a signature reads as zero. If not, blkid found nothing,
        /// before and after the driver's own reading.
        zero: bool,
        /// Signs of data that the driver's own reading found.
        doubts: Vec<Doubt>,
    },
    Filesystem(Filesystem),
    /// blkid names this filesystem, but its superblock is not valid.
    Damaged(FsType),
    Other(Foreign),
    /// Several signatures at once.
    Several,
    Unreadable {
        at: u64,
        error: String,
    },
    /// Something has claimed the device, perhaps one of `openers`.
    Claimed(Option<(FsType, String)>),
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    pub fs: FsType,
    pub uuid: String,
    pub covers: Bytes,
    pub device: Bytes,
    /// Whether its superblock says that its mkfs did not finish. That of an ext cannot say so.
    pub half: bool,
    pub condition: Condition,
    /// `None`: all of it is on the volume.
    pub parts: Option<Parts>,
}

/// The devices of a filesystem of which a part is elsewhere: a btrfs of several disks, or an ext with its
/// journal on another device. Kernel and tools find its parts by their UUIDs alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Other devices with the UUIDs of this one: its snapshots, its origin, copies.
    pub twins: Vec<String>,
    /// Devices of which only one can be another part of it.
    pub ambiguous: Vec<String>,
    /// The disks of btrfs on this node that no other device can be taken for.
    pub disks: Vec<DeviceNumber>,
}

/// Where a filesystem is mounted that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Here(PathBuf),
    /// In these other mount namespaces; none: no table of mounts shows where.
    Elsewhere(Vec<Elsewhere>),
}

/// A mount of the volume in another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    pub pid: u32,
    pub command: Foreign,
    pub at: PathBuf,
    /// Whether that is the host's own use: the namespace of process 1, outside kubelet's directories.
    pub hosts: bool,
}

impl Elsewhere {
    /// Several for a message, cut after the third.
    pub fn list(all: &[Self]) -> String {
        let names = all.iter().take(3).map(|other| {
            format!(
                "{} (pid {}) has it at {}",
                other.command,
                other.pid,
                other.at.shown()
            )
        });
        names.collect::<Vec<_>>().join("; ")
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
            room: None,
            locks: None,
            openers: None,
            content: None,
            untouched: false,
            read_only: false,
            read_only_disk: None,
            now,
        }
    }

    pub fn volume(&self) -> Option<&Volume> {
        match &self.lvm {
            Some(Lvm::Volume { volume, .. }) => Some(volume),
            _ => None,
        }
    }

    /// The volume's row; an error if LVM was not asked.
    pub fn require_volume(&self) -> Result<&Volume> {
        self.volume()
            .with_context(|| format!("LVM was not asked for {}", self.id))
    }

    /// Whether this mount namespace has it mounted.
    pub fn is_mounted_here(&self) -> bool {
        let uses = self.uses.as_ref();
        uses.is_some_and(|uses| !uses.mounts.is_empty())
    }

    /// Whether the driver's own lvcreate made it, and nothing was put there since.
    pub fn is_new(&self) -> bool {
        self.volume().is_some_and(|volume| volume.record.new)
    }
}
