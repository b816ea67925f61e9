//! Mounts and unmounts filesystems, and reads the kernel's table of mounts.

mod advice;
mod alone;
mod bind;
mod btrfs;
mod mount_device;
mod mount_point;
mod mounted;
mod places;
mod row;
mod source;
mod table;
mod unmount;

pub(crate) use advice::{by_hand, without_data};
pub(crate) use alone::work as work_alone;
pub(crate) use bind::{bind, restrict};
pub(crate) use mount_device::mount_device;
pub(crate) use mount_point::make_dirs;
pub use places::{KubeletPath, is_kubelets, is_runtimes};
pub use row::{Row, restricting};
pub(crate) use source::Source;
pub use table::{Table, mounted_at};
pub(crate) use unmount::ensure_unmounted;
