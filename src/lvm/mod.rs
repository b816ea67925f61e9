//! What LVM says of a volume, and asking LVM to change it.

mod change;
mod disks;
mod find;
mod monitor;
mod parts;
mod record;
mod report;
mod sanlock;
mod shared;
mod wait;

pub use change::{activate, create, deactivate, extend, refresh, retag};
pub use disks::{Fault, faulty_disks};
pub use find::{
    Disk, Found, Sight, all_groups, all_volumes, disks, find, find_group, has_unused_table,
    lock_of, tagged,
};
pub use monitor::{Settings, monitors};
pub use parts::has_lost_data;
pub use record::{Record, Tags, is_permission, made_tag, making_tag, permission_tag, volume_tag};
pub use report::{Group, Report, Target, Volume};
pub use sanlock::{Holder, holder};
pub use shared::{GroupLocks, Locks, has_lvmlockd, kept_away, locks, may_be_shared, twins};

#[cfg(test)]
pub use report::{LvLock, sample};
