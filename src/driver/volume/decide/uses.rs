//! The facts about the users of a volume.

use std::fmt;
use std::path::PathBuf;

use crate::crypt::Unlocked;
use crate::host::holders::Opener;
use crate::mount::Row;
use crate::names::{Foreign, Shown};
use crate::volume::inside::Inside;
use crate::volume::mounted_filesystem::Failure;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// What is mounted at the call's directory. If nothing is mounted there, in attach mode: something else that is
    /// mounted at the global directory of the pod's volume. `None`: neither, or the call has no directory.
    pub there: Option<There>,
    /// The volume's mounts in the driver's mount namespace.
    pub mounts: Vec<Mounted>,
    pub swap: bool,
    /// Devices built on top of the volume, by the name that `dmsetup` or the kernel shows. If the volume is encrypted
    /// and open, these are the devices on top of the device inside, or beside it.
    pub holders: Vec<String>,
    /// The device inside, if an encrypted volume is open. The other fields are about that device then.
    pub inside: Option<Inside>,
    /// The LUKS device on top of the volume, if somebody other than the driver has opened it.
    pub unlocked: Option<Unlocked>,
    /// The device-mapper name of the suspended device: the volume's device, or a device below it.
    pub suspended: Option<String>,
    /// Whether the volume is mounted, and its device is read-only in the kernel.
    pub mounted_read_only_device: bool,
    /// How the mounted filesystem failed. `None`: no failure is seen, or no decision needs this.
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    This(Row),
    Another(Occupied),
}

/// Something else that is mounted at a directory which the volume needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    pub dir: PathBuf,
    pub by: Foreign,
    /// kubelet's name of the volume. Set only in attach mode, in which kubelet keeps one mount for each name.
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is asked for by itself
pub struct Mounted {
    pub row: Row,
    /// Whether another mount hides this one, so that nobody can bind from it.
    pub hidden: bool,
    /// Whether the mount is in one of kubelet's directories.
    pub kubelets: bool,
    /// Whether a container runtime made the mount from a pod's mount, for a virtual machine.
    pub runtimes: bool,
    /// Whether it is a global mount, which kubelet makes once for all pods of a volume name.
    pub global: bool,
    /// Whether it is the global mount for the volume name of this call.
    pub own_global: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Openers {
    /// The processes that have the device open, writers first.
    pub processes: Vec<Opener>,
    /// Loop devices over the volume's device.
    pub loops: Vec<LoopDevice>,
    /// The volume's mounts in other mount namespaces.
    pub elsewhere: Vec<Elsewhere>,
    /// Whether the kernel has the device's filesystem mounted, even if no mount table shows it.
    pub has_filesystem: bool,
    /// Whether the kernel has counted errors in that filesystem.
    pub has_errors: bool,
    /// How often the device is open beyond what the fields above explain.
    pub unseen: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopDevice {
    /// By the kernel.
    pub name: String,
    /// Whether the loop device can write.
    pub writes: bool,
}

impl Openers {
    pub fn is_mounted(&self) -> bool {
        self.has_filesystem || !self.elsewhere.is_empty()
    }

    pub fn is_nobody(&self) -> bool {
        !self.is_mounted() && self.processes.is_empty() && self.loops.is_empty() && self.unseen == 0
    }

    /// True if waiting may help: no writer is known, and some opener may be a short probe: an unseen one, or a process
    /// that reads a volume that is not recorded yet.
    pub fn may_end(&self, is_recorded: bool) -> bool {
        let writes = self.processes.iter().any(|opener| opener.writes)
            || self.loops.iter().any(|one| one.writes);
        let reads = !self.processes.is_empty() && !is_recorded;
        !writes && (reads || self.unseen > 0)
    }
}

/// Where a failed filesystem is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Here(PathBuf),
    /// In these other mount namespaces. Empty: no mount table shows where.
    Elsewhere(Vec<Elsewhere>),
}

/// A mount of the volume in another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    pub pid: u32,
    pub command: Foreign,
    pub at: PathBuf,
    /// Whether it is the host's own mount: in the namespace of process 1, outside kubelet's directories.
    pub hosts: bool,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (pid {}) has it at {}",
            self.command,
            self.pid,
            self.at.shown()
        )
    }
}
