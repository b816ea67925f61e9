//! Asks LVM about volumes and groups, and makes LVM change them.

mod astray;
mod change;
mod faults;
mod find;
mod group;
mod listed;
mod lockd;
mod mapped;
mod promised;
mod record;
mod report;
mod sanlock;
mod space;
mod spread;
mod suspended;
#[cfg(test)]
mod tests;
mod udev;
mod unusable;
mod volume;
mod wait;

pub use astray::astray;
pub(crate) use change::{activate, activate_as_listed, create, deactivate, extend, refresh, retag};
pub use faults::{Disk, Fault, disks};
pub use find::{Found, find, find_group, has_unused_table, lock_of, tagged};
pub use group::{Group, GroupDisk};
pub use listed::{Listed, list};
pub use lockd::{GroupLeases, LeaseState, has_lvmlockd, is_any_shared, is_shared, may_be_shared};
pub use mapped::{Mapped, with_its_table};
pub use promised::{Promised, see_promised};
pub use record::{Record, Tags, Unfinished, permission_tag, volume_tag};
pub use report::Report;
pub use sanlock::{Holder, holder};
pub use space::{allowed, disks_of, usable};
pub use spread::Spread;
pub(crate) use suspended::resume_if_failed;
pub use udev::Udev;
pub use unusable::{KeptAway, exported, kept_away, twins};
pub use volume::{GroupFacts, ReadOnlyBy, Target, Volume};

#[cfg(test)]
pub(crate) use {tests::sample, volume::Lease};
