//! [`Wish`], the request, and [`Decision`], the answer: the two ends of [`decide`](super::decide).

use std::collections::BTreeMap;
use std::fmt;

use nix::mount::MsFlags;

use super::facts::Elsewhere;
use super::reason::Reason;
use crate::config::VolumeGroup;
use crate::mount::Row;
use crate::names::{Bytes, Filesystem, FsType, LvId, LvName};

/// A call's request, with the node's config applied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is asked for by itself
pub struct Wish {
    pub purpose: Purpose,
    pub fs: Option<FsType>,
    /// The type that a blank volume gets if `fs` is `None`.
    pub default_fs: FsType,
    pub read_only: bool,
    /// The mount options name a subvolume of btrfs.
    pub subvolume: bool,
    /// The flags, such as `nosuid`, that the node's config or the pod asks for on each mount, by type of filesystem.
    pub restrictions: BTreeMap<FsType, MsFlags>,
    /// The directory is kubelet's global one, for all pods of a volume name.
    pub global: bool,
    /// The directory is not one of kubelet's: a person calls the driver by hand.
    pub by_hand: bool,
    /// Whether it is to be encrypted. `None`: a person asks, and what a pod wants is not known.
    pub encrypted: Option<bool>,
    /// Whether a passphrase comes with the call, or is in a file of the node.
    pub has_key: bool,
    /// Whether the disk may be told which blocks of an encrypted volume are free.
    pub allow_discards: bool,
    /// Why the node's config does not let pods use this volume group.
    pub not_allowed: Option<String>,
    /// From this fill of a thin pool on, in percent, nothing in it is mounted for writing.
    pub pool_limit: u8,
    /// The group's table in the node's config; the default if there is none. Only what concerns creation and growth is
    /// read here.
    pub group: VolumeGroup,
    /// The size of a volume that is created.
    pub size: Option<Bytes>,
    /// The thin pool that the volume's options name.
    pub asked_pool: Option<LvName>,
}

impl Wish {
    /// The flags for the mount in `row`, or for a bind from it: its own flags, those that are asked for, and
    /// read-only if the wish is.
    pub fn restrictions(&self, row: &Row) -> MsFlags {
        let fs = FsType::parse(&row.fs_type).ok();
        let asked = fs.and_then(|fs| self.restrictions.get(&fs));
        let mut flags = row.restrictions() | asked.copied().unwrap_or(MsFlags::empty());
        flags.set(MsFlags::MS_RDONLY, self.read_only);
        flags
    }

    /// The thin pool in which the volume would be created.
    pub fn thin_pool(&self) -> Option<&LvName> {
        self.group.thin_pool.as_ref().or(self.asked_pool.as_ref())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The device alone.
    Device,
    Filesystem,
    /// The volume and its filesystem, at least this large.
    Size(Bytes),
}

/// Depth of a look. Each level costs more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Level {
    Uses,
    Lvm,
    /// Whether the lvcreate that made the volume has ended, which only the group's lock tells.
    Made,
    /// lvmlockd, of a volume in a shared group.
    LeaseState,
    /// Who has its device open.
    Openers,
    /// Where it may grow.
    Ground,
    Content,
    /// What is inside an encrypted volume that is open.
    Inside,
    /// The free space to create it in. Another call can take it, so it is looked at under the group's lock.
    Room,
}

#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Look at this level first: the facts so far do not decide.
    Look(Level),
    /// Nothing is to be done: the wish is fulfilled.
    Ready,
    /// Extend the volume to this size: the wanted size in whole extents. If LVM's metadata has that size already, only
    /// the device has not.
    Extend(Bytes),
    /// Create the volume with this size, in whole extents.
    Create(Bytes),
    Activate,
    /// Resume the volume that a killed LVM command left suspended, then look again.
    Resume,
    /// The volume is mounted at the directory: set these flags on that mount.
    Restrict {
        row: Row,
        flags: MsFlags,
    },
    Bind(Row),
    Mount(Mount),
    /// Open the encrypted volume, then look again. If it is open, close it first.
    Open {
        /// The volume cannot be written.
        read_only: bool,
    },
    /// Make a filesystem, look at it and mount it.
    Make {
        permit: Permit,
        how: Making,
    },
    Refuse(Reason),
}

