//! Decides what may be done with a volume. Pure: no file here reads a disk, a clock or the config. From the [`facts`]
//! about a volume and a [`Wish`], the [`rules`] make a [`Decision`]. To refuse a volume is a decision, too: it has a
//! [`Reason`].

mod advice;
mod before_activation;
mod content;
mod decision;
mod doubt;
mod encrypted;
mod facts;
mod filesystem;
mod luks;
mod message;
mod other_content;
mod permit;
mod reason;
mod repair;
mod rules;
mod space;
mod states;
#[cfg(test)]
mod tests;
mod users;
mod uses;
mod well;
mod wish;
mod words;

pub use advice::{extend_pool, not_active, same_name_advice, wider, writable_again};
pub use before_activation::row_is_enough_to_mount;
pub use decision::{Decision, Level, Making, Mount, When};
pub use doubt::Doubt;
pub use encrypted::{require_header, require_opened};
pub use facts::{
    Content, Decrypted, DiskToGrowOn, Facts, FilesystemState, Ground, Lvm, Pool, Room,
};
pub use filesystem::when_it_grows;
pub use permit::Permit;
pub use reason::{Concern, Reason, Refusal, Word};
pub use repair::{first_command, look_at_disks, repair_pool, what_helps};
pub use rules::{decide, require_lease};
pub use states::{Help, May, State};
pub use users::{User, require_no_writer, users};
pub use uses::{Elsewhere, LoopDevice, Mounted, Occupied, Openers, Place, There, Uses};
pub use well::require_well;
pub use wish::{Purpose, Wish};
