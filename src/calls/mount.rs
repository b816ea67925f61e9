//! `mountdevice` and `mount`: both end with the volume's filesystem at a directory, and differ
//! only in which directory kubelet names.

use std::path::Path;

use anyhow::{Error, Result, bail};
use nix::libc::{EINVAL, ENOENT, ESTALE};

use super::bring_up::{ensure_active, hold_active, note_name, require_same, same_name_advice};
use super::first_mount::{FirstMount, mount_first};
use super::host_use::require_not_the_hosts;
use crate::config::{Config, Loaded};
use crate::device::{Device, volume_of};
use crate::host::{Host, Lock};
use crate::mount::{
    Place, Row, Table, after_undo, bind, is_kubelets, make_dirs, mounted_at, set_read_only,
};
use crate::options::Options;
use crate::reply::Reply;

/// `mountdevice <global dir> <device> <options>` and `mount <dir> <options>`: puts the volume's
/// filesystem at `dir`, making it first if the volume is blank. A volume that is mounted already
/// is bound from there: from the global mount in attach mode, from another pod's otherwise.
///
/// Calling it again succeeds and changes nothing.
pub fn run(
    host: &Host,
    config: &Loaded,
    dir: &Path,
    word: &str,
    options: &Options,
) -> Result<Reply> {
    let config = config.require()?;
    let device = ensure_active(host, config, options)?.map_err(|m| m.error(options))?;
    require_same(host, word, &device, options)?;
    if stands(host, dir, &device, options)? {
        return Ok(Reply::success());
    }
    if let Some(there) = mounted_row(host, dir)? {
        return keep(host, &there, &device, dir, options);
    }
    let (device, lock) = hold_active(host, config, options, device)?;
    // Another call may have mounted it while this one waited.
    if let Some(there) = mounted_row(host, dir)? {
        return keep(host, &there, &device, dir, options);
    }
    require_free_name(host, config, dir, &device, options)?;
    let made = make_dirs(host.kernel, dir)?;
    let call = Call {
        host,
        config,
        device: &device,
        dir,
        options,
        lock: &lock,
    };
    match call.bring_up() {
        Ok(message) => {
            note_name(host, config, options, &device);
            Ok(Reply::success().with_message(&message.unwrap_or_default()))
        }
        Err(error) => Err(after_undo(error, made.undo(host.kernel))),
    }
}

/// Whether the volume is mounted at `dir` as it is wanted, which the kernel answers without a look
/// at all other mounts of the node. "No" may also mean that it cannot be told this way.
fn stands(host: &Host, dir: &Path, device: &Device, options: &Options) -> Result<bool> {
    let kernel = host.kernel;
    Ok(mounted_at(kernel, dir)?.is_some()
        && kernel.filesystem_device(dir).ok() == Some(device.number)
        // Only now: this asks the filesystem, and it is known to be the volume's.
        && kernel.is_read_only(dir).ok() == Some(options.read_only))
}

/// What is mounted at `dir` itself.
fn mounted_row(host: &Host, dir: &Path) -> Result<Option<Row>> {
    let Some(id) = mounted_at(host.kernel, dir)? else {
        return Ok(None);
    };
    // It may have been unmounted since: then there is nothing.
    Ok(Table::read(host.kernel)?.by_id(id).cloned())
}

/// Leaves what is mounted there, if it is this volume.
fn keep(host: &Host, there: &Row, device: &Device, dir: &Path, options: &Options) -> Result<Reply> {
    if !there.is_of(host.kernel, device) {
        bail!(
            "{} already holds {}, not {}. {}",
            dir.display(),
            name_of(host, there),
            device.id,
            same_name_advice(options.volume_name.as_deref())
        );
    }
    if !options.read_only && there.is_filesystem_read_only() {
        bail!(
            "{} holds {} read-only, and it is wanted for writing. If another pod mounted it \
             read-only, this works when that pod is gone; if the kernel made it read-only because \
             of an error (`dmesg`), stop the pods that use it and check the filesystem",
            dir.display(),
            device.id
        );
    }
    if options.read_only != there.is_read_only() {
        // A call was cut short between binding and this.
        set_read_only(host.kernel, there, dir, options.read_only)?;
    }
    Ok(Reply::success())
}

fn name_of(host: &Host, row: &Row) -> String {
    match volume_of(host.kernel, row.block_device(host.kernel)) {
        Some(volume) => volume.id.to_string(),
        None => format!("{} ({})", row.source.display(), row.fs_type),
    }
}

/// In attach mode the global directory of this pod's volume belongs to it alone.
fn require_free_name(
    host: &Host,
    config: &Config,
    dir: &Path,
    device: &Device,
    options: &Options,
) -> Result<()> {
    let Place::Pod { global } = Place::of(dir) else {
        return Ok(());
    };
    if !config.attach {
        return Ok(());
    }
    match mounted_row(host, &global)? {
        Some(other) if !other.is_of(host.kernel, device) => bail!(
            "{} holds {}, not {}. {}",
            global.display(),
            name_of(host, &other),
            device.id,
            same_name_advice(options.volume_name.as_deref())
        ),
        _ => Ok(()),
    }
}

/// One call, with all that it works on.
struct Call<'a> {
    host: &'a Host<'a>,
    config: &'a Config,
    device: &'a Device,
    dir: &'a Path,
    options: &'a Options,
    lock: &'a Lock,
}

impl Call<'_> {
    /// Binds from a mount that stands, or mounts the device. Returns what a success should not
    /// hide.
    fn bring_up(&self) -> Result<Option<String>> {
        const TRIES: usize = 8;
        let kernel = self.host.kernel;
        for _ in 0..TRIES {
            let table = Table::read(kernel)?;
            let mounts = table.of_device(kernel, self.device);
            require_not_the_hosts(self.host, self.config, self.device, &mounts, self.dir)?;
            let Some(from) = self.best(&mounts) else {
                return mount_first(&FirstMount {
                    host: self.host,
                    config: self.config,
                    device: self.device,
                    dir: self.dir,
                    options: self.options,
                    lock: self.lock,
                });
            };
            if !self.options.read_only && from.is_filesystem_read_only() {
                bail!(
                    "{} is mounted read-only at {}, so it cannot be written here. If another pod \
                     mounted it read-only, this works when that pod is gone; if the kernel made it \
                     read-only because of an error (`dmesg`), stop the pods that use it and check \
                     the filesystem",
                    self.device.id,
                    from.mount_point.display()
                );
            }
            match bind(kernel, from, self.dir, self.options.read_only) {
                // An unmount needs no lock: what was to be bound from may have gone just now.
                Err(error) if is_gone(&error) => {}
                done => return done.map(|()| None),
            }
        }
        bail!(
            "the mounts of {} change faster than they can be read; the call may be repeated",
            self.device.id
        )
    }

    /// The mount to bind from: one of all of the filesystem, the global one before others, one
    /// that can be written before one that cannot.
    fn best<'r>(&self, mounts: &[&'r Row]) -> Option<&'r Row> {
        let mut whole: Vec<&Row> = mounts
            .iter()
            .copied()
            .filter(|row| row.is_whole())
            .collect();
        whole.sort_by_key(|row| {
            (
                !is_kubelets(&row.mount_point, &self.config.kubelet_dirs),
                Place::of(&row.mount_point) != Place::Global,
                row.is_read_only(),
            )
        });
        whole.first().copied()
    }
}

fn is_gone(error: &Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
        .is_some_and(|code| matches!(code, EINVAL | ENOENT | ESTALE))
}
