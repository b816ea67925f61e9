//! Reads, makes, checks and grows the filesystem on a device. `volume/decide` decides what may be done.

mod backup;
mod blkid;
mod ext;
mod inside;
pub mod primary;
mod remains;
pub mod scan;
mod signatures;
pub mod sole;
pub mod superblock;
#[cfg(test)]
mod tests;
mod tools;

/// Requests to the process that reads devices.
pub const EXAMINE: &str = "examine";
pub const SUPERBLOCK: &str = "superblock";
/// A word that may follow one of these requests. Then the device is flushed first, so that the disk keeps everything
/// written.
pub const FLUSH: &str = "flush";

pub use backup::Backup;
pub use blkid::{Probed, has_several, probe, probe_filesystems};
pub use remains::Remains;
pub(crate) use scan::asked;
pub use scan::{
    Examination, Extent, Opened, TINY, Unreadable, ZEROED, scan, superblock_of, superblock_of_new,
};
pub use superblock::{Condition, Family, Superblock};
pub use tools::{IF_E2FSCK_IS_OLD, has_errors};
pub(crate) use tools::{check, grow, mkfs};
