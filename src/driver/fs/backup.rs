//! A backup superblock of an ext whose beginning is gone.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ext::ext_backup;
use crate::names::{Shown, date};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub offset: u64,
    pub uuid: String,
    pub block_size: u64,
    /// When the backup was written, in seconds since the epoch.
    pub written: u64,
}

impl Backup {
    /// The backup in `bytes`, which lie at `offset` of the device.
    pub(super) fn of(bytes: &[u8], offset: u64) -> Option<Self> {
        let found = ext_backup(bytes, offset)?;
        Some(Self {
            offset,
            uuid: found.uuid,
            block_size: found.block_size,
            written: found.newest_time?,
        })
    }

    /// The commands that show the rest of the filesystem on `device`, and repair it. The repair destroys data that was
    /// written after the backup. If the first superblock is there, [`REPAIR_FIRST`] keeps that data.
    pub fn repair(&self, device: &Path) -> String {
        let size = self.block_size;
        let block = self.offset.checked_div(size).unwrap_or(0);
        let by = format!("-b {block} -B {size} {}", device.shown());
        format!(
            "`e2fsck -n {by}` shows what is left, and `e2fsck {by}` repairs it if no other data was written since"
        )
    }
}

/// The command that repairs an ext whose first superblock has a wrong checksum. A killed e2fsck leaves that, since e2fsck
/// writes the fields of the superblock one after another, and the checksum last. e2fsck alone would take a backup. So it
/// does if debugfs cannot open the ext, since debugfs exits with 0 even then. e2fsck believes all other fields: a copy of
/// the volume comes first.
pub const REPAIR_FIRST: &str =
    "debugfs -n -w -R 'set_super_value state 0' DEVICE && e2fsck -f DEVICE";

impl fmt::Display for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, uuid, .. } = self;
        write!(f, "an ext backup superblock at byte {offset} (UUID {uuid}")?;
        write!(f, ", written {})", date(self.written))
    }
}
