//! Why a volume is refused.

use std::fmt;
use std::path::PathBuf;

use super::doubt::Doubt;
use super::states::State;
use super::uses::{Elsewhere, Occupied, Place};
use crate::crypt::Unlocked;
use crate::host::holders::Opener;
use crate::lvm::{GroupDisk, Holder, ReadOnlyBy};
use crate::names::{Bytes, Filesystem, Foreign, FsType, LvId, LvName};
use crate::volume::mounted_filesystem::Failure;

/// The space that a volume needs in its group.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// The size that the volume is to have. `has` is its size now.
    pub size: Bytes,
    /// The bytes that this size takes from the group, beyond what the volume has.
    pub more: Bytes,
    pub free: Bytes,
    pub has: Bytes,
    /// If set, `free` counts only disks with sectors of at most this size.
    pub sector: Option<Bytes>,
    /// If set, `free` leaves out this disk and each other disk that is smaller than LVM's metadata says.
    pub short: Option<GroupDisk>,
}

/// What keeps a volume from being exactly well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// How many disks its group lacks.
    Missing(u64),
    /// What LVM says of the volume, or of its thin pool.
    Unwell(State),
}

#[derive(Debug, Clone, PartialEq, strum::EnumDiscriminants)]
#[strum_discriminants(name(Word))]
#[strum_discriminants(
    doc = "A [`Reason`] in one word. The word is stable, for programs, and the key of all that is said about the reason."
)]
#[strum_discriminants(derive(strum::EnumIter, strum::EnumString, strum::IntoStaticStr))]
#[strum_discriminants(strum(serialize_all = "kebab-case"))]
pub enum Reason {
    NotAllowed(String),
    NotItsDevice(String),
    AnotherIsThere(Occupied),
    Swap,
    PartOfDevice {
        holders: Vec<String>,
        unlocked: Option<Unlocked>,
    },
    Loop(Vec<String>),
    /// These processes have the volume open and can write to it.
    Open(Vec<Opener>),
    OpenUnseen,
    /// `pods`: whether a pod may have the volume mounted, by this mount or another.
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
    /// LVM's metadata has too little room to record the change.
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
    /// The volume is to grow, and is on a disk that is smaller than LVM's metadata says.
    ShortDisk(GroupDisk),
    /// The wanted size is larger than the filesystem can become.
    FilesystemLimit(Bytes),
    /// The volume is a thick snapshot, and the wanted size is larger than its origin.
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
    /// A filesystem is to be made or recorded, and the volume is not exactly well.
    Degraded(Flaw),
    /// A device of LVM's, by its device-mapper name, stands in for a disk that was away at the activation.
    PartlyActive {
        stand_in: String,
        pool: Option<LvId>,
    },
    SnapshotFull,
    MergeWaits,
    /// LVM says something else of the volume, or of its thin pool, that keeps pods from it.
    Unwell(State),
    AnotherDevice,
    /// The volume's device is larger than LVM's metadata says.
    LargerDevice {
        device: Bytes,
        volume: Bytes,
    },
    Suspended(String),
    /// An encrypted volume is open, and it or the device inside is suspended. LVM cannot be asked: it reads the device
    /// inside, and would wait.
    SuspendedInside(String),
    NoPool(LvId),
    PoolFull {
        pool: LvId,
        size: Bytes,
        what: &'static str,
        percent: f64,
        limit: u8,
    },
    Failed(String),
    Unreadable {
        at: u64,
        error: String,
        /// What LVM says of the volume. `None`: LVM calls it well.
        says: Option<State>,
    },
    /// The kernel's table of the device uses a disk that LVM does not know any more.
    OldDisk {
        disk: String,
        pool: Option<LvId>,
        /// The device inside, if an encrypted volume is open.
        inside: Option<PathBuf>,
    },
    InUse(Vec<Elsewhere>),
    StillMounted,
    Several,
    Other {
        what: Foreign,
        wanted: Option<FsType>,
        /// The filesystem over which `what` was written.
        recorded: Option<Filesystem<String>>,
    },
    Damaged(FsType),
    NewNotBlank(String),
    /// The volume is encrypted, and the pod wants a plain one.
    Encrypted,
    /// The volume holds a plain filesystem, and the pod wants an encrypted one.
    NotEncrypted,
    NoKey,
    /// The LUKS2 header, or the kernel's table, does not encrypt the volume as the driver does.
    Cipher(Foreign),
    /// `cryptsetup reencrypt` was begun and has not ended.
    Reencryption,
    /// A LUKS2 header would leave no room for a filesystem.
    TooSmall(Bytes),
    /// `found` is on the volume instead of the recorded LUKS2 header.
    #[strum_discriminants(strum(serialize = "luks-header"))]
    Header {
        recorded: String,
        found: String,
    },
    /// The encrypted volume is open, and `found` is inside instead of the recorded filesystem.
    Inside {
        recorded: String,
        found: String,
        /// The sign of an ext by which the ext can be repaired.
        ext: Option<Doubt>,
    },
    Swapped {
        recorded: Filesystem<String>,
        found: Filesystem,
    },
    /// `what` is on the volume, and needs more room than the volume has.
    Reduced {
        what: &'static str,
        has: Bytes,
        covers: Bytes,
    },
    /// The filesystem's blocks are larger than this kernel mounts.
    LargeBlocks {
        fs: FsType,
        block: Bytes,
        largest: Bytes,
        encrypted: bool,
    },
    /// Only a part of the filesystem is on this volume.
    SeveralDevices(FsType),
    ReadOnlyVolume(ReadOnlyBy),
    ReadOnlyDisk(String),
    BlankReadOnly,
    BeingRead(Vec<Opener>),
    /// The one reason that a permission to format overrules.
    #[strum_discriminants(strum(serialize = "signs-of-data"))]
    Doubts(Vec<Doubt>),
}

