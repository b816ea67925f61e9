//! A volume that the host uses for itself is nobody else's, whatever a pod's author writes.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::config::Config;
use crate::device::{Device, is_swap};
use crate::host::Host;
use crate::lvm::{Found, find};
use crate::mount::{Row, is_kubelets};

/// Fails if the host has the volume mounted outside kubelet's directories, swaps on it, or has
/// built another device on it, or a loop device.
///
/// # Errors
/// What the host uses it for.
pub fn require_not_the_hosts(
    host: &Host,
    config: &Config,
    device: &Device,
    mounts: &[&Row],
    dir: &Path,
) -> Result<()> {
    let id = &device.id;
    if is_swap(host.kernel, device.number) {
        bail!("{id} is swap space of this host (`swapon --show`), so no pod can have it");
    }
    let holders = device
        .holders(host.kernel)
        .with_context(|| format!("looking for devices on top of {id}"))?;
    if !holders.is_empty() {
        bail!(
            "{id} is part of another device of this host ({}; see `lsblk {}`), so no pod can have \
             it",
            holders.join(", "),
            device.path.display()
        );
    }
    let loops = device
        .loops(host.kernel)
        .with_context(|| format!("looking for loop devices on top of {id}"))?;
    if let Some(first) = loops.first() {
        bail!(
            "{id} is used through a loop device of this host ({}), so no pod can have it; if \
             nobody needs that, run `losetup --detach /dev/{first}`",
            loops.join(", ")
        );
    }
    let is_ours = |path: &Path| is_kubelets(path, &config.kubelet_dirs);
    let Some(foreign) = mounts.iter().find(|row| !is_ours(&row.mount_point)) else {
        return Ok(());
    };
    // A person at a shell mounts where he likes, and twice: his first mount is not the host's own
    // use if the driver's record is on the volume. kubelet never names such a directory.
    if !is_ours(dir) && is_recorded(host, config, device)? {
        return Ok(());
    }
    bail!(
        "{id} is mounted by the host itself at {}, so no pod can have it. If that is a mount made \
         by hand, unmount it; if it is kubelet's own directory, name that in `kubelet_dirs` of \
         config.toml",
        foreign.mount_point.display()
    )
}

fn is_recorded(host: &Host, config: &Config, device: &Device) -> Result<bool> {
    Ok(match find(host, &device.id, config.limits.query)? {
        Found::Volume(volume) => volume.record.made.is_some(),
        Found::NoVolume | Found::NoGroup => false,
    })
}
