//! Does what was decided: activates or creates a volume, makes its filesystem, mounts it, gives it
//! back. Under the volume's lock, and with another look wherever time has passed.

mod activate;
mod bring_up;
mod make;
mod release;

pub use activate::{Job, ensure_not_suspended};
pub use bring_up::bring_up;
pub use release::{give_up, release, release_named};
