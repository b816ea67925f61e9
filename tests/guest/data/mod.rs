//! Data is kept: whatever is on a volume, and whatever happens to its disk, its name and its LVM.

mod caches;
mod contents;
mod creation;
mod damaged;
pub mod foreign;
mod healthy;
mod lost_disks;
mod lost_heads;
pub mod lvm_conf;
pub mod meanwhile;
mod old_disks;
mod on_demand;
mod partial;
mod pending;
mod sectors;
mod signs;
mod states;
mod subvolumes;
mod swapped;
mod thin;
mod unfinished;
mod unreadable;
