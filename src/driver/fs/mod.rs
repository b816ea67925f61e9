//! The filesystem on a device: what is there, making one, checking, growing. What may be done is
//! decided elsewhere.

mod backups;
mod blkid;
pub mod scan;
mod signatures;
pub mod superblock;
#[cfg(test)]
mod tests;
mod tools;

/// The calls by which the driver runs itself to read a device. Not for people.
pub const EXAMINE: &str = "examine-stdin";
pub const SUPERBLOCK: &str = "superblock-stdin";

pub use blkid::{Found, Identified, all, has_several, probe, probe_filesystems};
pub use scan::{Backup, Examination, TINY, Unreadable, ZEROED, scan, superblock_of};
pub use superblock::{Beyond, Condition, Family};
pub(crate) use tools::{check, grow, mkfs};
pub use tools::{has_errors, try_mkfs};
