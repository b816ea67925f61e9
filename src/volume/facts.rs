//! What is known of a volume, level by level. Each level costs more than the one before it, and is
//! looked at only when [`decide`](super::decide::decide) asks for it.

use std::path::PathBuf;

use super::device::Device;
use crate::fs::Backup;
use crate::lvm::Volume;
use crate::mount::Row;
use crate::names::{Bytes, FsType, LvId};

/// What was seen of one volume. A level that is None was not looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Its name.
    pub id: LvId,
    /// Its device, from the kernel's own tables. None: it is not active here.
    pub device: Option<Device>,
    /// Why what stands in the device's place is not this volume's device.
    pub not_its_device: Option<String>,
    /// Who uses it on this host.
    pub uses: Option<Uses>,
    /// What LVM says of it.
    pub lvm: Option<Lvm>,
    /// What is on it.
    pub content: Option<Content>,
    /// Seconds since the epoch.
    pub now: u64,
}

/// Who uses a device on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// What is mounted at the directory of the call.
    pub there: Option<There>,
    /// In attach mode, what the global directory of the call's volume name holds instead.
    pub name_taken: Option<(PathBuf, String)>,
    /// Its mounts in the driver's mount namespace.
    pub mounts: Vec<Mounted>,
    /// Whether the host swaps on it.
    pub swap: bool,
    /// Devices built on top of it, by kernel name.
    pub holders: Vec<String>,
    /// Loop devices over it. They claim nothing, so an exclusive open does not find them.
    pub loops: Vec<String>,
    /// Whether the kernel refuses writes to it.
    pub read_only: bool,
    /// The device-mapper name of the device, at or below it, that is suspended.
    pub suspended: Option<String>,
}

/// What is mounted at the directory of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    /// This volume.
    This(Row),
    /// Something else, in words.
    Another(String),
}

/// One mount of the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// Its row of mountinfo.
    pub row: Row,
    /// Whether kubelet made it: it is in one of kubelet's directories.
    pub kubelets: bool,
    /// Whether it is the one mount that stands for all pods of the node.
    pub global: bool,
}

/// What LVM says.
#[derive(Debug, Clone, PartialEq)]
pub enum Lvm {
    /// It could not be asked, or its answer could not be read.
    Silent(String),
    /// It knows no such volume group here.
    NoGroup,
    /// The group has no such volume.
    NoVolume,
    /// Its row.
    Volume {
        /// The volume.
        volume: Box<Volume>,
        /// Its thin pool. None: it is in none, or it is to be read only.
        pool: Option<Pool>,
        /// Whether a killed LVM command left a table that the kernel does not use yet.
        unused_table: bool,
    },
}

/// The thin pool of a volume.
#[derive(Debug, Clone, PartialEq)]
pub enum Pool {
    /// Its row.
    Seen(Box<Volume>),
    /// LVM does not show it.
    Unseen(LvId),
}

/// What is on a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Every place that could hold a signature reads as zero.
    Zero {
        /// A backup superblock of ext that is as young as the volume.
        backup: Option<Backup>,
    },
    /// blkid found nothing, before and after the driver's own reading.
    Nothing {
        /// The first byte that is not zero, of those that lvcreate leaves zero.
        data_at: Option<u64>,
        /// A mark that blkid should have named.
        mark: Option<String>,
        /// As above.
        backup: Option<Backup>,
    },
    /// A filesystem that this driver mounts.
    Filesystem(Filesystem),
    /// blkid names this filesystem, but its superblock is not valid.
    Damaged(FsType),
    /// LUKS, a partition table, a RAID member, …
    Other(String),
    /// Several signatures at once.
    Several,
    /// The first place that cannot be read.
    Unreadable {
        /// In bytes from the beginning.
        at: u64,
        /// What the kernel said.
        error: String,
    },
    /// Something has claimed the device.
    Claimed {
        /// Its mounts in other mount namespaces. None: nobody can tell who has it.
        by: Vec<Elsewhere>,
        /// The filesystem on it.
        found: Option<(FsType, String)>,
    },
    /// The device could not be looked at.
    Failed(String),
}

/// A filesystem that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    /// Its type.
    pub fs: FsType,
    /// Its UUID.
    pub uuid: String,
    /// What it covers.
    pub covers: Bytes,
    /// The size of its device.
    pub device: Bytes,
    /// Whether it is what a mkfs of this driver left that did not finish.
    pub half: bool,
}

/// A mount of the volume in another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// A process there.
    pub pid: u32,
    /// Its command.
    pub command: String,
    /// Where it is mounted there.
    pub at: PathBuf,
    /// Whether that is the host's own use: the namespace of process 1, outside kubelet's directories.
    pub hosts: bool,
}

impl Facts {
    /// The facts of a volume of which nothing is known yet.
    pub fn of(id: &LvId, now: u64) -> Self {
        Self {
            id: id.clone(),
            device: None,
            not_its_device: None,
            uses: None,
            lvm: None,
            content: None,
            now,
        }
    }

    /// LVM's row, if LVM was asked and has one.
    pub fn volume(&self) -> Option<&Volume> {
        match &self.lvm {
            Some(Lvm::Volume { volume, .. }) => Some(volume),
            _ => None,
        }
    }

    /// Whether the driver's own lvcreate made it, and nothing was put there since.
    pub fn is_new(&self) -> bool {
        self.volume().is_some_and(|volume| volume.record.new)
    }
}
