//! All that kubelet runs of flexvolume-lvm, a FlexVolume driver for LVM: gives Kubernetes pods logical
//! volumes, and never formats data away.
//!
//! Each room uses only those below it: `entry` and `child`; `calls`; `volume`; `fs`, `lvm` and `mount`;
//! `host`; and what only parses.

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
pub mod host;
pub mod lvm;
pub mod mount;
pub mod names;
pub mod options;
pub mod reply;
mod secret;
pub mod volume;

pub use entry::{answer, executable, main, with_hosts, with_own_host, words};

/// Functions that make, check, grow, activate, extend, mount or remove are not visible outside this crate.
/// Commands for people look and decide; of volumes they change only tags and names. Each of these functions
/// exists here, and a doc test for each shows that a call from elsewhere does not compile.
macro_rules! hidden {
    ($($room:ident :: $name:ident $(:: $of:ident)?),+ $(,)?) => {
        $(const _: () = {
            #[allow(unused_imports)]
            use crate::$room::$name;
            $(let _ = $name::$of;)?
        };)+
        $(#[doc = concat!("```compile_fail\nuse driver::", stringify!($room), "::", stringify!($name), ";\n",
            $("let _ = ", stringify!($name), "::", stringify!($of), ";\n",)? "```")])+
        #[cfg(doctest)]
        pub struct Hidden;
    };
}

hidden!(
    crypt::close,
    crypt::format,
    crypt::mark,
    crypt::open,
    crypt::resize,
    fs::check,
    fs::grow,
    fs::mkfs,
    host::Command::myself,
    host::Command::reads,
    host::Command::writes,
    host::Kernel::bind,
    host::Kernel::open_device,
    host::Kernel::remove_dir,
    host::Kernel::set_mount_flags,
    host::Kernel::unmount,
    lvm::activate,
    lvm::create,
    lvm::deactivate,
    lvm::extend,
    lvm::refresh,
    lvm::rename,
    lvm::retag,
    mount::bind,
    mount::ensure_unmounted,
    mount::make_dirs,
    mount::mount_device,
    mount::restrict,
    volume::bring_up,
    volume::give_up,
    volume::release,
    volume::release_named,
);
