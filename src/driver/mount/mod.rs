//! Reads the table of mounts, mounts and unmounts.

mod change;
mod places;
mod table;

pub(crate) use change::{
    Source, UNMOUNT, after_undo, bind, by_hand, ensure_unmounted, make_dirs, mount_device,
    restrict, without_data,
};
pub use places::{KubeletPath, is_kubelets};
pub use table::{Row, Table, mounted_at, restrictions};
