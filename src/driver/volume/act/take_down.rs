//! Takes a volume down after its pod: unmounts it, closes it and deactivates it.

use std::path::Path;

use anyhow::{Result, bail};

use super::close::close;
use super::conduct::ensure_not_suspended;
use super::release::{LONGEST_LOOK, release};
use crate::config::Config;
use crate::host::{Host, Kernel};
use crate::mount::{KubeletPath, Row, Table, ensure_unmounted, is_kubelets, mounted_at};
use crate::names::{FsType, Shown};
use crate::volume::device::Device;
use crate::volume::kernel_tables::volume_of;
use crate::volume::lock;
use crate::volume::subject::Subject;

/// Unmounts the directory. Returns the volume whose filesystem was there. `None`: nothing was mounted there, or
/// something that is no logical volume.
pub fn take_off(
    host: &Host,
    config: &Config,
    dir: &Path,
    place: &KubeletPath,
) -> Result<Option<Device>> {
    let Some(id) = mounted_at(host.kernel, dir)? else {
        return Ok(None);
    };
    let table = Table::read(host.kernel)?;
    let mut device = None;
    if let Some(row) = table.by_id(id) {
        require_a_volume(row, place, dir)?;
        device = volume_of(host.kernel, row.block_device());
        match &device {
            Some(device) => {
                host.log.about("volume", &device.id.to_string());
                let id = &device.id;
                // An unmount may write data back, and would wait for ever for a suspended device.
                ensure_not_suspended(Subject { host, config, id }, device)?;
            }
            None => host.log.about("source", &row.source.shown().to_string()),
        }
    }
    // Runs before the unmount: if this call is killed between the two, the repeated call finds the volume by its mount.
    if let (Some(device), KubeletPath::Pod { global }) = (&device, place)
        && let Err(error) = clear_other_globals(host, config, device, &table, (dir, global))
    {
        // The pod must be able to end. `doctor` names what is left.
        host.log.about("left-mounted", &format!("{error:#}"));
    }
    ensure_unmounted(host, dir)?;
    Ok(device)
}

/// Unmounts the volume's global mounts of other names than `global`, if the pod that has it at `dir` is its last one.
///
/// Several `PersistentVolume`s of one volume share the global mount of the first. kubelet unmounts that mount after the
/// last pod of its own name. It does not while another pod has the volume, and forgets the mount if it restarts then. A
/// global mount of `global`'s own name stays: kubelet calls `unmountdevice` next, or starts another pod from the mount.
/// A pod of another name may start just now, too: its `mount` waits for the volume's lock, and then mounts the volume
/// at the pod's own directory.
fn clear_other_globals(
    host: &Host,
    config: &Config,
    device: &Device,
    table: &Table,
    (dir, global): (&Path, &Path),
) -> Result<()> {
    let others = |table: &Table| other_globals(host, config, device, table, (dir, global));
    if others(table)?.is_empty() {
        return Ok(());
    }
    let patience = config.limits.lock.min(LONGEST_LOOK);
    let _lock = lock::hold(host.kernel, device.target(), patience)?;
    for row in others(&Table::read(host.kernel)?)? {
        ensure_unmounted(host, &row.mount_point)?;
        // A failure does no harm: kubelet removes the directory after its next restart.
        let _ = host.kernel.remove_dir(&row.mount_point);
    }
    Ok(())
}

/// The volume's global mounts of other names than `global`. Empty if the volume has any other mount than these, the one
/// at `dir` and the one at `global`.
fn other_globals(
    host: &Host,
    config: &Config,
    device: &Device,
    table: &Table,
    (dir, global): (&Path, &Path),
) -> Result<Vec<Row>> {
    let kernel = host.kernel;
    let mut rows = table.of_device(device.number);
    let is_other =
        |row: &&Row| row.mount_point != global && KubeletPath::of(&row.mount_point).is_global();
    if !rows.iter().any(is_other) {
        return Ok(Vec::new());
    }
    for own in [dir, global] {
        if let Some(own) = mounted_at(kernel, own)?.and_then(|id| table.by_id(id)) {
            rows.retain(|row| !table.are_at_one_place(own, row));
        }
    }
    let is_kubelets = |row: &&Row| is_kubelets(kernel, table, row, &config.kubelet_dirs);
    let are_all = rows.iter().all(|row| is_other(row) && is_kubelets(row));
    Ok(rows.into_iter().filter(|_| are_all).cloned().collect())
}

/// If nothing uses a volume any more that has been unmounted: closes it, if it is encrypted, and deactivates it, if the
/// node has to ([`release`]). Returns why an encrypted volume stays open, for the reply. Empty: none does.
pub fn let_go(host: &Host, config: &Config, device: &Device, deactivate: bool) -> Result<String> {
    let id = &device.id;
    let subject = Subject { host, config, id };
    let mut remark = String::new();
    if device.luks.is_some()
        && let Err(error) = close(subject, config.limits.lock)
    {
        // The volume is unmounted. Even if somebody still has it open, the pod must be able to end.
        remark = format!("{error:#}");
        host.log.about("left-open", &remark);
    }
    release(subject, deactivate, config.limits.lock)?;
    Ok(remark)
}

/// Fails if the directory is not kubelet's and its filesystem is of a type that this driver never mounts.
fn require_a_volume(row: &Row, place: &KubeletPath, dir: &Path) -> Result<()> {
    if *place == KubeletPath::Other && FsType::parse(&row.fs_type).is_err() {
        bail!(
            "{} holds {} ({}), which is not a volume of this driver; use umount(8)",
            dir.shown(),
            row.source.shown(),
            row.fs_type
        );
    }
    Ok(())
}

/// Unmounts the global mount that was made before the node left attach mode, if no pod uses it any more. Returns the
/// volume that is or was mounted there. `None`: there is no such mount.
pub fn clear_global(host: &Host, config: &Config, global: &Path) -> Result<Option<Device>> {
    let kernel = host.kernel;
    let Some(row) = row_at(kernel, global, &Table::read(kernel)?)? else {
        return Ok(None);
    };
    let Some(device) = volume_of(kernel, row.block_device()) else {
        return Ok(None);
    };
    let id = &device.id;
    ensure_not_suspended(Subject { host, config, id }, &device)?;
    // The lock is needed, since another pod's `mount` may be about to bind from the global mount.
    let _lock = lock::hold(kernel, device.target(), config.limits.lock)?;
    let table = Table::read(kernel)?;
    let Some(row) = row_at(kernel, global, &table)?.filter(|row| row.is_of(device.number)) else {
        return Ok(Some(device));
    };
    let mounts = table.of_device(device.number);
    if (mounts.iter()).all(|other| table.are_at_one_place(&row, other)) {
        ensure_unmounted(host, global)?;
        // A failure does no harm: kubelet removes the directory after its next restart.
        let _ = kernel.remove_dir(global);
    }
    Ok(Some(device))
}

/// The mount at `dir`, if there is one.
fn row_at(kernel: &Kernel, dir: &Path, table: &Table) -> Result<Option<Row>> {
    let id = mounted_at(kernel, dir)?;
    Ok(id.and_then(|id| table.by_id(id)).cloned())
}
