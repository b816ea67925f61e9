use std::path::Path;

use anyhow::{Result, bail};

use super::bring_up::{ensure_active, hold_active};
use super::creation::{require_max_size, require_reserve};
use super::first_mount::require_room;
use super::host_use::require_not_the_hosts;
use super::suspended::ensure_not_suspended;
use crate::config::{Config, Loaded};
use crate::device::Device;
use crate::fs::grow;
use crate::host::Host;
use crate::lvm::{self, Found, Volume};
use crate::mount::{Row, Table};
use crate::names::Bytes;
use crate::names::FsType;
use crate::options::Options;
use crate::reply::Reply;

/// `expandfs <options> <device> <dir> <new> <old>` and `expandvolume <options> <dir> <new> <old>`:
/// makes the volume and the filesystem on it at least `size` large, while it is mounted.
///
/// Never shrinks, and may be repeated. Both call-outs do both, because the controller never makes
/// the second: without this nobody would grow the volume itself.
pub fn run(
    host: &Host,
    config: &Loaded,
    options: &Options,
    dir: &Path,
    size: Bytes,
) -> Result<Reply> {
    let config = config.require()?;
    let device = ensure_active(host, config, options)?.map_err(|m| m.error(options))?;
    let (device, lock) = hold_active(host, config, options, device)?;
    let table = Table::read(host.kernel)?;
    let mounts = table.of_device(host.kernel, &device);
    require_not_the_hosts(host, config, &device, &mounts, dir)?;
    require_not_another(&table, &mounts, &device, dir)?;
    ensure_not_suspended(host, config, &device)?;

    extend(host, config, &device, size)?;

    let writable = mounts.iter().filter(|row| !row.is_read_only());
    let Some(row) = writable.min_by_key(|row| row.mount_point != dir) else {
        return Ok(Reply::success().with_message(&format!(
            "{} is {size} large; its filesystem grows when it is mounted for writing",
            device.id
        )));
    };
    let fs = FsType::parse(&row.fs_type)?;
    if host.kernel.device_number(&row.source)? != Some(device.number) && fs != FsType::Btrfs {
        bail!(
            "{} was renamed while it was mounted from {}, and the tool that grows {fs} goes by that \
             name. The volume is large enough; its filesystem grows at the next mount: end the pods \
             that use it, and start them again",
            device.id,
            row.source.display()
        );
    }
    grow(host, &config.limits, &device, fs, &row.mount_point, &lock)?;
    Ok(Reply::success())
}

fn extend(host: &Host, config: &Config, device: &Device, size: Bytes) -> Result<()> {
    let id = &device.id;
    let Found::Volume(volume) = lvm::find(host, id, config.limits.query)? else {
        bail!("{id} is active, but LVM does not know it; see `lvs {id}` and `pvs`");
    };
    require_room(host, config, &volume)?;
    if size <= volume.size {
        return Ok(());
    }
    require_max_size(config, id, size)?;
    require_policy(host, config, &volume, size)?;
    lvm::extend(host, &config.limits, &volume, size)
}

fn require_policy(host: &Host, config: &Config, volume: &Volume, size: Bytes) -> Result<()> {
    let Some(policy) = config.policy(volume.id.vg())? else {
        return Ok(());
    };
    // A thin volume takes nothing from the group.
    if volume.pool.is_some() {
        return Ok(());
    }
    let more = Bytes::new(size.get().saturating_sub(volume.size.get()));
    require_reserve(host, config, policy, &volume.id, more)
}

/// The directory that kubelet names must not hold another volume.
fn require_not_another(table: &Table, mounts: &[&Row], device: &Device, dir: &Path) -> Result<()> {
    let at_dir = table.rows().iter().rev().find(|row| row.mount_point == dir);
    match at_dir {
        Some(row) if !mounts.iter().any(|ours| ours.id == row.id) => bail!(
            "{} holds {}, not {}; nothing was grown",
            dir.display(),
            row.source.display(),
            device.id
        ),
        _ => Ok(()),
    }
}
