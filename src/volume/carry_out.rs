//! Carries a decision out, under the volume's lock, and looks again wherever time has passed.

use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use nix::libc::{EINVAL, ENOENT, ESTALE};

use super::activate::{Job, ensure_not_suspended};
use super::decision::{Decision, Grow, Level, Mount, Refusal};
use super::device::Device;
use super::facts::{Elsewhere, There};
use super::in_use::require_same;
use super::lock;
use super::look::Look;
use super::make::make;
use crate::fs;
use crate::host::Lock;
use crate::lvm;
use crate::mount::{Row, Source, bind, make_dirs, mount_device, set_read_only};
use crate::names::FsType;
use crate::options::MountOptions;

/// Puts the volume's filesystem at `dir`. `handed`: the device that kubelet hands on, or "".
/// Returns what a success should not hide. Doing it again succeeds and changes nothing.
pub fn bring_up(job: &Job, dir: &Path, handed: &str) -> Result<Option<String>> {
    let kernel = job.host.kernel;
    let device = job.ensure_active()?;
    require_same(job.host, job.options, handed, &device)?;
    let wish = job.wish(Some(dir));
    // What stands already needs no lock.
    let mut seen = job.look(Some(dir));
    match seen.settle_up_to(Level::Uses, &wish)? {
        Decision::Keep { read_only } => return keep(job, &seen, dir, read_only),
        Decision::Refuse(reason) => return Err(Refusal::of(&device.id, reason).into()),
        _ => {}
    }
    let (device, lock) = job.hold_active(device)?;
    job.note_name(&device);
    // Before anything that takes time: kubelet may remove the directory of a pod that has gone, and
    // what is mounted there then would be nobody's.
    let made = dir.ancestors().take_while(|dir| !kernel.exists(dir));
    let made: Vec<&Path> = made.collect();
    make_dirs(kernel, dir)?;
    under_lock(job, dir, &lock).inspect_err(|_| {
        for dir in made {
            // It may hold something by now.
            let _ = kernel.remove_dir(dir);
        }
    })
}

fn under_lock(job: &Job, dir: &Path, lock: &Lock) -> Result<Option<String>> {
    const TRIES: usize = 8;
    let (host, id) = (job.host, &job.options.id);
    let wish = job.wish(Some(dir));
    let mut being_made = None;
    for _ in 0..TRIES {
        let mut seen = job.look(Some(dir));
        seen.settle_up_to(Level::Lvm, &wish)?;
        if being_made.is_none() && seen.facts.is_new() {
            // A killed call may have left its lvcreate at work, which is to wipe what is there.
            let limit = job.config.limits.lock;
            being_made = Some(lock::hold_name(host.kernel, &id.dm_name(), limit)?);
            continue;
        }
        let decision = seen.settle(&wish)?;
        let Some(device) = seen.facts.device.clone() else {
            bail!("{id} was deactivated just now; the call may be repeated");
        };
        match decision {
            Decision::Keep { read_only } => return keep(job, &seen, dir, read_only),
            Decision::Bind(from) => {
                note_options(job, &from);
                match bind(host.kernel, &from, dir, wish.read_only) {
                    // An unmount needs no lock: what was to be bound from may have gone just now.
                    Err(error) if is_gone(&error) => {}
                    done => return done.map(|()| None),
                }
            }
            Decision::Resume => ensure_not_suspended(host, &device)?,
            Decision::Mount(how) => return mount_first(job, &mut seen, &device, &how, dir, lock),
            Decision::Make { fs, again } => {
                let uuid = make(job, &mut seen, &device, fs, again, lock)?;
                let how = Mount {
                    fs,
                    uuid,
                    check: false,
                    grow: Grow::Not,
                    record: false,
                    elsewhere: Vec::new(),
                };
                return mount_first(job, &mut seen, &device, &how, dir, lock);
            }
            Decision::Refuse(reason) => return Err(Refusal::of(id, reason).into()),
            // What was there a moment ago has changed.
            Decision::Look(_)
            | Decision::Ready
            | Decision::Create(_)
            | Decision::Activate
            | Decision::Extend => {}
        }
    }
    bail!(
        "the mounts of {id} change all the time, or something else is mounted over them (`findmnt`); \
         the call may be repeated"
    )
}

fn keep(job: &Job, seen: &Look, dir: &Path, read_only: Option<bool>) -> Result<Option<String>> {
    let uses = seen.facts.uses.as_ref();
    let Some(There::This(row)) = uses.and_then(|uses| uses.there.as_ref()) else {
        return Ok(None);
    };
    note_options(job, row);
    if let Some(read_only) = read_only {
        // A call was killed between binding and this.
        set_read_only(job.host.kernel, row, dir, read_only)?;
    }
    Ok(None)
}

