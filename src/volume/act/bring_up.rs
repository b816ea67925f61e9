//! Carries a decision out, under the volume's lock, and looks again wherever time has passed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use nix::libc::{EINVAL, ENOENT, ESTALE};

use super::activate::{Job, ensure_not_suspended};
use super::make::make;
use crate::fs;
use crate::host::Lock;
use crate::lvm::{self, Volume};
use crate::mount::{Row, Source, bind, make_dirs, mount_device, set_read_only};
use crate::names::FsType;
use crate::options::MountOptions;
use crate::volume::decide::{Content, Decision, Elsewhere, Grow, Level, Mount, Refusal, There};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::look::{Look, require_same};

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
    under_lock(job, dir, &device, &lock).inspect_err(|_| {
        for dir in made {
            // It may hold something by now.
            let _ = kernel.remove_dir(dir);
        }
    })
}

/// What others need to do something meanwhile: after a step that took this long it is looked once more.
const LONG: Duration = Duration::from_secs(2);

/// Looks, decides and does one thing, until the volume is at `dir`. `lock` is that of the volume `of`
/// which `dir` is to have. What was waited for is followed by another look, here and nowhere else.
fn under_lock(job: &Job, dir: &Path, of: &Device, lock: &Lock) -> Result<Option<String>> {
    const TRIES: usize = 8;
    let (host, id) = (job.host, &job.options.id);
    let wish = job.wish(Some(dir));
    let mut being_made = None;
    // The filesystem that was checked, and grown if that comes first.
    let mut prepared = None;
    let mut remarks = Vec::new();
    for _ in 0..TRIES {
        let looked = Instant::now();
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
        if device.lv_uuid != of.lv_uuid {
            // Its name is another volume's by now, of which nobody holds the lock.
            bail!("{id} was replaced by another volume just now; the call may be repeated");
        }
        let began = Instant::now();
        let how = match decision {
            Decision::Keep { read_only } => return keep(job, &seen, dir, read_only),
            Decision::Bind(from) => {
                note_options(job, &from);
                match bind(host.kernel, &from, dir, wish.read_only) {
                    // An unmount needs no lock: what was to be bound from may have gone just now.
                    Err(error) if is_gone(&error) => continue,
                    done => return done.map(|()| None),
                }
            }
            Decision::Resume => {
                ensure_not_suspended(host, &device)?;
                continue;
            }
            Decision::Mount(how) => how,
            Decision::Make { fs, again } => match make(job, &mut seen, &device, fs, again, lock)? {
                Some(uuid) => Mount::of_made(fs, uuid),
                None => continue,
            },
            Decision::Refuse(reason) => return Err(Refusal::of(id, reason).into()),
            // What was there a moment ago has changed.
            Decision::Look(_)
            | Decision::Ready
            | Decision::Create(_)
            | Decision::Activate
            | Decision::Extend => continue,
        };
        let is_prepared = prepared.as_ref() == Some(&how.uuid);
        let how = Mount {
            check: how.check && !is_prepared,
            grow: match how.grow {
                Grow::Before if is_prepared => Grow::Not,
                grow => grow,
            },
            ..how
        };
        // e2fsck and mount(8) claim the device themselves. Until it is mounted its number stays its own.
        let _pin = device.pin(host.kernel)?;
        seen.claim = None;
        remarks.extend(prepare(job, &seen, &device, &how, dir, lock)?);
        if began.elapsed() >= LONG {
            prepared = Some(how.uuid);
            continue;
        }
        // The look itself took long. A disk that is always slow would never be looked at in time, so it is
        // only asked who has it open by now.
        let is_free = !matches!(seen.facts.content, Some(Content::Claimed(_)));
        if looked.elapsed() >= LONG
            && is_free
            && let Some(Decision::Refuse(reason)) = seen.openers_now(&wish)?
        {
            return Err(Refusal::of(id, reason).into());
        }
        remarks.extend(mount_first(job, &seen, &device, &how, dir, lock)?);
        return Ok((!remarks.is_empty()).then(|| remarks.join("; ")));
    }
    bail!(
        "what is known of {id} changes all the time, or something else is mounted over its mounts \
         (`findmnt`); the call may be repeated"
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

/// What comes before a mount: the check, and what has to be on the disk first. Returns what a success
/// should not hide.
fn prepare(
    job: &Job,
    seen: &Look,
    device: &Device,
    how: &Mount,
    dir: &Path,
    lock: &Lock,
) -> Result<Option<String>> {
    let (host, mut remark) = (job.host, None);
    if how.check {
        let all = how.grow == Grow::Before;
        fs::check(host, &device.node(host.kernel), all, lock).with_context(|| {
            format!(
                "checking the filesystem of {}; if it has errors, save what is needed and repair \
                 it with `e2fsck -f {}`",
                device.id,
                device.path.display()
            )
        })?;
    }
    if how.grow == Grow::Before
        && let Err(error) = fs::grow(host, how.fs, &device.node(host.kernel), dir, lock)
    {
        remark = Some(format!("{} is not grown: {error:#}", device.id));
    }
    // A tag that allows mkfs must be gone before there can be data: from here on this call may be
    // killed, and the repeated one finds a mount and looks no further.
    if how.record && is_recorded_first(volume_of(seen)?) {
        record(job, seen, how, lock)?;
    }
    Ok(remark)
}

fn volume_of<'a>(seen: &'a Look) -> Result<&'a Volume> {
    let id = &seen.facts.id;
    seen.facts
        .volume()
        .with_context(|| format!("LVM was not asked for {id}"))
}

fn is_recorded_first(volume: &Volume) -> bool {
    volume.record.making.is_some() || volume.record.permission.is_some()
}

fn record(job: &Job, seen: &Look, how: &Mount, lock: &Lock) -> Result<()> {
    let volume = volume_of(seen)?;
    let tags = volume.record.replaced_by(lvm::made_tag(how.fs, &how.uuid));
    lvm::retag(job.host, volume.target(), &tags, Some(lock))
}

/// Mounts the filesystem, notes it, and grows it if the volume was extended. Returns what a success
/// should not hide.
fn mount_first(
    job: &Job,
    seen: &Look,
    device: &Device,
    how: &Mount,
    dir: &Path,
    lock: &Lock,
) -> Result<Vec<String>> {
    let (host, config, options) = (job.host, job.config, job.options);
    let (fs, volume) = (how.fs, volume_of(seen)?);
    if !how.elsewhere.is_empty() {
        host.log
            .about("elsewhere", &Elsewhere::list(&how.elsewhere));
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
    device.require_still_there(host.kernel)?;
    mount_device(
        host,
        &Source {
            id: &device.id,
            node: &device.node(host.kernel),
            number: device.number,
            fs,
            options: &mount_options,
            read_only: options.read_only,
        },
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
    if how.record
        && !is_recorded_first(volume)
        && let Err(error) = record(job, seen, how, lock)
    {
        host.log.about("unrecorded", &format!("{error:#}"));
    }
    if how.grow == Grow::After
        && let Err(error) = fs::grow(host, fs, &device.node(host.kernel), dir, lock)
    {
        remarks.push(format!(
            "{} is mounted, but not grown: {error:#}",
            device.id
        ));
    }
    Ok(remarks)
}
