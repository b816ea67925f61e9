//! All that kubelet runs of flexvolume-lvm, a FlexVolume driver for LVM: gives Kubernetes pods logical
//! volumes, and never formats data away.
//!
//! Each room uses only those below it: `entry` and `child`; `calls`; `volume`; `fs`, `lvm` and `mount`;
//! `host`; and what only parses.
//!
//! What makes, checks, grows, activates, extends, mounts or removes is not visible outside this crate. A
//! command for people can look and decide, and of volumes it can change tags and names alone:
//!
//! ```compile_fail
//! use driver::fs::mkfs;
//! ```
//! ```compile_fail
//! use driver::lvm::create;
//! ```

// What src/driver/host alone may call: see clippy.toml.
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
mod entry;
pub mod fs;
pub mod host;
pub mod lvm;
pub mod mount;
pub mod names;
pub mod options;
pub mod reply;
pub mod volume;

pub use entry::{answer, executable, main, with_host};
