//! The filesystem on a volume: what is there, making one where nothing is, checking, growing.

mod backups;
mod check;
pub mod examine;
mod grow;
mod make;
mod prepare;
mod probe;
mod signatures;
pub mod superblock;

pub use check::check;
/// The call by which the driver runs itself to read a device. Not for people.
pub const EXAMINE: &str = "examine-stdin";

pub use grow::{grow, grow_if_smaller};
pub use prepare::{Ready, Subject, prepare};
pub use probe::{Content, probe};
