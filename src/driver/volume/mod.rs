//! A logical volume on this host. **Look, decide, do**: [`look`] gathers facts, [`decide`] says what
//! may be done, [`act`] does it. Nothing else leads to mkfs or to a mount.

mod act;
mod decide;
mod device;
pub mod lock;
mod look;
mod subject;
mod wish;

pub(crate) use act::{
    Job, bring_up, close, close_leftovers, ensure_not_suspended, give_up, release, release_named,
};
pub use decide::{
    Content, Decision, Doubt, Elsewhere, Facts, Grow, Lvm, Openers, Permit, Place, Purpose, Reason,
    Refusal, Uses, Wish, extend_pool, of_header, of_locks, of_opened, users,
};
pub use device::{Device, Pinned};
pub use look::{
    Asker, Decided, HeldLocks, Known, Tables, all_inside, look_under_lock, require_same, volume_of,
};
pub use subject::Subject;
