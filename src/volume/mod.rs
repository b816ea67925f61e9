//! A logical volume on this host. **Look, decide, do**: [`look`] gathers facts, [`decide`] says what
//! may be done, [`carry_out`] does it. Nothing else leads to mkfs or to a mount.

mod activate;
mod carry_out;
mod content;
mod decide;
mod decision;
mod device;
mod doubt;
mod facts;
mod in_use;
pub mod lock;
mod look;
mod make;
mod message;
mod openers;
mod reason;
mod room;

pub use activate::{Job, ensure_not_suspended};
pub use carry_out::bring_up;
pub use decide::of_locks;
pub use decision::{Decision, Grow, Level, Purpose, Refusal, Wish};
pub use device::{Device, swaps, volume_of};
pub use doubt::Doubt;
pub use facts::{Content, Elsewhere, Facts, Lvm, Pool};
pub use in_use::require_same;
pub use look::Tables;
pub use message::extend_pool;
pub use reason::Reason;
