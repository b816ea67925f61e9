//! Asks LVM about volumes and groups, and has it change them.

mod change;
mod disks;
mod find;
mod mapped;
mod record;
mod report;
mod shared;
mod spread;
#[cfg(test)]
mod tests;
mod wait;

pub(crate) use change::{
    Larger, activate, activate_as_listed, create, deactivate, extend, refresh, retag,
};
pub use disks::{Disk, Extensible, Fault, disks, extensible, is_lost};
pub use find::{
    Found, all_groups, all_volumes, find, find_group, has_unused_table, lock_of, tagged, volumes_of,
};
pub use mapped::{DEEPEST, Mapped, with_its_table};
pub use record::{Record, Tags, making_in_luks_tag, making_tag, permission_tag, volume_tag};
pub use report::{Group, Report, Target, Volume};
pub use shared::{
    GroupLeases, Holder, KeptAway, LeaseState, exported, has_lvmlockd, holder, kept_away,
    may_be_shared, twins,
};
pub use spread::Spread;
pub use wait::Udev;

#[cfg(test)]
pub(crate) use {report::Lease, tests::sample};
