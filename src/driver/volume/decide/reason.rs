//! Why a volume is refused.

use std::fmt;
use std::path::PathBuf;

use super::doubt::Doubt;
use super::facts::{Sectors, ShortDisk};
use super::uses::{Elsewhere, Occupied, Place};
use crate::crypt::Unlocked;
use crate::fs::Backup;
use crate::host::holders::Opener;
use crate::lvm::Holder;
use crate::names::{Bytes, Filesystem, Foreign, FsType, LvId, LvName};
use crate::volume::device::Failure;

/// The room that a volume needs in its group.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// The size that the volume is to have. It has `has`.
    pub size: Bytes,
    /// The bytes that this size takes from the group, beyond what the volume has.
    pub more: Bytes,
    pub free: Bytes,
    pub has: Bytes,
    /// If set, only disks with sectors of at most this size count for what is free.
    pub sector: Option<Bytes>,
    /// What is free does not count this disk, nor others that are too small.
    pub short: Option<ShortDisk>,
}

#[derive(Debug, Clone, PartialEq, strum::IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantNames))]
#[strum(serialize_all = "kebab-case")] // a stable word for each, for programs
pub enum Reason {
    NotAllowed(String),
    NotItsDevice(String),
    AnotherIsThere(Occupied),
    Swap,
    #[strum(serialize = "part-of-device")]
    Below {
        holders: Vec<String>,
        unlocked: Option<Unlocked>,
    },
    Loop(Vec<String>),
    /// These processes can write to it.
    Open(Vec<Opener>),
    OpenUnseen,
    /// `pods`: a pod has it, too, or may have it there.
    HostMount {
        at: PathBuf,
        pods: bool,
    },
    WrongType {
        found: String,
        wanted: FsType,
    },
    MountedReadOnly(PathBuf),
    FilesystemFailed(Place, Failure),
    LvmSilent(String),
    Unknown,
    NoGroup,
    NoVolume(Option<Bytes>),
    Hidden,
    NoSize,
    CreateReadOnly,
    /// LVM has no room for the record of what would be made.
    MetadataFull(Bytes),
    AnotherPool {
        pool: LvName,
        asked: LvName,
    },
    TooLarge {
        size: Bytes,
        largest: Bytes,
    },
    Reserve {
        more: Bytes,
        free: Bytes,
        reserve: Bytes,
    },
    NoRoom(Needed),
    /// It is to grow, and is on a disk that is smaller than LVM's metadata says.
    ShortDisk(ShortDisk),
    /// It is to be larger than its filesystem can become.
    FilesystemLimit(Bytes),
    /// It is to be larger than the volume whose thick snapshot it is.
    SnapshotSize {
        origin: String,
        size: Bytes,
    },
    Pool,
    NoLocks(String),
    HeldElsewhere(Option<Holder>),
    ActiveShared,
    ActiveWithoutLock,
    Partial,
    SnapshotFull,
    MergeWaits,
    MergeFailed,
    /// A cache before it has failed. `kind`: "cache" or "writecache".
    CacheUnwell {
        kind: &'static str,
        health: String,
    },
    AnotherDevice,
    /// The kernel gives its device more than LVM's metadata gives the volume.
    LargerDevice {
        device: Bytes,
        volume: Bytes,
    },
    Suspended(String),
    /// The volume below an open encrypted one is suspended. LVM waits for it too, since LVM reads what is inside.
    SuspendedInside(String),
    NoPool(LvId),
    PoolFull {
        pool: LvId,
        size: Bytes,
        what: &'static str,
        percent: f64,
        limit: u8,
    },
    PoolUnwell {
        pool: LvId,
        health: String,
    },
    Failed(String),
    Unreadable {
        at: u64,
        error: String,
    },
    /// It cannot be read, and the kernel's table leads to a disk that LVM has not any more.
    OldDisk {
        disk: String,
        pool: Option<LvId>,
        /// The open device of an encrypted volume.
        inside: Option<PathBuf>,
    },
    InUse(Vec<Elsewhere>),
    StillMounted,
    Several,
    Other {
        what: Foreign,
        wanted: Option<FsType>,
    },
    Damaged(FsType),
    NewNotBlank(String),
    /// It is encrypted, and the pod wants it plain.
    Encrypted,
    /// It holds a plain filesystem, and is to be encrypted.
    NotEncrypted,
    NoKey,
    /// It is not encrypted as the driver does it, or not at all.
    Cipher(Foreign),
    /// `cryptsetup reencrypt` was begun and has not ended.
    Reencryption,
    /// With a LUKS2 header no room would be left for a filesystem.
    TooSmall(Bytes),
    /// `found` is on the volume instead of the recorded LUKS2 header.
    #[strum(serialize = "luks-header")]
    Header {
        recorded: String,
        found: String,
    },
    /// It is open, and `found` is inside.
    Inside {
        recorded: String,
        found: String,
        /// With which it can be repaired.
        backup: Option<Backup>,
    },
    Swapped {
        recorded: Filesystem<String>,
        found: Filesystem,
    },
    /// `what` is on it, and needs more room than it has.
    Reduced {
        what: &'static str,
        has: Bytes,
        covers: Bytes,
    },
    /// It is on a disk with larger sectors than its filesystem was made for.
    LargerSectors(Sectors),
    /// Its blocks are larger than this kernel mounts.
    LargeBlocks {
        fs: FsType,
        block: Bytes,
        largest: Bytes,
        encrypted: bool,
    },
    /// Only a part of its filesystem is on it.
    SeveralDevices(FsType),
    /// Whether only the kernel has it read-only.
    ReadOnlyVolume {
        overridden: bool,
    },
    ReadOnlyDisk(String),
    BlankReadOnly,
    BeingRead(Vec<Opener>),
    /// The one reason that a permission to format overrules.
    #[strum(serialize = "signs-of-data")]
    Doubts(Vec<Doubt>),
}

impl Reason {
    /// Whether something is broken, whoever owns the volume.
    pub fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::NotItsDevice(_)
                | Self::AnotherDevice
                | Self::LargerDevice { .. }
                | Self::LvmSilent(_)
                | Self::Partial
                | Self::SnapshotFull
                | Self::MergeFailed
                | Self::CacheUnwell { .. }
                | Self::Suspended(_)
                | Self::SuspendedInside(_)
                | Self::NoPool(_)
                | Self::PoolUnwell { .. }
                | Self::Unreadable { .. }
                | Self::OldDisk { .. }
                | Self::Damaged(_)
                | Self::Cipher(_)
                | Self::Reencryption
                | Self::Header { .. }
                | Self::Inside { .. }
                | Self::Reduced { .. }
                | Self::LargerSectors(_)
                | Self::ShortDisk(_)
        )
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