impl From<&Reason> for &'static str {
    fn from(reason: &Reason) -> Self {
        Word::from(reason).into()
    }
}

/// What a refusal concerns, for the judgement of a volume's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// The volume, or something below it, is broken: a fault even of a volume that is not the driver's.
    Broken,
    /// This host uses the volume itself. With the volume, nothing is wrong.
    Host,
    /// Another node has the volume, and this one may have it later.
    OtherNode,
    /// Anything else that keeps a pod from the volume: what it holds, what the pod asks for, or the node's config. It
    /// is no fault of a volume that is not the driver's.
    Pods,
}

impl Reason {
    pub fn concern(&self) -> Concern {
        match self {
            Self::NotItsDevice(_)
            | Self::AnotherDevice
            | Self::LargerDevice { .. }
            | Self::LvmSilent(_)
            | Self::Partial
            | Self::Degraded(_)
            | Self::PartlyActive { .. }
            | Self::SnapshotFull
            | Self::Unwell(_)
            | Self::Suspended(_)
            | Self::SuspendedInside(_)
            | Self::NoPool(_)
            | Self::Unreadable { .. }
            | Self::OldDisk { .. }
            | Self::Damaged(_)
            | Self::Cipher(_)
            | Self::Reencryption
            | Self::Header { .. }
            | Self::Inside { .. }
            | Self::Reduced { .. }
            | Self::ShortDisk(_) => Concern::Broken,
            Self::Swap
            | Self::PartOfDevice { .. }
            | Self::Loop(_)
            | Self::Open(_)
            | Self::OpenUnseen
            | Self::HostMount { .. }
            | Self::InUse(_)
            | Self::StillMounted
            | Self::BeingRead(_) => Concern::Host,
            Self::HeldElsewhere(_) => Concern::OtherNode,
            Self::NotAllowed(_)
            | Self::AnotherIsThere(_)
            | Self::WrongType { .. }
            | Self::MountedReadOnly(_)
            | Self::FilesystemFailed(..)
            | Self::Unknown
            | Self::NoGroup
            | Self::NoVolume(_)
            | Self::Hidden
            | Self::NoSize
            | Self::CreateReadOnly
            | Self::MetadataFull(_)
            | Self::AnotherPool { .. }
            | Self::TooLarge { .. }
            | Self::Reserve { .. }
            | Self::NoRoom(_)
            | Self::FilesystemLimit(_)
            | Self::SnapshotSize { .. }
            | Self::Pool
            | Self::NoLocks(_)
            | Self::ActiveShared
            | Self::ActiveWithoutLock
            | Self::MergeWaits
            | Self::PoolFull { .. }
            | Self::Failed(_)
            | Self::Several
            | Self::Other { .. }
            | Self::NewNotBlank(_)
            | Self::Encrypted
            | Self::NotEncrypted
            | Self::NoKey
            | Self::TooSmall(_)
            | Self::Swapped { .. }
            | Self::LargeBlocks { .. }
            | Self::SeveralDevices(_)
            | Self::ReadOnlyVolume(_)
            | Self::ReadOnlyDisk(_)
            | Self::BlankReadOnly
            | Self::Doubts(_) => Concern::Pods,
        }
    }
}

/// A refusal as an error of the call. The message ends with the reason's word, a heading of docs/on-call.md.
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
