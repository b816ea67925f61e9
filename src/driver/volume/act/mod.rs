//! Carries out decisions: activates or creates a volume, makes its filesystem, mounts it, gives it back. Works
//! under the volume's lock, and looks again after each wait.

mod bring_up;
mod conduct;
mod encrypted;
mod first_mount;
mod make;
mod release;
mod resume;

pub use bring_up::bring_up;
pub use encrypted::{close, close_leftovers};
pub use release::{give_up, release, release_named};
pub use resume::ensure_not_suspended;
