//! The device of an active logical volume, by the kernel's tables. Starts no process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::host::{DeviceNumber, Kernel, Node};
use crate::lvm::{Mapped, Target};
use crate::names::{Bytes, LvId, LvUuid, Shown};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub id: LvId,
    pub path: PathBuf,
    pub number: DeviceNumber,
    pub lv_uuid: LvUuid,
    /// If this is the device inside an encrypted volume: the UUID of the LUKS2 header that it was opened with. `None`:
    /// this is the volume's own device.
    pub luks: Option<String>,
}

/// A device that the driver holds open, so that the kernel gives its number to no other device. Tools run on such a
/// device.
pub struct Pinned {
    pub device: Device,
    pub node: Node,
    pub file: Arc<File>,
}

impl Device {
    /// The device of the volume `id`. `None`: the volume is not active on this host, or /dev has no node for it. Fails
    /// if the node belongs to another device, or if `id` is a pool.
    pub fn find(kernel: &Kernel, id: &LvId) -> Result<Option<Self>> {
        /// The characters of two UUIDs without hyphens: the group's and the volume's.
        const UUIDS: usize = 64;
        let path = id.device();
        let number = kernel
            .device_number(&path)
            .with_context(|| format!("looking at {}", path.shown()))?;
        let Some(number) = number else {
            return Ok(None);
        };
        let mapped = Mapped::of(number);
        let name = mapped.name(kernel).unwrap_or_default();
        let uuid = mapped.uuid(kernel).unwrap_or_default();
        // LVM's own devices: "LVM-", the VG's UUID, the LV's UUID, and nothing after it. Hidden
        // layers (a pool's data, a snapshot's store) have a suffix.
        // Source: lvm2 lib/activate/dev_manager.c, build_dm_uuid.
        let uuids = uuid.strip_prefix("LVM-").filter(|_| name == id.dm_name());
        match uuids.and_then(|uuids| Some((uuids.len(), uuids.get(32..)?))) {
            Some((UUIDS, lv_uuid)) => Ok(Some(Self {
                id: id.clone(),
                path,
                number,
                lv_uuid: LvUuid::of(lv_uuid),
                luks: None,
            })),
            Some((length, _)) if length > UUIDS => bail!(
                "{id} is a pool that holds other volumes, or a part of one, not a volume for a \
                 filesystem; name one of those (`lvs -a {}`)",
                id.vg()
            ),
            _ => bail!(
                "{} is device {number}, which device-mapper calls {name:?} with UUID {uuid:?}: that is not the logical \
                 volume {id}; {}",
                path.shown(),
                if name == id.dm_name() {
                    format!(
                        "another device has the volume's name (`dmsetup table {name}`): if nobody needs it, run \
                         `dmsetup remove {name}`"
                    )
                } else {
                    format!(
                        "run `vgmknodes {}`, or see `dmsetup info` and `ls -l /dev/mapper`",
                        id.vg()
                    )
                }
            ),
        }
    }

    /// The volume's name and UUID, for the LVM commands that change it.
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

    pub(super) fn mapped(&self) -> Mapped {
        Mapped::of(self.number)
    }

    pub(super) fn kernel_name(&self) -> String {
        format!("dm-{}", self.number.minor)
    }

    /// Opens [`Self::node`]. Fails if the node belongs to another device by now. `exclusive`: nobody else can claim the
    /// device until the file is closed.
    pub fn open(&self, kernel: &Kernel, exclusive: bool) -> io::Result<File> {
        kernel.open_device(&self.node(kernel).path, self.number, exclusive)
    }

    /// Opens the device, not exclusively. While it is open, the kernel gives its number to no other device.
    pub fn pin(self, kernel: &Kernel) -> Result<Pinned> {
        let file = self
            .open(kernel, false)
            .with_context(|| format!("opening {}, device {}", self.path.shown(), self.number))?;
        Ok(Pinned {
            node: self.node(kernel),
            file: Arc::new(file),
            device: self,
        })
    }

    /// How many sectors of the device were written or discarded since its activation. `None`: the kernel does not tell.
    /// Source: Linux' Documentation/block/stat.rst.
    pub fn written(&self, kernel: &Kernel) -> Option<u64> {
        const WRITTEN: usize = 6;
        const DISCARDED: usize = 13;
        let stat = self.mapped().read(kernel, "stat").ok()?;
        let columns: Vec<&str> = stat.split_whitespace().collect();
        let written: u64 = columns.get(WRITTEN)?.parse().ok()?;
        // Linux before 4.18 counts no discards.
        let discarded = columns.get(DISCARDED).and_then(|count| count.parse().ok());
        Some(written.saturating_add(discarded.unwrap_or(0)))
    }

    pub fn size(&self, kernel: &Kernel) -> Result<Bytes> {
        let size = self.mapped().read(kernel, "size").ok();
        let sectors: u64 = size
            .and_then(|size| size.parse().ok())
            .with_context(|| format!("reading the size of {} in /sys", self.path.shown()))?;
        // The unit of /sys/block/*/size is 512 bytes whatever the device's sectors are.
        Ok(Bytes::new(sectors.saturating_mul(512)))
    }

    pub fn is_read_only(&self, kernel: &Kernel) -> bool {
        self.mapped().is_read_only(kernel)
    }

    /// If all disks of the device are read-only: the first one, by its name in /dev. `None`: a disk can be written.
    pub fn read_only_disk(&self, kernel: &Kernel) -> Option<String> {
        let disks = self.mapped().disks(kernel);
        let all = disks.iter().all(|disk| disk.is_read_only(kernel));
        disks.first().filter(|_| all).map(Mapped::in_dev)
    }

    /// The device-mapper name of the suspended device: this device, or a device below it. `None`: none of them is
    /// suspended.
    pub fn suspended(&self, kernel: &Kernel) -> Option<String> {
        self.mapped().suspended(kernel)
    }

    /// The devices built on top of this one (LUKS, md, another volume group), by kernel name.
    pub fn holders(&self, kernel: &Kernel) -> io::Result<Vec<String>> {
        kernel.list(&self.mapped().0.join("holders"))
    }

    /// The disks that the device is on, by their names in /dev.
    pub fn disks(&self, kernel: &Kernel) -> BTreeSet<String> {
        let disks = self.mapped().disks(kernel);
        disks.iter().map(Mapped::in_dev).collect()
    }
}
