//! Grows a volume, and all that is on it.

use anyhow::{Context, Result, bail};

use super::grow_filesystem::grow_filesystem;
use super::grow_inside::{grow_inside, require_filled, require_fit};
use super::release::give_up;
use crate::fs::{self, Family};
use crate::host::{Host, Lock};
use crate::lvm::{self, Volume};
use crate::mount::Row;
use crate::names::{Bytes, FsType, Shown};
use crate::volume::decide::{Decision, Facts, Ground, When, when_it_grows, wider};
use crate::volume::device::{Device, Pinned};
use crate::volume::inside::Inside;
use crate::volume::job::Job;
use crate::volume::lock::HeldLocks;
use crate::volume::step::Step;
use crate::volume::subject::Subject;

/// Extends the volume, and grows all that is on it. Returns the volume's size. If the filesystem does not grow now,
/// also returns a text that says when it will.
pub fn grow(job: &Job) -> Result<(Bytes, Option<&'static str>)> {
    let grown = job.conduct(|seen, decision, locks| {
        grow_all(job, &seen.facts, &decision, locks).map(Step::Done)
    });
    give_up(job.subject);
    grown
}

fn grow_all(
    job: &Job,
    facts: &Facts,
    decision: &Decision,
    locks: &mut HeldLocks,
) -> Result<(Bytes, Option<&'static str>)> {
    let host = job.subject.host;
    let device = facts.require_device()?.clone();
    // While LVM and the filesystem's tool work, the pin keeps the device's number from another device.
    let on = device.pin(host.kernel)?;
    let volume = facts.require_volume()?;
    let inside = facts.inside();
    if let Some(Inside { device, .. }) = inside {
        let size = decision.extends_to().unwrap_or(volume.device_size());
        require_fit(job.subject, device, size)?;
    }
    let size = extend_as_decided(job, facts, decision, &on.device, locks)?;
    let lock = locks.of_volume()?;
    if let Some(Inside { device, .. }) = inside {
        grow_inside(job.subject, device, lock)?;
        require_filled(job.subject, &on.device, device)?;
    }
    let top = inside.map_or(&on.device, |inside| &inside.device);
    let later = grow_mounted(job, facts, top, lock)?;
    Ok((size, later))
}

/// Extends the volume if that was decided. Returns the size that it has then. Gives up the group's lock.
fn extend_as_decided(
    job: &Job,
    facts: &Facts,
    decision: &Decision,
    device: &Device,
    locks: &mut HeldLocks,
) -> Result<Bytes> {
    let id = job.subject.id;
    // Of the open files that they inherit, LVM's commands keep only standard input. So they can hold only one lock: the
    // group's. The volume's lock is not needed there, since LVM itself lets nobody else change the volume meanwhile.
    let group = locks.group.take();
    if let Some(size) = decision.extends_to() {
        let group = group.as_ref().context("the group's lock is not held")?;
        extend(job, facts, device, size, group)?;
        return Ok(size);
    }
    if *decision != Decision::Ready {
        bail!("{decision:?} is no decision about the size of {id}");
    }
    Ok(facts.require_volume()?.device_size())
}

/// Extends the volume to `size`, and its device with it.
fn extend(job: &Job, facts: &Facts, device: &Device, size: Bytes, lock: &Lock) -> Result<()> {
    let host = job.subject.host;
    let volume = facts.require_volume()?;
    // lvextend finds the volume by its name, which another volume may have by now.
    device.require_still_there(host.kernel)?;
    if volume.device_size() < size {
        let fitting = facts.ground.as_ref().and_then(Ground::fitting);
        let disks = fitting.map_or_else(Vec::new, |fitting| fitting.disks);
        lvm::extend(host, volume, device.number, (size, &disks), lock)?;
    } else {
        // A failed lvextend has changed LVM's metadata, but not the device.
        lvm::refresh(host, device.target(), device.number, lock)?;
    }
    require_device_of(job.subject, volume, device, size)
}

