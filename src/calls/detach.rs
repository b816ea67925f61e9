use std::time::Duration;

use anyhow::Result;

use super::is_here;
use crate::config::{Config, Loaded};
use crate::host::Host;
use crate::lvm;
use crate::mount::Table;
use crate::names::LvId;
use crate::reply::Reply;
use crate::volume::{Device, is_swap, lock};

/// `detach <volume name> <node>`: deactivates the volume if the config asks for that and nothing
/// uses it. Anything that cannot be found is detached already.
pub fn run(host: &Host, config: &Loaded, volume: &str, node: &str) -> Result<Reply> {
    let config_here = config.or_default();
    if !config_here.deactivate || !is_here(host, config, node) || !host.tools.has("lvchange") {
        return Ok(Reply::success());
    }
    deactivate_named(host, config_here, volume)?;
    Ok(Reply::success())
}

/// Deactivates the volumes that kubelet knows by this name, except those that are in use.
pub fn deactivate_named(host: &Host, config: &Config, name: &str) -> Result<()> {
    for id in volumes_named(host, config, name) {
        if let Some(device) = Device::find(host.kernel, &id)? {
            let _lock = lock::hold(host.kernel, &device, config.limits.lock)?;
            deactivate_if_unused(host, config, &device)?;
        }
    }
    Ok(())
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

/// Deactivates a volume, whose lock the caller holds, that is neither mounted nor otherwise in use.
/// Whoever looks at a device that has just been unmounted, as udev does, holds it for a moment.
pub fn deactivate_if_unused(host: &Host, config: &Config, device: &Device) -> Result<()> {
    const TRIES: u32 = 5;
    const APART: Duration = Duration::from_millis(500);
    let mut tries = TRIES;
    loop {
        let table = Table::read(host.kernel)?;
        let mounted = !table.of_device(host.kernel, device.number).is_empty();
        let held = !device.holders(host.kernel).unwrap_or_default().is_empty();
        if mounted || held || is_swap(host.kernel, device.number) {
            return Ok(());
        }
        tries = tries.saturating_sub(1);
        match lvm::deactivate(host, &config.limits, &device.id) {
            Err(_) if tries > 0 && !host.kernel.pause(APART) => {}
            done => return done,
        }
    }
}
