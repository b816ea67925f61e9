//! Finds out whether udevd answers LVM.

use std::path::Path;

use crate::host::Kernel;

/// Whether udevd answers. LVM waits for udevd after each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Udev {
    /// udevd listens, or the kernel's tables cannot be read.
    Listens,
    /// udevd answers by a semaphore of the host's IPC namespace, and this process is in another namespace.
    CannotBeHeard,
    /// udevd was killed: its socket is still there, and nobody listens.
    Killed,
    /// udevd has no socket. LVM does its work without udevd then.
    NoSocket,
}

impl Udev {
    pub fn ask(kernel: &Kernel) -> Self {
        const SOCKET: &str = "/run/udev/control";
        // Since systemd 258, this path is a link to another socket.
        let real = kernel.real_path(Path::new(SOCKET)).unwrap_or_default();
        let is_it = |line: &str| {
            let at = line.split_whitespace().last();
            at.is_some_and(|at| at == SOCKET || Path::new(at) == real)
        };
        // The sockets of the host's network namespace. Source: proc(5), `/proc/net/unix`.
        let table = kernel.read(Path::new("/proc/1/net/unix"));
        // The two IPC namespaces. If one of them cannot be read, they count as the same.
        let [own, hosts] =
            ["/proc/self/ns/ipc", "/proc/1/ns/ipc"].map(|path| kernel.link(Path::new(path)));
        if !kernel.exists(Path::new(SOCKET)) {
            Self::NoSocket
        } else if matches!((own, hosts), (Ok(own), Ok(hosts)) if own != hosts) {
            Self::CannotBeHeard
        } else if table.is_ok_and(|table| !table.lines().any(is_it)) {
            Self::Killed
        } else {
            Self::Listens
        }
    }
}
