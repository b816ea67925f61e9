//! The tool half of flexvolume-lvm: commands for people, and call-outs by hand.
//!
//! Each module uses only the modules after it in this list: `cli`; `install`; `commands`; `kubelet`; `files` and
//! `output`. All of them use the driver crate.

// Outside tests, only src/tool/files.rs may call the functions that clippy.toml disallows.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
// Only this project's executable and tests use this crate.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use
)]

mod cli;
mod commands;
mod files;
#[cfg(test)]
#[path = "../driver/names/tests/hostile.rs"]
mod hostile;
mod install;
mod kubelet;
mod output;

#[cfg(test)]
use driver::names::is_printable;

pub use cli::{command, main};
