//! udevd, for whose answer LVM waits after each change.

use std::path::Path;

use crate::host::Kernel;

const SOCKET: &str = "/run/udev/control";

/// Whether udevd answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Udev {
    /// It listens, if the kernel does not say otherwise.
    Listens,
    /// It answers by a semaphore of the host's IPC namespace, which is not the one of this process.
    CannotBeHeard,
    /// It has left its socket behind.
    Killed,
    /// LVM does without it.
    NoSocket,
}

impl Udev {
    pub fn ask(kernel: &Kernel) -> Self {
        // Since systemd 258 a link to another socket.
        let real = kernel.real_path(Path::new(SOCKET)).unwrap_or_default();
        let is_it = |line: &str| {
            let at = line.split_whitespace().last();
            at.is_some_and(|at| at == SOCKET || Path::new(at) == real)
        };
        // That of the host's network. Source: proc(5), `/proc/net/unix`.
        let table = kernel.read(Path::new("/proc/1/net/unix"));
        if !kernel.exists(Path::new(SOCKET)) {
            Self::NoSocket
        } else if has_own_ipc(kernel) {
            Self::CannotBeHeard
        } else if table.is_ok_and(|table| !table.lines().any(is_it)) {
            Self::Killed
        } else {
            Self::Listens
        }
    }
}

/// Whether this process is in another IPC namespace than process 1. No, if the kernel does not tell.
fn has_own_ipc(kernel: &Kernel) -> bool {
    let own = kernel.link(Path::new("/proc/self/ns/ipc"));
    let hosts = kernel.link(Path::new("/proc/1/ns/ipc"));
    matches!((own, hosts), (Ok(own), Ok(hosts)) if own != hosts)
}
