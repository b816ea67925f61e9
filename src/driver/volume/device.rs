//! The device of an active logical volume, by the kernel's tables. Starts no process.

use crate::crypt::{self, Luks, Unlocked};
use crate::host::{DeviceNumber, Kernel, Node};
use crate::lvm::{Mapped, Target};
use crate::mount::{KubeletPath, Row};
use crate::names::{Bytes, LvId, LvUuid, Shown};
use anyhow::{Context, Result, bail};
use nix::libc::EIO;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// How the kernel reacted to an error in a mounted filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The kernel counted the error, or made the filesystem read-only.
    Errors,
    /// The kernel shut the filesystem down: nothing in it can be read or written.
    ShutDown,
}

/// The device inside an encrypted volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    pub device: Device,
    /// Whether the device was opened read-only.
    pub read_only: bool,
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
        let name = sysfs(kernel, number, "dm/name").unwrap_or_default();
        let uuid = sysfs(kernel, number, "dm/uuid").unwrap_or_default();
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
                "{} is device {number}, which device-mapper calls {name:?} with UUID {uuid:?}: \
                 that is not the logical volume {id}; run `vgmknodes {}`, or see `dmsetup info` and \
                 `ls -l /dev/mapper`",
                path.shown(),
                id.vg()
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
        let file = self.open(kernel, false);
        let file =
            file.with_context(|| format!("opening {}, device {}", self.path.shown(), self.number))?;
        Ok(Pinned {
            node: self.node(kernel),
            file: Arc::new(file),
            device: self,
        })
    }

    /// The device inside, if this is an encrypted volume that is open. Only a device with the driver's name for it
    /// counts: see [`Self::opened_by_anybody`] for others.
    pub fn inside(&self, kernel: &Kernel) -> Option<Self> {
        self.inside_among(kernel, &self.holders(kernel).ok()?)
    }

    /// Finds the device inside among `holders`, the devices on top of this one: the LUKS2 device with the name that the
    /// driver gives to it.
    fn inside_among(&self, kernel: &Kernel, holders: &[String]) -> Option<Self> {
        let own = Path::new("/dev/mapper").join(crypt::name_of(&self.lv_uuid));
        let mut all = holders
            .iter()
            .filter_map(|holder| self.over(kernel, holder));
        all.find(|inside| inside.path == own)
    }

    /// The device inside, whatever its name: a person may have opened the volume. `None`: no device is on top of this
    /// one, or several are, or the one on top is no LUKS2 device.
    pub fn opened_by_anybody(&self, kernel: &Kernel) -> Option<Self> {
        match &self.holders(kernel).ok()?[..] {
            [holder] => self.over(kernel, holder),
            _ => None,
        }
    }

    /// The device with the kernel name `holder`, which is on top of this one. `None`: it is no LUKS2 device.
    fn over(&self, kernel: &Kernel, holder: &str) -> Option<Self> {
        let dir = Path::new("/sys/class/block").join(holder);
        let read = |entry| kernel.read(&dir.join(entry)).ok();
        let name = read("dm/name")?;
        let name = name.trim_end();
        Some(Self {
            path: Path::new("/dev/mapper").join(name),
            number: read("dev")?.parse().ok()?,
            luks: Some(crypt::luks_of(read("dm/uuid")?.trim_end(), name)?),
            ..self.clone()
        })
    }

    /// The first LUKS device among `holders`, the devices on top of a volume, by kernel name.
    pub fn unlocked(kernel: &Kernel, holders: &[String]) -> Option<Unlocked> {
        holders.iter().find_map(|holder| {
            let dir = Path::new("/sys/class/block").join(holder).join("dm");
            let kind = Luks::of(&kernel.read(&dir.join("uuid")).ok()?)?;
            let name = kernel.read(&dir.join("name")).ok()?.trim_end().to_owned();
            Some(Unlocked { kind, name })
        })
    }

    /// The device inside, if this is an encrypted volume that is open. `holders`: the devices on top of this one, by
    /// kernel name. This function replaces the device inside in that list by the devices on top of the device inside.
    pub fn opened(&self, kernel: &Kernel, holders: &mut Vec<String>) -> Option<Inside> {
        let device = self.inside_among(kernel, holders)?;
        let name = device.kernel_name();
        holders.retain(|holder| *holder != name);
        holders.extend(device.holders(kernel).unwrap_or_default());
        Some(Inside {
            read_only: device.is_read_only(kernel),
            device,
        })
    }

    /// How many sectors of the device were written or discarded since its activation. `None`: the kernel does not tell.
    /// Source: Linux' Documentation/block/stat.rst.
    pub fn written(&self, kernel: &Kernel) -> Option<u64> {
        const WRITTEN: usize = 6;
        const DISCARDED: usize = 13;
        let stat = sysfs(kernel, self.number, "stat").ok()?;
        let column = |n| -> Option<u64> { stat.split_whitespace().nth(n)?.parse().ok() };
        // Linux before 4.18 counts no discards.
        Some(column(WRITTEN)?.saturating_add(column(DISCARDED).unwrap_or(0)))
    }

    /// Whether the kernel has the device's filesystem mounted. True also if no mount table shows this, as after
    /// `umount --lazy` while a file is open.
    pub fn has_filesystem(&self, kernel: &Kernel) -> bool {
        let (name, btrfs) = (self.kernel_name(), Path::new("/sys/fs/btrfs"));
        let is_in = |dir: &Path| kernel.exists(&dir.join(&name));
        let uuids = || kernel.list(btrfs).unwrap_or_default();
        is_in(Path::new("/sys/fs/ext4"))
            || is_in(Path::new("/sys/fs/xfs"))
            || uuids()
                .iter()
                .any(|uuid| is_in(&btrfs.join(uuid).join("devices")))
    }

    pub fn size(&self, kernel: &Kernel) -> Result<Bytes> {
        let sectors: u64 = sysfs(kernel, self.number, "size")
            .ok()
            .and_then(|size| size.parse().ok())
            .with_context(|| format!("reading the size of {} in /sys", self.path.shown()))?;
        // The unit of /sys/block/*/size is 512 bytes whatever the device's sectors are.
        Ok(Bytes::new(sectors.saturating_mul(512)))
    }

    pub fn is_read_only(&self, kernel: &Kernel) -> bool {
        Mapped::of(self.number).is_read_only(kernel)
    }

    /// If all disks of the device are read-only: the first one, by its name in /dev. `None`: a disk can be written.
    pub fn read_only_disk(&self, kernel: &Kernel) -> Option<String> {
        let disks = Mapped::of(self.number).disks(kernel);
        let all = disks.iter().all(|disk| disk.is_read_only(kernel));
        disks.first().filter(|_| all).map(Mapped::in_dev)
    }

    /// Whether this device itself is suspended: every access waits until somebody resumes it.
    pub fn is_suspended(&self, kernel: &Kernel) -> bool {
        Mapped::of(self.number).is_suspended(kernel)
    }

    /// The device-mapper name of the suspended device: this device, or a device below it. `None`: none of them is
    /// suspended.
    pub fn suspended(&self, kernel: &Kernel) -> Option<String> {
        Mapped::of(self.number).suspended(kernel)
    }

    /// How the kernel reacted to an error in this device's filesystem. `mounts`: the filesystem's mounts. `None`: no
    /// error is seen. Reads no disk: a disk that hangs would block the call.
    pub fn failure(&self, kernel: &Kernel, mounts: &[&Row]) -> Option<Failure> {
        let first = mounts.first()?;
        // Only a mount in kubelet's directories is opened: these are on no network server that could hang. A mount of the
        // host is refused as such.
        let is_kubelets = |row: &&&Row| KubeletPath::of(&row.mount_point) != KubeletPath::Other;
        let kubelets = mounts.iter().find(is_kubelets);
        let has_shut_down = |row: &&Row| {
            is_shut_down(kernel, &row.mount_point, row.id).then_some(Failure::ShutDown)
        };
        let is_made_read_only =
            |row: &&Row| !row.is_mount_read_only() && row.is_filesystem_read_only();
        if mounts.iter().any(is_made_read_only) {
            return Some(Failure::Errors);
        }
        let is_ext = first.fs_type.starts_with("ext");
        match is_ext.then(|| self.has_ext_errors(kernel)).flatten() {
            Some(has_errors) => has_errors.then_some(Failure::Errors),
            None => kubelets.and_then(has_shut_down),
        }
    }

    /// Whether the kernel has counted errors in the device's ext filesystem since its last mount or check. Some
    /// versions of Linux show an aborted journal only here. `None`: the device has no mounted ext filesystem.
    pub fn has_ext_errors(&self, kernel: &Kernel) -> Option<bool> {
        let count = format!("/sys/fs/ext4/{}/errors_count", self.kernel_name());
        let count = kernel.read(Path::new(&count)).ok()?;
        Some(count.trim() != "0")
    }

    /// The devices built on top of this one (LUKS, md, another volume group), by kernel name.
    pub fn holders(&self, kernel: &Kernel) -> io::Result<Vec<String>> {
        kernel.list(&self.number.in_sysfs("holders"))
    }

    /// The disks that the device is on, by their names in /dev.
    pub fn disks(&self, kernel: &Kernel) -> BTreeSet<String> {
        let disks = Mapped::of(self.number).disks(kernel);
        disks.iter().map(Mapped::in_dev).collect()
    }
}

/// Whether the filesystem of the mount `mount_id` at `path` was shut down. Reads no disk: the root of a mounted
/// filesystem is in memory.
pub fn is_shut_down(kernel: &Kernel, path: &Path, mount_id: u64) -> bool {
    let asked = kernel.ask_mount(path, mount_id);
    asked.is_err_and(|e| e.raw_os_error() == Some(EIO))
}

fn sysfs(kernel: &Kernel, number: DeviceNumber, entry: &str) -> io::Result<String> {
    let text = kernel.read(&number.in_sysfs(entry))?;
    Ok(text.trim_end().to_owned())
}
