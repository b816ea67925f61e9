//! Carries out decisions: activates or creates a volume, makes its filesystem, mounts it, deactivates it. Works under
//! the volume's lock, and looks again after each wait.

mod bring_up;
mod conduct;
mod encrypted;
mod first_mount;
mod growth;
mod make;
mod release;
mod volume_name;

pub use bring_up::bring_up;
pub use conduct::ensure_not_suspended;
pub use encrypted::{close, close_leftovers, require_filled, require_fit};
pub use growth::grow_filesystem;
pub use release::{LONGEST_LOOK, give_up, release, release_named};
