//! Reads, makes, checks and grows the filesystem on a device. `volume/decide` decides what may be done.

mod backup;
mod blkid;
mod certain;
mod ext;
mod marks;
mod places;
pub mod primary;
pub mod scan;
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
/// The subcommand of the process that cleans a new volume: `clean-new <size> device=<path>`.
pub const CLEAN: &str = "clean-new";

pub use backup::{Backup, REPAIR_FIRST};
pub use blkid::{Probed, has_several, probe, probe_filesystems};
pub use marks::Mark;
pub use scan::{
    Data, Examination, Extent, Opened, Unreadable, scan, superblock_of, superblock_of_new,
};
pub(crate) use scan::{ask_child, clean};
pub use superblock::{Condition, Family, Superblock};
pub use tools::{Faults, IF_E2FSCK_IS_OLD, faults, if_e2fsck_was_killed};
pub(crate) use tools::{check, grow, mkfs};
