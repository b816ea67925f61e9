//! From the options of a volume to its device: what every call-out that brings a volume up needs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, bail};

use super::creation::create;
use crate::config::Config;
use crate::device::{Device, is_in_kernel, volume_of};
use crate::host::{Host, Lock};
use crate::lock;
use crate::lvm::{self, Found, Tags, Volume};
use crate::mount::Table;
use crate::names::LvId;
use crate::options::Options;

/// Why a volume has no device on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// LVM knows no such volume group here.
    Group,
    /// The group has no such volume.
    Volume,
}

impl Missing {
    /// The failure, with what to do about it.
    #[must_use]
    pub fn error(self, options: &Options) -> Error {
        let id = &options.id;
        match self {
            Self::Group => anyhow!(
                "this node has no volume group {}: check the volume's `volumegroup`, whether its \
                 disks are here and visible to LVM (`pvs -a`, `lvmdevices`, `filter` in lvm.conf), \
                 and that the pod runs on the node that has them",
                id.vg()
            ),
            Self::Volume => anyhow!(
                "there is no logical volume {id}: check `volumeID` (`lvs {}`), or create it with \
                 `lvcreate --name {} --size {} {}`",
                id.vg(),
                id.lv(),
                options
                    .size
                    .map_or_else(|| "SIZE".to_owned(), |s| format!("{}b", s.get())),
                id.vg()
            ),
        }
    }
}

/// The device of the volume, made active if it is not, and created if the config allows that.
///
/// An active volume is found in the kernel's own tables, without a process.
///
/// # Errors
/// When the volume may not be used or cannot be activated.
pub fn ensure_active(
    host: &Host,
    config: &Config,
    options: &Options,
) -> Result<Result<Device, Missing>> {
    activate(host, config, options, None)
}

fn activate(
    host: &Host,
    config: &Config,
    options: &Options,
    held: Option<&Lock>,
) -> Result<Result<Device, Missing>> {
    let id = &options.id;
    let policy = config.policy(id.vg())?;
    if let Some(device) = Device::find(host.kernel, id)? {
        return Ok(Ok(device));
    }
    let volume = match lvm::find(host, id, config.limits.query)? {
        Found::NoGroup => return Ok(Err(Missing::Group)),
        Found::NoVolume => {
            let Some(policy) = policy.filter(|policy| policy.create) else {
                return Ok(Err(Missing::Volume));
            };
            create(host, config, policy, options)?;
            // lvcreate has activated it.
            if let Some(device) = Device::find(host.kernel, id)? {
                return Ok(Ok(device));
            }
            match lvm::find(host, id, config.limits.query)? {
                Found::Volume(volume) => *volume,
                Found::NoVolume | Found::NoGroup => {
                    bail!("{id} was created, but LVM does not show it")
                }
            }
        }
        Found::Volume(volume) => *volume,
    };
    require_usable(&volume)?;
    // Otherwise the last unmount of another pod could deactivate it before its device is found.
    let _lock = (config.deactivate && held.is_none())
        .then(|| lock::hold_inactive(host.kernel, &volume, config.limits.lock))
        .transpose()?;
    lvm::activate(host, &config.limits, id).map_err(|error| {
        // A thin volume may be in LVM's metadata and not in its pool, a RAID volume not be ready.
        if volume.record.new {
            error.context(format!(
                "{id} is new and nobody has used it; if lvcreate was cut short, run `lvremove \
                 {id}`, and it is made again"
            ))
        } else {
            error
        }
    })?;
    match find_soon(host, config, id)? {
        Some(device) => Ok(Ok(device)),
        None => bail!(
            "LVM activated {id}, but {} is missing; make it with `vgmknodes {}`, and see that \
             udevd runs and that the driver sees the host's /dev",
            id.device().display(),
            id.vg()
        ),
    }
}

/// The device of a volume that LVM says is active. LVM has waited for udev to make its node, unless
/// a command that was killed has activated it just now.
fn find_soon(host: &Host, config: &Config, id: &LvId) -> Result<Option<Device>> {
    let most = config.limits.activate.min(Duration::from_secs(10));
    let started = Instant::now();
    loop {
        let found = Device::find(host.kernel, id)?;
        if found.is_some() || started.elapsed() >= most || !is_in_kernel(host.kernel, id) {
            return Ok(found);
        }
        if host.kernel.pause(Duration::from_millis(20)) {
            bail!("the driver was told to stop while it waited for udev to show {id}");
        }
    }
}

