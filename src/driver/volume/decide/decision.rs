//! What [`decide`](super::decide) answers.

use nix::mount::MsFlags;

use super::permit::Permit;
use super::reason::Reason;
use super::uses::Elsewhere;
use crate::mount::Row;
use crate::names::{Bytes, Filesystem};

/// The levels of a look, in the order in which a look reaches them. A look can be told which level is its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Level {
    Uses,
    Lvm,
    /// Whether the lvcreate that made the volume has ended. Only a call that has the group's lock can know that.
    Creation,
    /// The state of lvmlockd's lock, for a volume in a shared group.
    LeaseState,
    /// Who has the volume's device open.
    Openers,
    /// Where the volume may grow.
    Ground,
    Content,
    /// The content of the device inside an encrypted volume that is open.
    Decrypted,
    /// The free space in which to create the volume. A call looks at it under the group's lock, since another call
    /// can take the space.
    Room,
}

#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Look at this level first: the facts so far do not decide.
    Look(Level),
    /// Nothing is to be done: the wish is fulfilled, or the global mount of another name serves this pod, too.
    Ready,
    /// Extend the volume to this size: the wanted size in whole extents. If LVM's metadata has that size already, only
    /// the device is too small, and LVM is to refresh it.
    Extend(Bytes),
    /// Create the volume with this size, in whole extents.
    Create(Bytes),
    Activate,
    /// Resume the volume that a killed LVM command left suspended, then look again.
    Resume,
    /// The volume is mounted at the directory: replace that mount by one with these flags.
    Restrict {
        row: Row,
        flags: MsFlags,
    },
    Bind(Row),
    Mount(Mount),
    /// Open the encrypted volume, then look again. If it is open already with other settings, close it first.
    Open {
        /// Whether to open it read-only, because the volume cannot be written.
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
    /// Whether the call ends with this decision: nothing more is looked at or done, so no lock is needed.
    pub fn needs_no_lock(&self) -> bool {
        match self {
            // While another call makes or opens a LUKS2 header, cryptsetup may have a device of its own on the volume.
            // Under the lock there is none.
            Self::Refuse(Reason::PartOfDevice { .. })
            | Self::Look(_)
            | Self::Extend(_)
            | Self::Create(_)
            | Self::Activate
            | Self::Resume
            | Self::Restrict { .. }
            | Self::Bind(_)
            | Self::Mount(_)
            | Self::Open { .. }
            | Self::Make { .. } => false,
            Self::Ready | Self::Refuse(_) => true,
        }
    }

    pub fn refusal(&self) -> Option<&Reason> {
        if let Self::Refuse(reason) = self {
            Some(reason)
        } else {
            None
        }
    }

    /// The size to which the volume is extended. `None`: this decision extends nothing.
    pub fn extends_to(&self) -> Option<Bytes> {
        if let Self::Extend(size) = self {
            Some(*size)
        } else {
            None
        }
    }

    /// Whether the volume is mounted at the directory of the call already.
    pub fn keeps_mount(&self) -> bool {
        matches!(self, Self::Ready | Self::Restrict { .. })
    }
}

/// The result of a rule. An error is a refusal.
pub type Ruling = Result<Decision, Reason>;

/// How a filesystem is made.
#[derive(Debug, PartialEq)]
pub enum Making {
    /// On a blank volume. `again`: the volume is not blank. The driver's own mkfs was killed, and has left a filesystem
    /// half made.
    Plain { again: bool },
    /// On a blank volume: first a LUKS2 header, then the filesystem inside. `uuid`: an earlier call was killed while it
    /// made a header with this UUID, and the new header gets the UUID. `None`: the header gets a new UUID.
    InLuks { uuid: Option<String> },
    /// Inside the encrypted volume, which is open: a call was killed before it had made the filesystem.
    InOpenLuks,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub filesystem: Filesystem,
    pub check: bool,
    /// When to grow the filesystem to the size of its volume. Never, if it fills its volume, must not be written, or
    /// cannot have that size yet.
    pub grow: When,
    /// When to change the volume's tags, so that they name this filesystem. Never, if they do already, or if that must
    /// wait.
    pub record: When,
    /// `None`: the filesystem is mounted nowhere. Else, the kernel has it mounted already, and a second mount shows the
    /// same filesystem. The list has the other mount namespaces in which it is seen, and may be empty.
    pub alive: Option<Vec<Elsewhere>>,
}

impl Mount {
    /// The mount of a filesystem that the driver has just made and recorded.
    pub fn of_made(filesystem: Filesystem) -> Self {
        Self {
            filesystem,
            check: false,
            grow: When::Not,
            record: When::Not,
            alive: None,
        }
    }
}

/// When a step of a mount is done: never, before the mount, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Not,
    Before,
    After,
}
