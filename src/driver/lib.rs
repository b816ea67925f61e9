//! The driver half of flexvolume-lvm, a FlexVolume driver for LVM: everything that kubelet runs. It gives logical
//! volumes to Kubernetes pods, and never formats a volume that may hold data.
//!
//! Each module uses only the modules after it in this list: `entry`, `hidden` and `child`; `calls`; `volume`; `crypt`;
//! `fs`, `lvm` and `mount`; `failed_step`; `host`; and the modules that only parse (`config`, `options`, `names` and
//! `reply`). There are two exceptions. `fs` makes a filesystem, and `crypt` a header, only with a `Permit`, which
//! `volume/decide` makes. `reply` adds the advice of `host::selinux` to an error.

// Outside tests, only src/driver/host may call these functions: see clippy.toml.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
// Only this project's executable and tests use this crate.
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
pub mod failed_step;
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

/// Functions that make, check, grow, activate, extend, mount or remove are `pub(crate)`, since commands for people must
/// not call them: a command looks and decides, and changes only tags of volumes. Doc tests show that a call from
/// another crate does not compile, one for each kind: a function, a way to run a tool, a system call.
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

// The doc tests prove something only if these names exist.
const _: () = {
    let _ = fs::mkfs;
    let _ = host::Command::writes;
    let _ = host::Kernel::unmount;
};
