//! A logical volume on this host. **Look, decide, do**: [`look`] gathers facts, [`decide`] says what may be done,
//! [`act`] does it. Only `act` leads to mkfs or to a mount.

mod act;
mod decide;
mod device;
mod inside;
mod job;
mod kernel_tables;
pub mod lock;
mod look;
mod mounted_filesystem;
mod step;
mod subject;

pub(crate) use act::{
    bring_up, clear_global, close_leftovers, give_up, grow, let_go, release_named, take_off,
};
pub use decide::{
    Concern, Content, Decision, Doubt, Elsewhere, Facts, Help, Lvm, Making, May, Openers, Permit,
    Place, Purpose, Reason, Refusal, State, User, Uses, When, Wish, Word, extend_pool,
    first_command, not_active, require_header, require_lease, require_opened, require_well, users,
    what_helps, wider,
};
pub use device::Device;
pub use inside::Inside;
pub(crate) use job::Job;
pub use kernel_tables::{all_inside, volume_of};
pub use look::{Known, Tables, larger_device, look_of_person};
pub use subject::Subject;
