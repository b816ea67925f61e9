//! A logical volume on this host. **Look, decide, do**: [`look`] gathers facts, [`decide`] says what may be done,
//! [`act`] does it. Only `act` leads to mkfs or to a mount.

mod act;
mod decide;
mod device;
mod job;
mod kernel_tables;
pub mod lock;
mod look;
mod step;
mod subject;

pub(crate) use act::{
    LONGEST_LOOK, bring_up, close, close_leftovers, ensure_not_suspended, give_up, grow_filesystem,
    release, release_named, require_filled, require_fit,
};
pub use decide::{
    Concern, Content, Decision, Doubt, Elsewhere, Facts, Ground, Grow, Help, Lvm, Making, May,
    Openers, Permit, Place, Purpose, Reason, Refusal, State, User, Uses, Wish, Word, extend_pool,
    first_command, not_active, require_header, require_lease, require_opened, require_well, users,
    wider,
};
pub use device::{Device, Inside, Pinned};
pub(crate) use job::Job;
pub use kernel_tables::{all_inside, volume_of};
pub use look::{Asker, HeldLocks, Known, Tables, look_under_lock, outgrown};
pub(crate) use step::Step;
pub use subject::Subject;