/// Mount options belong to the filesystem, which other pods may use: they count when it is mounted
/// for the first time.
fn note_options(job: &Job, row: &Row) {
    let wanted = job.options.mount_options.joined().unwrap_or_default();
    // ext shows it only where its superblock says otherwise.
    let says_errors = row.super_options.contains("errors=");
    let is_untold = |option: &str| option.starts_with("errors=") && !says_errors;
    let missing: Vec<&str> = wanted
        .split(',')
        .filter(|option| !["", "ro", "rw"].contains(option) && !row.has_option(option))
        .filter(|option| !is_untold(option))
        .collect();
    if !missing.is_empty() {
        job.host
            .log
            .about("mountoptions-not-applied", &missing.join(","));
    }
}

fn is_gone(error: &Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
        .is_some_and(|code| matches!(code, EINVAL | ENOENT | ESTALE))
}

/// Checks the filesystem, mounts it, notes it, and grows it if the volume was extended.
fn mount_first(
    job: &Job,
    seen: &mut Look,
    device: &Device,
    how: &Mount,
    dir: &Path,
    lock: &Lock,
) -> Result<Option<String>> {
    let (host, config, options) = (job.host, job.config, job.options);
    let fs = how.fs;
    let Some(volume) = seen.facts.volume().cloned() else {
        bail!("LVM was not asked for {}", device.id);
    };
    // e2fsck and mount(8) claim the device themselves.
    seen.claim = None;
    let mut remarks = Vec::new();
    if !how.elsewhere.is_empty() {
        host.log
            .about("elsewhere", &Elsewhere::list(&how.elsewhere));
    }
    if how.check {
        let all = how.grow == Grow::Before;
        fs::check(host, &device.path, all, lock).with_context(|| {
            format!(
                "checking the filesystem of {}; if it has errors, save what is needed and repair \
                 it with `e2fsck -f {}`",
                device.id,
                device.path.display()
            )
        })?;
    }
    let grow = || fs::grow(host, fs, &device.id, dir, lock);
    if how.grow == Grow::Before
        && let Err(error) = grow()
    {
        remarks.push(format!("{} is not grown: {error:#}", device.id));
    }
    let of_driver = match fs {
        // Whatever the superblock says: an error in one volume must neither stop the whole node
        // (`tune2fs -e panic`), nor be written on after it (what mke2fs sets).
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => "errors=remount-ro",
        // A snapshot has the UUID of its origin, and xfs mounts no UUID twice. Only a snapshot may
        // share one: for any other volume it would hide a mix-up.
        FsType::Xfs if volume.role.contains("snapshot") => "nouuid",
        FsType::Xfs | FsType::Btrfs => "",
    };
    let (mount_options, overruled) = MountOptions::parse(of_driver)?
        .and(&config.mount_options(device.id.vg(), fs))
        .and_of_pod(&options.mount_options);
    if !overruled.is_empty() {
        host.log
            .about("mountoptions-overruled", &overruled.join(","));
    }
    // A tag that allows mkfs must be gone before there can be data: from here on this call may be
    // killed, and the repeated one finds a mount and looks no further.
    let first = volume.record.making.is_some() || volume.record.permission.is_some();
    let record = || -> Result<()> {
        device.require_still_there(host.kernel)?;
        let tags = volume.record.replaced_by(lvm::made_tag(fs, &how.uuid));
        lvm::retag(host, &device.id, &tags, Some(lock))
    };
    if how.record && first {
        record()?;
    }
    device.require_still_there(host.kernel)?;
    mount_device(
        host,
        &Source {
            id: &device.id,
            path: &device.path,
            number: device.number,
            fs,
            options: &mount_options,
            read_only: options.read_only,
        },
        dir,
        lock,
    )?;

    if !volume.health.is_empty() {
        remarks.push(format!(
            "{} is mounted, but LVM says that it is not well: {}; see `lvs -a -o +devices,lv_health_status {0}`",
            device.id, volume.health
        ));
    }
    // From here on the volume is mounted with its data: what fails now is said, and no reason to
    // keep a pod from it.
    if how.record
        && !first
        && let Err(error) = record()
    {
        host.log.about("unrecorded", &format!("{error:#}"));
    }
    if how.grow == Grow::After
        && let Err(error) = grow()
    {
        remarks.push(format!(
            "{} is mounted, but not grown: {error:#}",
            device.id
        ));
    }
    Ok((!remarks.is_empty()).then(|| remarks.join("; ")))
}
