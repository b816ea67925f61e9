//! A FlexVolume driver for LVM: gives Kubernetes pods logical volumes, and never formats data away.
//!
//! Each room uses only those below it: `cli`; `calls`, `commands` and `install`; `volume` and `kubelet`;
//! `fs`, `lvm` and `mount`; `host`; and what only parses or prints.

// What src/host alone may call: see clippy.toml.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
// Used by its own executable and tests alone.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use
)]

mod calls;
pub mod cli;
mod commands;
mod config;
mod fs;
mod host;
mod install;
mod kubelet;
mod lvm;
mod mount;
mod names;
mod options;
mod output;
mod reply;
mod volume;

/// For `tests/` only: no part of the executable's interface.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::config::Config;
    pub use crate::fs::scan::{Backup, Examination, examine};
    pub use crate::fs::superblock::{Family, ReadAt, Superblock, read_primary};
    pub use crate::lvm::{Record, Report};
    pub use crate::mount::{KubeletPath, Row, Table};
    pub use crate::names::{Bytes, FsType, LvId, LvName, VgName, same_host};
    pub use crate::options::{MountOptions, Options, holds_secret};
}
