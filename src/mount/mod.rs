//! What is mounted where, and making it so.

mod change;
mod places;
mod table;

pub use change::{
    MadeDirs, UNMOUNT, after_undo, bind, ensure_unmounted, make_dirs, make_read_only,
    make_writable, mount_device,
};
pub use places::{Place, is_kubelets, is_of_driver};
pub use table::{Row, Table, mounted_at};