impl Decision {
    /// Whether nothing is to be looked at or done any more, so that the volume's lock is not needed.
    pub fn needs_no_lock(&self) -> bool {
        match self {
            Self::Ready | Self::Refuse(_) => true,
            Self::Look(_)
            | Self::Extend(_)
            | Self::Create(_)
            | Self::Activate
            | Self::Resume
            | Self::Restrict { .. }
            | Self::Bind(_)
            | Self::Mount(_)
            | Self::Open { .. }
            | Self::Make { .. } => false,
        }
    }

    /// Whether the volume is mounted at the directory of the call already.
    pub fn keeps_mount(&self) -> bool {
        match self {
            Self::Ready | Self::Restrict { .. } => true,
            Self::Look(_)
            | Self::Extend(_)
            | Self::Create(_)
            | Self::Activate
            | Self::Resume
            | Self::Bind(_)
            | Self::Mount(_)
            | Self::Open { .. }
            | Self::Make { .. }
            | Self::Refuse(_) => false,
        }
    }
}

/// What a rule says. An error is a refusal.
pub type Ruling = Result<Decision, Reason>;

/// How a filesystem is made.
#[derive(Debug, PartialEq)]
pub enum Making {
    /// On a blank volume. `again`: on one that the driver's own mkfs left half made when it was killed.
    Plain { again: bool },
    /// Inside a LUKS2 header, which is made first, on a blank volume. `uuid`: the header's UUID, if the driver was
    /// killed while it made that header.
    InLuks { uuid: Option<String> },
    /// Inside the encrypted volume, which is open: a call was killed before it had made the filesystem.
    Inside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub filesystem: Filesystem,
    pub check: bool,
    /// Whether and when to grow it to the size of its volume.
    pub grow: Grow,
    /// Whether the volume's tags must be changed to name this filesystem.
    pub record: bool,
    /// The filesystem is mounted already, in these other mount namespaces or where no mount table shows it.
    /// Mounting it again gives the same filesystem.
    pub alive: Option<Vec<Elsewhere>>,
}

impl Mount {
    /// The mount of a filesystem that the driver has just made and recorded.
    pub fn of_made(filesystem: Filesystem) -> Self {
        Self {
            filesystem,
            check: false,
            grow: Grow::Not,
            record: false,
            alive: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grow {
    /// The filesystem fills its volume, or may not be written.
    Not,
    /// Before the mount: the kernel does not grow a mounted ext2.
    Before,
    After,
}

/// The permission to make this filesystem, which runs out when it is used: mkfs and luksFormat take it. Only
/// [`decide`](super::decide) gives one:
///
/// ```compile_fail,E0451
/// driver::volume::Permit { fs: driver::names::FsType::Ext4 };
/// ```
#[derive(Debug, PartialEq)]
pub struct Permit {
    fs: FsType,
}

impl Permit {
    pub(super) fn of(fs: FsType) -> Self {
        Self { fs }
    }

    pub fn fs(&self) -> FsType {
        self.fs
    }

    /// Uses the permit up, for mkfs. Returns the filesystem to make.
    pub fn used(self) -> FsType {
        self.fs
    }
}

/// A refusal as an error of the call. At its end is the reason's word: a row of docs/on-call.md.
#[derive(Debug)]
pub struct Refusal {
    message: String,
    pub reason: Reason,
}

impl Refusal {
    pub fn of(id: &LvId, reason: Reason) -> Self {
        Self {
            message: reason.message(id),
            reason,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word: &str = (&self.reason).into();
        write!(f, "{} [{word}]", self.message)
    }
}

impl std::error::Error for Refusal {}
