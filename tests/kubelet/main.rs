//! A real kubelet drives the driver: pods write to its volumes and read from them. This runs in a
//! guest: `tests/run.sh kubelet [CASE…]` boots one with containerd and a standalone kubelet.
//!
//! Cases run at once on one kubelet. Each has a driver of its own, `<case>/lvm`, so that it can be
//! in a mode of its own and be changed while pods run; and volumes of its own.
#![allow(clippy::restriction, clippy::disallowed_methods)]

/// Makes two tests of a function that takes a mode: `<function>::in_attach_mode` and
/// `<function>::in_mount_only_mode`.
macro_rules! in_both_modes {
    ($($case:ident)*) => {$(
        mod $case {
            use crate::support::Mode;

            #[test]
            fn in_attach_mode() {
                super::$case(Mode::Attach);
            }

            #[test]
            fn in_mount_only_mode() {
                super::$case(Mode::MountOnly);
            }
        }
    )*};
}

mod driver;
mod machine;
mod pod;
#[path = "../support/mod.rs"]
mod support;
mod volume;

mod changes;
mod container;
mod interrupted;
mod names;
mod plane;
mod pods;
mod restarts;

use std::time::{Duration, Instant};

/// The values that nearly every case needs.
mod prelude {
    pub use crate::driver::Driver;
    pub use crate::machine::*;
    pub use crate::plane::claim::*;
    pub use crate::plane::pair::{Pair, scene_of_pair};
    pub use crate::plane::{NODE, api};
    pub use crate::pod::{Pod, all_end, ending_with, inline_is_shared, last_call, scene};
    pub use crate::support::volume::Volume;
    pub use crate::support::{BOTH_MODES, Mode, run, sh};
    pub(crate) use crate::{wait_for, wait_until};
}

/// Waits until `look` finds something. The limit only ends a test that would never end.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    const LIMIT: Duration = Duration::from_secs(1200);
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Waits until `look` returns true.
fn wait_until(what: &str, mut look: impl FnMut() -> bool) {
    wait_for(what, || look().then_some(()));
}
