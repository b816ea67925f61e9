//! Decides what may be done with a volume. Pure: no file here reads a disk, a clock or the config. From
//! [`facts`] and a [`Wish`] the [`rules`] make a [`Decision`], or a [`Reason`] against it.

mod advice;
mod content;
mod decision;
mod encrypted;
mod facts;
mod listed;
mod luks;
mod message;
mod reason;
mod rules;
mod space;
#[cfg(test)]
mod tests;

pub use advice::{extend_pool, not_active, repair_pool, same_name_advice, wider, writable_again};
pub use decision::{Decision, Grow, Level, Making, Mount, Permit, Purpose, Refusal, Wish};
pub use encrypted::{require_header, require_opened};
pub use facts::{
    Content, Decrypted, Doubt, Elsewhere, Facts, FilesystemState, Fitting, Ground, Lvm, Mounted,
    Occupied, Openers, Place, Pool, Room, Sectors, ShortDisk, There, Uses,
};
pub use listed::is_known_inactive;
pub use reason::{Reason, users};
pub use rules::{decide, require_lease, require_no_writer};
pub use space::require_no_fault;
