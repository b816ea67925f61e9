//! Mounts and unmounts filesystems, and reads the kernel's table of mounts.

mod advice;
mod alone;
mod change;
mod places;
mod source;
mod table;

pub(crate) use advice::{by_hand, without_data};
pub(crate) use alone::work as work_alone;
pub(crate) use change::{bind, ensure_unmounted, make_dirs, mount_device, restrict};
pub use places::{KubeletPath, is_kubelets, is_runtimes};
pub(crate) use source::Source;
pub use table::{Row, Table, mounted_at, restricting};
