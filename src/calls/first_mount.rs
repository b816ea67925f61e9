//! The mount of a volume that is mounted nowhere on this host yet: the only way to mkfs.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::bring_up::require_usable;
use super::suspended::ensure_not_suspended;
use crate::config::Config;
use crate::device::Device;
use crate::fs::{Ready, Subject, check, grow_if_smaller, prepare};
use crate::host::{Host, Lock};
use crate::lock;
use crate::lvm::{self, Found, Volume};
use crate::mount::mount_device;
use crate::names::{FsType, LvId};
use crate::options::{MountOptions, Options};

/// All that the first mount works on.
pub struct FirstMount<'a> {
    /// Tools and kernel.
    pub host: &'a Host<'a>,
    /// The node's config.
    pub config: &'a Config,
    /// The volume's device.
    pub device: &'a Device,
    /// Where it is to be mounted.
    pub dir: &'a Path,
    /// The volume's options.
    pub options: &'a Options,
    /// The volume's lock.
    pub lock: &'a Lock,
}

/// Finds or makes the filesystem, checks it, mounts it, notes it, and grows it if the volume was
/// extended. Returns what a success should not hide.
///
/// # Errors
/// The first of these that fails; the volume is not mounted then.
pub fn mount_first(call: &FirstMount) -> Result<Option<String>> {
    let FirstMount {
        host,
        config,
        device,
        dir,
        options,
        lock,
    } = *call;
    let limits = &config.limits;
    ensure_not_suspended(host, config, device)?;
    let volume = ask_lvm(host, config, device)?;
    // A call that was killed may have left its lvcreate at work, which wipes what is on the volume.
    let making = || lock::hold_name(host.kernel, &device.id.dm_name(), limits.lock);
    let _being_made = volume.record.new.then(making).transpose()?;
    require_usable(&volume)?;
    if !options.read_only {
        require_room(host, config, &volume)?;
    }
    let ready = prepare(&Subject {
        host,
        config,
        device,
        volume: &volume,
        lock,
        wanted: options.fs,
        read_only: options.read_only,
    })?;
    if !options.read_only {
        if !volume.writable || device.is_read_only(host.kernel) {
            bail!(
                "{} is a read-only logical volume: ask for it with readOnly, or make it writable \
                 with `lvchange --permission rw {0}`",
                device.id
            );
        }
        if !ready.fresh {
            check(host, limits, device, &ready, lock)?;
        }
    }
    let mount_options = config
        .mount_options(device.id.vg(), ready.fs)
        .and(&for_a_clone(&volume, ready.fs)?)
        .and(&options.mount_options);
    // A tag that allows mkfs must be gone before there can be data: from here on this call may be
    // killed, and the repeated one finds a mount and looks no further.
    let record = &volume.record;
    let may_be_formatted = record.making.is_some() || record.may_format || record.new;
    if may_be_formatted {
        device.require_still_there(host.kernel)?;
        adopt(host, config, &volume, &ready, lock)?;
    }
    device.require_still_there(host.kernel)?;
    mount_device(
        host,
        limits,
        device,
        ready.fs,
        &mount_options,
        options.read_only,
        dir,
        lock,
    )?;

    let mut remarks = Vec::new();
    if !volume.health.is_empty() {
        remarks.push(format!(
            "{} is mounted, but LVM says that it is not well: {}; see `lvs -a -o +devices,lv_health_status {0}`",
            device.id, volume.health
        ));
    }
    // From here on the volume is mounted with its data: what fails now is said, and no reason to
    // keep a pod from it.
    if !may_be_formatted {
        let still_there = device.require_still_there(host.kernel);
        if let Err(error) = still_there.and_then(|()| adopt(host, config, &volume, &ready, lock)) {
            host.log.about("unrecorded", &format!("{error:#}"));
        }
    }
    if !options.read_only
        && let Err(error) = grow_if_smaller(host, limits, device, (ready.fs, ready.size), dir, lock)
    {
        remarks.push(format!(
            "{} is mounted, but not grown: {error:#}",
            device.id
        ));
    }
    Ok((!remarks.is_empty()).then(|| remarks.join("; ")))
}

/// What LVM says of the volume whose device this is.
fn ask_lvm(host: &Host, config: &Config, device: &Device) -> Result<Volume> {
    let id = &device.id;
    match lvm::find(host, id, config.limits.query)? {
        Found::Volume(volume) if volume.uuid.replace('-', "") == device.lv_uuid => Ok(*volume),
        Found::Volume(_) => bail!(
            "the active device {} is not the logical volume that LVM calls {id} now; reactivate it \
             (`lvchange -an {id}`, `lvchange -ay {id}`)",
            device.path.display()
        ),
        Found::NoVolume | Found::NoGroup => bail!(
            "{} is active, but LVM does not know {id}: its disks are gone or hidden from LVM \
             (`pvs`, `filter` in lvm.conf)",
            device.path.display()
        ),
    }
}

/// Fails if a thin pool is so full that writing to the volume would soon stop, or break it.
///
/// # Errors
/// How full it is, or what else is wrong with it.
pub fn require_room(host: &Host, config: &Config, volume: &Volume) -> Result<()> {
    let Some(pool) = &volume.pool else {
        return Ok(());
    };
    let pool = LvId::new(volume.id.vg().clone(), pool.clone())
        .with_context(|| format!("naming the thin pool of {}", volume.id))?;
    let Found::Volume(pool) = lvm::find(host, &pool, config.limits.query)? else {
        bail!(
            "{} is in the thin pool {pool}, which LVM does not show",
            volume.id
        );
    };
    let limit = f64::from(config.thin_pool_limit);
    let fills = [
        ("data", pool.data_percent),
        ("metadata", pool.metadata_percent),
    ];
    for (what, percent) in fills {
        if let Some(percent) = percent.filter(|percent| *percent >= limit) {
            bail!(
                "the {what} of the thin pool {} is {percent:.1} percent full (the limit is {limit}): \
                 {} is not written to. Extend the pool (`lvextend {}`), free space in it, or raise \
                 `thin_pool_limit` in config.toml",
                pool.id,
                volume.id,
                if what == "data" {
                    format!("--size +SIZE {}", pool.id)
                } else {
                    format!("--poolmetadatasize +SIZE {}", pool.id)
                }
            );
        }
    }
    // "out_of_data", "metadata_read_only", "failed", …: kernel and LVM have seen it break.
    if !pool.health.is_empty() && !pool.health.contains("partial") {
        bail!(
            "the thin pool {0} is not well ({1}), so {2} is not written to; see `lvs -a -o \
             +lv_health_status {0}`, and lvmthin(7) for its repair",
            pool.id,
            pool.health,
            volume.id
        );
    }
    Ok(())
}

/// A snapshot has the UUID of its origin, and xfs mounts no UUID twice. Only a snapshot may share
/// one: for any other volume it would hide a mix-up.
fn for_a_clone(volume: &Volume, fs: FsType) -> Result<MountOptions> {
    let is_snapshot = volume.role.contains("snapshot");
    MountOptions::parse(if is_snapshot && fs == FsType::Xfs {
        "nouuid"
    } else {
        ""
    })
}

/// Records a filesystem that the driver did not make itself, or whose making it did not see end.
fn adopt(host: &Host, config: &Config, volume: &Volume, ready: &Ready, lock: &Lock) -> Result<()> {
    if ready.recorded {
        return Ok(());
    }
    let made = lvm::made_tag(ready.fs, &ready.uuid);
    let tags = volume.record.replaced_by(made);
    lvm::retag(host, &config.limits, &volume.id, &tags, Some(lock))
}