/// Fails if the device has not become as large as LVM said. `volume`: LVM's row from before that.
fn require_device_of(
    subject: Subject,
    volume: &Volume,
    device: &Device,
    size: Bytes,
) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let has = device.size(host.kernel)?;
    if has >= size {
        return Ok(());
    }
    let vg = id.vg();
    let advice = if volume.device_size() < size {
        format!(
            "If volumes of {vg} were renamed just now, another volume may have become larger (`lvs -o +lv_uuid,lv_size \
             {vg}`; this one is {})",
            device.lv_uuid
        )
    } else {
        format!(
            "If it is a RAID that is being reshaped (`lvs -o raid_sync_action,sync_percent {id}`), it grows when that \
             has ended"
        )
    };
    bail!(
        "LVM says that {id} is {} large, but its device has {}. {advice}; else see `dmsetup table {}` and `lvs -o \
         +devices {id}`",
        size.rounded(),
        has.rounded(),
        id.dm_name()
    );
}

/// Grows the filesystem through a writable mount: the mount at the call's directory, or else another. If the filesystem
/// cannot grow now, returns a text that says when it will.
fn grow_mounted(
    job: &Job,
    facts: &Facts,
    top: &Device,
    lock: &Lock,
) -> Result<Option<&'static str>> {
    let rows = facts.uses.iter().flat_map(|uses| &uses.mounts);
    let writable = rows
        .map(|mounted| &mounted.row)
        .filter(|row| !row.is_read_only());
    match writable.min_by_key(|row| Some(&*row.mount_point) != job.dir) {
        None => Ok(Some("when it is mounted for writing")),
        Some(row) => grow_mounted_at(job, top, row, lock),
    }
}

fn grow_mounted_at(
    job: &Job,
    top: &Device,
    row: &Row,
    lock: &Lock,
) -> Result<Option<&'static str>> {
    let Subject { host, id, .. } = job.subject;
    // The tools of xfs and btrfs get this path, and another mount may be there after the wait for LVM's lock.
    if host.kernel.mount_id(&row.mount_point).ok() != Some(row.id) {
        return Ok(Some("when it is mounted again"));
    }
    let fs = FsType::parse(&row.fs_type)?;
    if let Some(later) = cannot_grow(fs, top.size(host.kernel)?) {
        return Ok(Some(later));
    }
    if host.kernel.device_number(&row.source)? != Some(top.number) && fs != FsType::Btrfs {
        bail!(
            "{id} was renamed while it was mounted from {}, and the tool that grows {fs} goes by that \
             name. The volume is large enough; its filesystem grows at the next mount: end the pods \
             that use it, and start them again",
            row.source.shown()
        );
    }
    let on = top.clone().pin(host.kernel)?;
    let grown = grow_filesystem(job.subject, fs, &on, (&row.mount_point, Some(row.id)), lock);
    if grown.is_err() && fs.is_ext() && only_grows_unmounted(host, &on) {
        return Ok(Some(
            "before its next mount, because the kernel grows no ext with the feature `sparse_super2` that is mounted",
        ));
    }
    grown.with_context(|| match Family::of(fs) {
        Family::Ext => format!(
            "growing {id}; the volume is large enough. {}; LVM's and the filesystem's words follow",
            wider(id)
        ),
        Family::Xfs | Family::Btrfs => format!("growing {id}"),
    })?;
    Ok(None)
}

/// When a mounted filesystem of this type grows to this size, if the kernel cannot grow it now.
fn cannot_grow(fs: FsType, size: Bytes) -> Option<&'static str> {
    match when_it_grows(fs, false, size) {
        When::After => None,
        When::Before => {
            Some("before its next mount, because the kernel grows no ext2 that is mounted")
        }
        When::Not => Some("once it has 256 MiB: the kernel grows no btrfs to less"),
    }
}

/// Whether the kernel refuses to grow this ext while it is mounted.
fn only_grows_unmounted(host: &Host, on: &Pinned) -> bool {
    let found = fs::superblock_of(host, (&on.file, &on.device.path));
    found.is_ok_and(|found| found.is_some_and(|found| found.only_unmounted))
}
