//! The driver on two nodes that share one volume group: `tests/run.sh shared [CASE…]` runs this as
//! root. Each node is a guest kernel with lvmlockd and sanlock on the same disk.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod life;
mod moves;
mod obstacles;
mod pair;
mod power;
#[path = "../support/mod.rs"]
mod support;

mod prelude {
    pub use crate::pair::{at_once, global_dir, pair, pod_dir};
    pub use crate::support::volume::Volume;
    pub use crate::support::{BOTH_MODES, Mode, eventually, told};
}
