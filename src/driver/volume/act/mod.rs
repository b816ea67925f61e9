//! Carries out decisions: activates or creates a volume, makes its filesystem, mounts it, grows it, takes it down.
//! Works under the volume's lock, and looks again after each wait.

mod bring_up;
mod close;
mod conduct;
mod encrypted;
mod first_mount;
mod grow;
mod grow_filesystem;
mod grow_inside;
mod make;
mod passphrase;
mod release;
mod take_down;
mod volume_name;

pub use bring_up::bring_up;
pub use close::close_leftovers;
pub use grow::grow;
pub use release::{give_up, release_named};
pub use take_down::{clear_global, let_go, take_off};
