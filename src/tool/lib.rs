//! All that a person types: commands, and call-outs by hand.
//!
//! Each room uses only those below it: `cli`; `install`; `commands`; `kubelet`; `files` and `output`.
//! All of them use the driver, which does what a command cannot do.

// Only src/tool/files.rs may call these functions: see clippy.toml.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
// Used by its own executable and tests alone.
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
