//! All that kubelet runs of flexvolume-lvm, a FlexVolume driver for LVM: gives Kubernetes pods logical
//! volumes, and never formats a volume that may hold data.
//!
//! Each room uses only those below it: `entry` and `child`; `calls`; `volume`; `fs`, `lvm` and `mount`;
//! `host`; and what only parses. One thing comes from above: the permit of `volume/decide`, without which `fs` makes
//! no filesystem and `crypt` no header.

// Only src/driver/host may call these functions: see clippy.toml.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
// Used by its own executable and tests alone.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use
)]

pub mod calls;
mod child;
pub mod config;
pub mod crypt;
mod entry;
pub mod fs;
mod hidden;
pub mod host;
pub mod lvm;
pub mod mount;
pub mod names;
pub mod options;
pub mod reply;
pub mod volume;

pub use entry::{answer, executable, main, with_hosts};
pub use hidden::{hide_secret, words};

/// Functions that make, check, grow, activate, extend, mount or remove are `pub(crate)`: commands for people look
/// and decide; of volumes they change only tags. A doc test of each kind shows that a call from elsewhere
/// does not compile: a function, a way to run a tool, a system call.
///
/// ```compile_fail,E0603
/// let _ = driver::fs::mkfs;
/// ```
/// ```compile_fail,E0624
/// let _ = driver::host::Command::writes;
/// ```
/// ```compile_fail,E0624
/// let _ = driver::host::Kernel::unmount;
/// ```
#[cfg(doctest)]
pub struct Hidden;

// Without these names the doc tests would show nothing.
const _: () = {
    let _ = fs::mkfs;
    let _ = host::Command::writes;
    let _ = host::Kernel::unmount;
};
