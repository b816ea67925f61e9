//! The device of an active logical volume, with its names for commands and system calls. [`look`](super::look)
//! finds the device, and reads what the kernel knows of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::host::{DeviceNumber, Kernel, Node};
use crate::lvm::Target;
use crate::names::{LvId, LvUuid, Shown};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub id: LvId,
    pub path: PathBuf,
    pub number: DeviceNumber,
    pub lv_uuid: LvUuid,
    /// Of the device inside an encrypted volume: the UUID of the LUKS2 header that it was opened with. `None`:
    /// this is the volume's own device.
    pub luks: Option<String>,
}

/// How the kernel reacted to an error in a mounted filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It counted the error, or made the filesystem read-only.
    Errors,
    /// It shut the filesystem down: nothing in it can be read or written.
    ShutDown,
}

impl Device {
    /// Name and UUID, by which LVM commands change it.
    pub fn target(&self) -> Target<'_> {
        (&self.id, &self.lv_uuid)
    }

    /// The device node for tools: `/dev/dm-N`, or LVM's node if the kernel's is missing from this /dev.
    pub fn node(&self, kernel: &Kernel) -> Node {
        let own = Path::new("/dev").join(self.kernel_name());
        let name = self.path.clone();
        let path = if kernel.exists(&own) {
            own
        } else {
            name.clone()
        };
        Node { path, name }
    }

    pub(super) fn kernel_name(&self) -> String {
        format!("dm-{}", self.number.minor)
    }

    /// Opens [`Self::node`], and checks that it is this device.
    pub fn open(&self, kernel: &Kernel, exclusive: bool) -> io::Result<File> {
        kernel.open_device(&self.node(kernel).path, self.number, exclusive)
    }

    /// Opens the device, not exclusively. The kernel gives its number to no other device until it is closed.
    pub fn pin(self, kernel: &Kernel) -> Result<Pinned> {
        let file = self.open(kernel, false);
        let file =
            file.with_context(|| format!("opening {}, device {}", self.path.shown(), self.number))?;
        Ok(Pinned {
            node: self.node(kernel),
            file: Arc::new(file),
            device: self,
        })
    }
}

/// A device held open, so that its number cannot become another device's. Tools work on this.
pub struct Pinned {
    pub device: Device,
    pub node: Node,
    pub file: Arc<File>,
}
