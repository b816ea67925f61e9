//! `unmount` and `unmountdevice`. The last unmount also does the work of `detach` if nobody calls that.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Result, bail};

use crate::config::Loaded;
use crate::host::Host;
use crate::lvm;
use crate::mount::{KubeletPath, mounted_at};
use crate::names::Shown;
use crate::reply::Reply;
use crate::volume::{clear_global, close_leftovers, let_go, release_named, take_off};

/// `unmount <dir>` and `unmountdevice <global dir>`: unmounts the directory. Succeeds also if nothing is mounted there,
/// or there is no such directory. The unmount is never lazy and never forced, and touches nothing in the directory.
///
/// Without attach mode, nobody calls `unmountdevice` and `detach`, so a volume's last `unmount` does their work, too.
/// In a shared group, the last unmount does the work of `detach` in both modes. In both modes, a volume's last
/// `unmount` also unmounts its global mounts of other names: kubelet may have forgotten them.
pub fn unmount(host: &Host, config: &Loaded, dir: &Path) -> Result<Reply> {
    let config = &config.config;
    let place = KubeletPath::of(dir);
    let is_kubelets = place != KubeletPath::Other;
    if let (true, Some(name)) = (is_kubelets, dir.file_name()) {
        host.log.about("name", &name.shown().to_string());
    }
    let mut device = take_off(host, config, dir, &place)?;
    if let (KubeletPath::Pod { global }, false) = (&place, config.attach) {
        let cleared = clear_global(host, config, global)?;
        if let (None, Some(device)) = (&device, &cleared) {
            host.log.about("volume", &device.id.to_string());
        }
        device = device.or(cleared);
    }
    // In attach mode, `detach` follows the end of the global mount, but the driver cannot rely on that. Since 1.28,
    // kubelet forgets at its restart that it attached the volume. And a controller may run `detach` on its own host,
    // which cannot deactivate a volume of this node.
    if let Some(device) = device {
        let remark = host
            .kernel
            .undo(|| let_go(host, config, &device, config.deactivate))?;
        return Ok(Reply::success().with_message(&remark));
    }
    let deactivate = config.deactivate && (!config.attach || place == KubeletPath::Global);
    // An earlier call may have been killed after it had unmounted the volume.
    if is_kubelets {
        close_leftovers(host, config);
    }
    let is_named = is_kubelets && (deactivate || lvm::has_lvmlockd(host));
    if let (true, Some(name)) = (is_named, dir.file_name().and_then(OsStr::to_str)) {
        // The killed call may also have left the volume active.
        release_named(host, config, name, deactivate)?;
        if mounted_at(host.kernel, dir)?.is_some() {
            bail!(
                "{} was mounted just now, by a call that was killed; repeat this call",
                dir.shown()
            );
        }
    }
    Ok(Reply::success())
}
