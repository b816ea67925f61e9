//! What an operator may overrule: signs of data that is not found any more.

use std::fmt;

use crate::fs::Backup;

/// What says that there was data on a volume on which nothing can be found now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    Held(String, String),
    Mark(String),
    Backup(Backup),
    /// Something at this byte, where lvcreate leaves zeroes.
    Data(u64),
}

impl Doubt {
    /// What a permission to format names, so that it is good for just these doubts. It fits into a
    /// tag: lvm(8), "TAGS".
    pub fn names(doubts: &[Self]) -> String {
        let names = doubts.iter().map(|doubt| match doubt {
            Self::Held(fs, uuid) => format!("record-{fs}-{uuid}"),
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
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(fs, uuid) => write!(f, "the record of {fs} {uuid}"),
            Self::Mark(what) => f.write_str(what),
            Self::Backup(backup) => backup.fmt(f),
            Self::Data(at) => write!(f, "data at byte {at}"),
        }
    }
}
