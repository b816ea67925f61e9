//! Why a volume is refused.

use std::path::PathBuf;

use super::doubt::Doubt;
use super::facts::Elsewhere;
use crate::host::holders::Opener;
use crate::lvm::Holder;
use crate::names::{Bytes, FsType, LvId, LvName};
use crate::volume::device::Failure;

#[derive(Debug, Clone, PartialEq, strum::IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantNames))]
#[strum(serialize_all = "kebab-case")] // a stable word for each, for programs
pub enum Reason {
    NotAllowed(String),
    NotItsDevice(String),
    AnotherIsThere(String),
    NameTaken(PathBuf, String),
    Swap,
    Below(Vec<String>),
    Loop(Vec<String>),
    /// These processes can write to it.
    Open(Vec<Opener>),
    OpenUnseen,
    HostMount(PathBuf),
    WrongType {
        found: String,
        wanted: FsType,
    },
    ThereReadOnly(PathBuf),
    MountedReadOnly(PathBuf),
    FilesystemFailed(PathBuf, Failure),
    LvmSilent(String),
    Unknown,
    NoGroup,
    NoVolume(Option<Bytes>),
    Hidden,
    NoSize,
    CreateReadOnly,
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
    NoRoom {
        more: Bytes,
        free: Bytes,
        has: Bytes,
    },
    Pool,
    NoLocks(String),
    HeldElsewhere(Option<Holder>),
    ActiveShared,
    ActiveWithoutLock,
    Partial,
    SnapshotFull,
    AnotherDevice,
    Suspended(String),
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
    InUse(Vec<Elsewhere>),
    StillMounted,
    Several,
    Other {
        what: String,
        wanted: Option<FsType>,
    },
    Damaged(FsType),
    NewNotBlank(String),
    Swapped {
        held: String,
        holds: String,
    },
    Reduced {
        fs: FsType,
        has: Bytes,
        covers: Bytes,
    },
    ReadOnlyVolume,
    ReadOnlyDisk(String),
    BlankReadOnly,
    BeingRead(Vec<Opener>),
    BlankReadOnlyVolume(FsType),
    /// The one that a permission to format overrules.
    Doubts(Vec<Doubt>),
}

impl Reason {
    /// Whether something is broken, whoever the volume belongs to.
    pub fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::NotItsDevice(_)
                | Self::AnotherDevice
                | Self::LvmSilent(_)
                | Self::Partial
                | Self::SnapshotFull
                | Self::Suspended(_)
                | Self::NoPool(_)
                | Self::PoolUnwell { .. }
                | Self::Unreadable { .. }
                | Self::Damaged(_)
                | Self::Reduced { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_for_who_is_on_call_has_a_row_for_each_reason() {
        let rows = include_str!("../../../docs/on-call.md").lines();
        let rows = rows.filter_map(|row| row.strip_prefix("| `")?.split_once("` | `"));
        let words: Vec<&str> = rows.map(|(word, _)| word).collect();
        assert_eq!(words, <Reason as strum::VariantNames>::VARIANTS);
    }
}
