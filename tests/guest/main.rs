//! The driver on real LVM. Everything here needs root and device-mapper and makes volume groups,
//! so it runs inside a guest kernel: `tests/run.sh guest [CASE…]` boots one and runs this in it.
//!
//! A case gets a volume group of its own on a loop device, a node of its own with the driver
//! installed, and calls the driver as kubelet does.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod calls;
mod crypt;
mod data;
mod doctor;
mod kills;
mod lab;
mod life;
mod people;
mod policy;
mod refusals;
mod selinux;
#[path = "../support/mod.rs"]
mod support;
mod users;

use lab::{disk, failure, group, layout, node, page, signatures, snapshot, tools, volume};
use std::path::Path;

/// The values that nearly every case needs.
mod prelude {
    pub use crate::disk::{Disk, bytes_read, looped, looped_in, suspended, writes};
    pub use crate::group::{Group, lenient};
    pub use crate::layout::{LAYOUTS, Layout, other_disk, seen};
    pub use crate::node::{Node, in_both_modes, precreated, text};
    pub use crate::signatures::put;
    pub use crate::snapshot::{Mount, Snapshot, mount_at, mounts};
    pub use crate::support::reply::Reply;
    pub use crate::support::running::Running;
    pub use crate::support::trace::{Trace, programs, trace};
    pub use crate::support::volume::{Volume, device};
    pub use crate::support::{
        BOTH_MODES, Finally, Mode, Process, agreeing, at_last, bash, eventually, host_name, run,
        runs, sh, told,
    };
    pub use crate::tools::{JOURNALD, Tools, holds, opener, processes_named};
    pub use crate::volume::FILESYSTEMS;
    pub(crate) use crate::{KIB, MIB, UUID, filesystem_size, read, write_synced};
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The UUID of a filesystem whose mkfs was begun.
const UUID: &str = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9ea";

/// Writes a file and waits until it is on the disk.
fn write_synced(file: &Path, text: &str) {
    let write = || {
        std::fs::write(file, text)?;
        std::fs::File::open(file)?.sync_all()
    };
    write().unwrap_or_else(|e| panic!("writing {}: {e}", file.display()));
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("reading {}: {e}", file.display()))
}

/// How large the filesystem at `dir` is, in bytes.
fn filesystem_size(dir: &Path) -> u64 {
    let stat = nix::sys::statvfs::statvfs(dir).unwrap();
    stat.blocks() * stat.fragment_size()
}
