//! A sign that a volume held data, though it looks blank.

use std::fmt;

use crate::fs::{Backup, ZEROED};
use crate::names::Filesystem;

/// A sign that a volume held data, though no filesystem is found on it now. An operator may overrule it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// A tag says that this filesystem was here.
    Recorded(Filesystem<String>),
    /// A mark of content that blkid knows, though blkid has not named that content.
    Mark(String),
    Backup(Backup),
    /// A byte that is not zero, at this offset: in the part that lvcreate zeroes, or in a volume too small for blkid's
    /// checks.
    Data(u64),
}

impl Doubt {
    /// The names of these doubts, for the tag `flexvolume.mayformat`, which permits mkfs despite these doubts and no
    /// others. Has only characters that LVM allows in a tag: lvm(8), "TAGS".
    pub fn names(doubts: &[Self]) -> String {
        let names = doubts.iter().map(|doubt| match doubt {
            Self::Recorded(Filesystem { fs, uuid }) => format!("record-{fs}-{uuid}"),
            Self::Mark(what) => format!("mark-{what}"),
            Self::Backup(backup) => format!("backup-{}-{}", backup.uuid, backup.offset),
            Self::Data(at) => format!("data-{at}"),
        });
        let names: Vec<String> = names.collect();
        let fits = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        names
            .join("+")
            .replace(|c| !fits(c), "-")
            .chars()
            .take(900)
            .collect()
    }

    /// Whether a killed mke2fs could have left this, and nobody has mounted the filesystem since. If there are signs of
    /// a mount, no tag makes the answer yes, since vgcfgrestore(8) can bring back old tags.
    pub fn may_be_unfinished(&self) -> bool {
        match self {
            Self::Backup(backup) => backup.is_unused,
            Self::Recorded(..) | Self::Mark(_) | Self::Data(_) => false,
        }
    }

    /// Whether a removed volume could have left this on a volume created in its place.
    pub fn may_be_remains(&self) -> bool {
        match self {
            Self::Recorded(..) => false,
            Self::Mark(_) | Self::Backup(_) => true,
            Self::Data(at) => *at >= ZEROED,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded(filesystem) => write!(f, "the record of {filesystem}"),
            Self::Mark(what) => f.write_str(what),
            Self::Backup(backup) => backup.fmt(f),
            Self::Data(at) => write!(f, "data at byte {at}"),
        }
    }
}
