//! What LVM says of a volume, and asking LVM to change it.

mod change;
mod record;
mod report;
mod wait;

pub use change::{activate, create, deactivate, extend, is_unborn, refresh, remove_unborn, retag};
pub use record::{MAKING, MAY_FORMAT, Made, Record, Tags, made_tag, making_tag, volume_tag};
pub use report::{
    Found, Group, Report, Volume, all_volumes, find, find_group, has_unused_table, tagged,
};
