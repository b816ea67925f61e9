//! What may be done with a volume. Pure: no file here reads a disk, a clock or the config. From
//! [`facts`] and a [`Wish`] the [`rules`] make a [`Decision`], or a [`Reason`] against it.

mod content;
mod decision;
mod doubt;
mod facts;
mod message;
mod reason;
mod rules;
#[cfg(test)]
mod sample;
mod space;
#[cfg(test)]
mod table;

pub use decision::{Create, Decision, Grow, Level, Mount, Purpose, Refusal, Wish};
pub use doubt::Doubt;
pub use facts::{Content, Elsewhere, Facts, Filesystem, Lvm, Mounted, Openers, Pool, There, Uses};
pub use message::extend_pool;
pub use reason::Reason;
pub use rules::{decide, of_locks, of_openers};
pub use space::of_pool;