/// Locks the volume, and makes sure that it is active under the lock.
///
/// With `deactivate`, the last unmount of another pod may have taken the device away since it was
/// found. Nobody deactivates it while this lock is held.
///
/// # Errors
/// As [`ensure_active`] and [`lock::hold`].
pub fn hold_active(
    host: &Host,
    config: &Config,
    options: &Options,
    device: Device,
) -> Result<(Device, Lock)> {
    let lock = lock::hold(host.kernel, &device, config.limits.lock)?;
    if device.is_still_there(host.kernel) {
        return Ok((device, lock));
    }
    let again = activate(host, config, options, Some(&lock))?.map_err(|m| m.error(options))?;
    if again.lv_uuid != device.lv_uuid {
        bail!("{} was replaced by another volume just now", device.id);
    }
    Ok((again, lock))
}

/// Fails for a volume that no filesystem can be on, or not all of it.
///
/// # Errors
/// The reason.
pub fn require_usable(volume: &Volume) -> Result<()> {
    let id = &volume.id;
    if volume.is_pool() {
        bail!(
            "{id} is a pool that holds other volumes, not a volume for a filesystem; name one of those"
        );
    }
    // RAID goes on without a disk, and LVM itself refuses when too many are missing.
    if volume.health.contains("partial") && !volume.layout.contains("raid") {
        bail!(
            "{id} is partial: a disk of it is missing, see `lvs -a -o +devices {id}` and `pvs`; \
             bring the disk back, or restore the volume from a backup"
        );
    }
    Ok(())
}

/// Fails if the device that kubelet hands on is not this volume's: two volumes share a name.
///
/// # Errors
/// Which volume is meant and which was handed on.
pub fn require_same(host: &Host, word: &str, device: &Device, options: &Options) -> Result<()> {
    if word.is_empty() {
        return Ok(());
    }
    let number = host.kernel.device_number(Path::new(word))?;
    let is_same = match number {
        Some(number) => number == device.number,
        None => LvId::from_device(word).as_ref() == Some(&device.id),
    };
    if is_same {
        return Ok(());
    }
    let mounts = Table::read(host.kernel)?;
    let other = number.and_then(|number| volume_of(host.kernel, number));
    let place = other
        .as_ref()
        .and_then(|other| mounts.of_device(host.kernel, other).first().copied())
        .map(|row| format!(", mounted at {}", row.mount_point.display()))
        .unwrap_or_default();
    let other = other
        .map(|other| other.id)
        .or_else(|| LvId::from_device(word))
        .map_or_else(|| word.to_owned(), |id| format!("{word} ({id}{place})"));
    bail!(
        "the device handed on is {other}, but the options name {}. {}",
        device.id,
        same_name_advice(options.volume_name.as_deref())
    )
}

/// What to do when two volumes of one name meet on a node.
#[must_use]
pub fn same_name_advice(name: Option<&str>) -> String {
    let called = name.map_or_else(
        || "have the same one".to_owned(),
        |name| format!("are called {name:?}"),
    );
    format!(
        "With attach = true kubelet keeps one mount for each volume name, and two different \
         logical volumes {called} on this node: give the volumes of the two pods \
         different names, use PersistentVolumes, or set attach = false on the node"
    )
}

/// Notes kubelet's name of the volume on the volume itself. `detach` gets that name and nothing
/// else, and needs it only when it is to deactivate. What fails here is only logged.
pub fn note_name(host: &Host, config: &Config, options: &Options, device: &Device) {
    if !config.deactivate {
        return;
    }
    let Some(name) = &options.volume_name else {
        return;
    };
    let note = || -> Result<()> {
        let Some(tag) = lvm::volume_tag(name) else {
            bail!("the name {name:?} fits no tag");
        };
        match lvm::find(host, &device.id, config.limits.query)? {
            Found::Volume(volume) if !volume.record.names.contains(name) => {
                lvm::retag(host, &config.limits, &device.id, &Tags::adding(tag), None)
            }
            _ => Ok(()),
        }
    };
    if let Err(error) = note() {
        host.log.about("unnoted", &format!("{error:#}"));
    }
}
