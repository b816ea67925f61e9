//! A FlexVolume driver for LVM: gives Kubernetes pods logical volumes, and never formats data away.
//!
//! Every floor uses only those below it: `cli`; `calls` and `tools`; `lvm`, `fs`, `mount`,
//! `device`, `lock`; `host`; and what only parses.

// Used by its own executable and tests alone.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use
)]

mod calls;
pub mod cli;
pub(crate) mod config;
pub mod device;
pub mod error;
pub mod fs;
pub mod holders;
pub mod host;
pub mod lock;
pub mod lvm;
pub mod mount;
pub(crate) mod names;
pub(crate) mod options;
pub mod reply;
mod tools;

/// What `tests/` reach that is not part of the executable's own interface.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::config::Config;
    pub use crate::names::{Bytes, FsType, LvId, LvName, VgName, same_host};
    pub use crate::options::{MountOptions, Options, holds_secret};
}

use names::size;

use std::ffi::OsString;

use calls::CallOut;
use config::Loaded;
use host::{Host, Outcome};
use options::holds_secret;
use reply::{Reply, Status};

/// Answers one call-out of kubelet: `args` is argv without the executable's name.
#[must_use]
pub fn run(args: &[OsString], host: &Host, config: &Loaded) -> Reply {
    let reply = match CallOut::parse(args) {
        Ok(call) => calls::answer(&call, host, config).into(),
        Err(error) => Reply::failure(&error),
    };
    let outcome = match reply.status {
        Status::Failure => Outcome::Failure,
        Status::Success | Status::NotSupported => Outcome::Success,
    };
    // Only words that are call-outs: anything else may be a secret in the wrong place.
    let name = args
        .first()
        .and_then(|name| calls::NAMES.into_iter().find(|known| name == known))
        .unwrap_or("other");
    let message = reply.message.as_deref().unwrap_or_default();
    host.log
        .write(&config.or_default().log, name, outcome, message);
    reply
}

/// The exit code that goes with a reply.
///
/// kubelet writes the whole argv of a call that exits other than 0 into its log, secrets included;
/// it takes the failure from the document all the same. Source: kubelet's
/// `pkg/volume/flexvolume/driver-call.go`, `Run`.
#[must_use]
pub fn exit_code(reply: &Reply, args: &[OsString]) -> u8 {
    let failed = reply.status == Status::Failure;
    u8::from(failed && !args.iter().any(holds_secret))
}
