//! The driver on two nodes that share one volume group: `tests/run.sh shared [CASE…]` runs this as
//! root. Each node is a guest kernel with lvmlockd and sanlock on the same disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod kills;
mod moves;
mod obstacles;
#[path = "../support/pair.rs"]
mod pair;
mod power;
#[path = "../support/mod.rs"]
mod support;

mod prelude {
    pub use crate::pair::{Volume, at_once, global_dir, pair, pod_dir};
    pub use crate::support::{BOTH_MODES, Mode, eventually};
}
