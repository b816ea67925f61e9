//! Gives a volume back after its last use: to other nodes in a shared group, and where the config
//! says so.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::config::Config;
use crate::host::Host;
use crate::lvm::{self, Locks};
use crate::mount::Table;
use crate::names::LvId;
use crate::volume::{Device, is_swap, lock};

/// Deactivates the volumes that kubelet knows by this name, as [`release`] does.
pub fn release_named(host: &Host, config: &Config, name: &str, asked: bool) -> Result<()> {
    for id in volumes_named(host, config, name) {
        if let Some(device) = Device::find(host.kernel, &id)? {
            release(host, config, &device, asked, config.limits.lock)?;
        }
    }
    Ok(())
}

/// Gives a volume of a shared group back that could not be brought up here, since its pod may go to
/// another node. While another call works on it, it stays.
pub fn give_up(host: &Host, config: &Config, id: &LvId) {
    let released = || match Device::find(host.kernel, id)? {
        Some(device) => release(host, config, &device, false, Duration::ZERO),
        None => Ok(()),
    };
    if let Err(error) = released() {
        host.log.about("left-active", &format!("{error:#}"));
    }
}

/// kubelet gives the name of the volume; a person may give the device.
fn volumes_named(host: &Host, config: &Config, volume: &str) -> Vec<LvId> {
    if let Some(id) = LvId::from_device(volume) {
        return vec![id];
    }
    let Some(tag) = lvm::volume_tag(volume) else {
        return Vec::new();
    };
    let found = lvm::tagged(host, &tag, config.limits.query).unwrap_or_else(|error| {
        host.log.about("left-active", &format!("{error:#}"));
        Vec::new()
    });
    for volume in &found {
        host.log.about("volume", &volume.id.to_string());
    }
    found.into_iter().map(|volume| volume.id).collect()
}

/// Deactivates a volume that is neither mounted nor otherwise in use: if that is asked for, and in a
/// shared group in any case, since no other node can have it before. Whoever looks at a device that
/// has just been unmounted, as udev does, holds it for a moment. A call that works on the volume is
/// waited for.
pub fn release(
    host: &Host,
    config: &Config,
    device: &Device,
    asked: bool,
    patience: Duration,
) -> Result<()> {
    const TRIES: u32 = 5;
    const APART: Duration = Duration::from_millis(500);
    let (vg, limit) = (device.id.vg(), config.limits.query);
    let may_be_shared = lvm::may_be_shared(host, vg);
    if !(asked || may_be_shared) || is_used(host, device)? {
        return Ok(());
    }
    let shared = may_be_shared && lvm::is_shared(host, vg, limit)?;
    if !asked && !shared {
        return Ok(());
    }
    let _lock = lock::hold(host.kernel, device, patience)?;
    let locks = shared.then(|| lvm::locks(host, vg, None, limit));
    // LVM would deactivate it, succeed, and keep its lock. Of a lease that is lost nothing is kept.
    let locks = locks.filter(|locks| *locks != Locks::Lost);
    if let Some(obstacle) = locks.and_then(|locks| locks.obstacle(vg)) {
        bail!(
            "{} is not in use here any more, but cannot be given to other nodes: {obstacle}",
            device.id
        );
    }
    let mut tries = TRIES;
    while !is_used(host, device)? {
        tries = tries.saturating_sub(1);
        match lvm::deactivate(host, &config.limits, &device.id) {
            Err(_) if tries > 0 && !host.kernel.pause(APART) => {}
            done => return done,
        }
    }
    Ok(())
}

fn is_used(host: &Host, device: &Device) -> Result<bool> {
    let mounted = !Table::read(host.kernel)?
        .of_device(host.kernel, device.number)
        .is_empty();
    let held = !device.holders(host.kernel).unwrap_or_default().is_empty();
    Ok(mounted || held || is_swap(host.kernel, device.number))
}
