//! What is asked for, and what is to be done: the two ends of [`decide`](super::decide).

use std::collections::BTreeMap;
use std::fmt;

use nix::mount::MsFlags;

use super::facts::Elsewhere;
use super::reason::Reason;
use crate::host::DeviceNumber;
use crate::lvm::Spread;
use crate::mount::Row;
use crate::names::{Bytes, FsType, LvId, LvName};

/// A call's request, with the node's config applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub purpose: Purpose,
    pub fs: Option<FsType>,
    /// The type that a blank volume gets if `fs` is `None`.
    pub default_fs: FsType,
    pub read_only: bool,
    /// A subvolume is named, of a btrfs.
    pub subvolume: bool,
    /// The restrictions that the node's config has for each mount of a type of filesystem.
    pub restrictions: BTreeMap<FsType, MsFlags>,
    /// The directory is not one of kubelet's: a person at a shell asks.
    pub by_hand: bool,
    /// Why the node's config gives pods nothing of this volume group.
    pub not_allowed: Option<String>,
    /// Percent of a thin pool above which nothing is written.
    pub pool_limit: u8,
    pub create: Create,
}

impl Wish {
    /// Those of the mount in `row`, or of one that is bound from there: what it has, what the node asks of
    /// each, and whether this one is read-only.
    pub fn restrictions(&self, row: &Row) -> MsFlags {
        let fs = FsType::parse(&row.fs_type).ok();
        let of_node = fs.and_then(|fs| self.restrictions.get(&fs));
        let mut flags = row.restrictions() | of_node.copied().unwrap_or(MsFlags::empty());
        flags.set(MsFlags::MS_RDONLY, self.read_only);
        flags
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The device alone.
    Device,
    Filesystem,
    /// To be at least this large, with its filesystem.
    Size(Bytes),
}

/// How a volume may be created or grown: the option `size` and the node's config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    pub allowed: bool,
    pub size: Option<Bytes>,
    pub largest: Option<Bytes>,
    /// Bytes that the config keeps free in the group.
    pub reserve: Bytes,
    /// How much of the group a volume takes.
    pub spread: Spread,
    /// The thin pool that the config names for volumes of the group.
    pub pool: Option<LvName>,
    /// The one that the volume's own options name.
    pub asked_pool: Option<LvName>,
}

impl Default for Create {
    fn default() -> Self {
        Self {
            allowed: false,
            size: None,
            largest: None,
            reserve: Bytes::default(),
            spread: Spread::LINEAR,
            pool: None,
            asked_pool: None,
        }
    }
}

impl Create {
    /// The thin pool in which it would be made, which takes nothing from the group.
    pub fn thin_pool(&self) -> Option<&LvName> {
        self.pool.as_ref().or(self.asked_pool.as_ref())
    }
}

/// Depth of a look. Each level costs more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Level {
    Uses,
    Lvm,
    /// lvmlockd, of a volume in a shared group.
    Locks,
    /// Who has its device open.
    Openers,
    Content,
    /// What it is to be made of, which another call can take: it counts under the group's lock.
    Room,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing can be said before this is looked at.
    Look(Level),
    /// Nothing is to be done: what was wanted is there.
    Ready,
    /// Extend it to this size: the one that was wanted, in whole extents.
    Extend(Bytes),
    /// Make it with this size, likewise.
    Create(Bytes),
    Activate,
    /// Resume what a killed LVM command left suspended, then look again.
    Resume,
    /// It is mounted at the directory. `flags`: what to make of that mount, which a killed call left
    /// otherwise.
    Keep {
        /// None: it is as it should be.
        flags: Option<MsFlags>,
    },
    Bind(Row),
    Mount(Mount),
    /// Make this filesystem: nothing is on the volume. `again`: what is there is the half of one
    /// that the driver's own mkfs left.
    Make {
        fs: FsType,
        again: bool,
    },
    Refuse(Reason),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub fs: FsType,
    pub uuid: String,
    pub check: bool,
    /// Whether and when it is grown to the size of its volume.
    pub grow: Grow,
    /// Whether the volume's tags have to be changed to say that it is there.
    pub record: bool,
    /// The kernel has it mounted already, in these other mount namespaces or where nobody sees it, and
    /// gives us the same filesystem.
    pub alive: Option<Vec<Elsewhere>>,
    /// Devices that a btrfs may have beside the volume's own. `None`: it is mounted already, with
    /// whatever it has.
    pub disks: Option<Vec<DeviceNumber>>,
}

impl Mount {
    /// That of a filesystem that the driver has made and recorded just now.
    pub fn of_made(fs: FsType, uuid: String) -> Self {
        Self {
            fs,
            uuid,
            check: false,
            grow: Grow::Not,
            record: false,
            alive: None,
            disks: Some(Vec::new()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grow {
    /// It fills its volume, or nothing may be written.
    Not,
    /// Before it is mounted: the kernel does not grow ext2 while it is mounted.
    Before,
    After,
}

/// A refusal as an error of the call.
#[derive(Debug)]
pub struct Refusal {
    message: String,
    pub reason: Reason,
}

impl Refusal {
    pub fn of(id: &LvId, reason: Reason) -> Self {
        Self {
            message: reason.of(id),
            reason,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
