//! Reads the table of mounts, mounts and unmounts.

mod change;
mod identity;
mod places;
mod source;
mod table;

pub(crate) use change::{
    UNMOUNT, after_undo, bind, ensure_unmounted, make_dirs, mount_device, restrict,
};
pub use places::{KubeletPath, is_kubelets};
pub(crate) use source::{Source, by_hand, without_data};
pub use table::{Row, Table, mounted_at, restrictions};
