//! Signs of data on a volume that looks blank. An operator may overrule them.

use std::fmt;

use crate::fs::{Backup, ZEROED};
use crate::names::{Filesystem, LvId};

/// A sign that a volume held data, though no filesystem is found on it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// A tag records this filesystem.
    Recorded(Filesystem<String>),
    Mark(String),
    Backup(Backup),
    /// Data at this byte: in the part that lvcreate zeroes, or in a volume that is too small for blkid to check
    /// fully.
    Data(u64),
}

impl Doubt {
    /// Names these doubts in a permission to format, which covers only them. Fits into a tag: lvm(8), "TAGS".
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

    /// Whether a removed volume could have left this on a volume created in its place.
    pub fn may_be_remains(&self) -> bool {
        match self {
            Self::Recorded(..) => false,
            Self::Mark(_) | Self::Backup(_) => true,
            Self::Data(at) => *at >= ZEROED,
        }
    }

    /// Says why a volume with these doubts is not formatted, and what to do.
    pub fn message(id: &LvId, doubts: &[Self], me: &str) -> String {
        let Some((first, more)) = doubts.split_first() else {
            return format!("{id} is not formatted");
        };
        let more: Vec<String> = more.iter().map(ToString::to_string).collect();
        let also = if more.is_empty() {
            String::new()
        } else {
            format!(" There is also {}.", more.join(", and "))
        };
        let backup = doubts.iter().find_map(|doubt| match doubt {
            Self::Backup(backup) => Some(backup.repair(&id.device())),
            _ => None,
        });
        let restore = backup.map_or_else(
            || "Restore it".to_owned(),
            |repair| format!("Repair it (`{repair}`) or restore it"),
        );
        let what = match first {
            Self::Recorded(filesystem) => format!(
                "{id} should hold {filesystem} according to its tag, but nothing is found on it"
            ),
            Self::Mark(what) => format!(
                "{id} has {what}, but blkid does not recognise it: it is damaged, or a read failed"
            ),
            Self::Backup(_) => {
                format!("blkid finds nothing on {id}, but it has held data: there is {first}")
            }
            Self::Data(at) => format!(
                "{id} has data at byte {at} that blkid does not recognise: it may be an encrypted or a raw volume"
            ),
        };
        format!(
            "{what}. It is not formatted.{also} {restore}. If its data may be destroyed, run `{me} allow-format {id}`"
        )
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
