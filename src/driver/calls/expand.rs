use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::config::Loaded;
use crate::crypt;
use crate::fs::grow;
use crate::host::Host;
use crate::lvm::{self, Larger};
use crate::names::{Bytes, FsType, Shown};
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{
    Decided, Decision, HeldLocks, Job, Purpose, Refusal, Subject, Wish, ensure_not_suspended,
    give_up, lock, look_under_lock,
};

/// `expandfs <options> <device> <dir> <new> <old>` and `expandvolume <options> <dir> <new> <old>`:
/// makes the volume and the filesystem on it at least `size` large, while it is mounted.
///
/// Never shrinks, and may be repeated. Both call-outs do both, because the controller never makes
/// the second: without this nobody would grow the volume itself.
///
/// In a shared group, a volume that is not mounted here is not kept.
pub fn run(
    host: &Host,
    config: &Loaded,
    options: &Options,
    dir: &Path,
    size: Bytes,
) -> Result<Reply> {
    let job = Job::new(host, config.require()?, options);
    let grown = grow_all(&job, dir, size);
    give_up(job.subject);
    grown
}

fn grow_all(job: &Job, dir: &Path, size: Bytes) -> Result<Reply> {
    let Subject { host, config, id } = job.subject;
    let device = job.ensure_active()?;
    let (device, lock) = job.hold_active(device)?;
    let wish = Wish {
        purpose: Purpose::Size(size),
        read_only: false,
        ..job.wish(Some(dir))
    };
    // Until LVM has extended it, nobody else takes what was free when LVM was asked.
    let mut holding = HeldLocks::from(lock);
    holding.group = Some(lock::hold_group(host.kernel, id.vg(), config.limits.lock)?);
    let under_lock = |holding: &mut HeldLocks| {
        let (asker, patience) = (job.asker(Some(dir)), config.limits.lock);
        look_under_lock(job.subject, asker, &wish, patience, holding)
    };
    let mut held = under_lock(&mut holding)?;
    if held.decision == Decision::Resume {
        ensure_not_suspended(job.subject, &device, Some(holding.of_volume()?))?;
        held = under_lock(&mut holding)?;
    }
    let Decided { seen, decision } = held;
    // Its number is given to no other device while LVM and the filesystem's tool work.
    let on = device.pin(host.kernel)?;
    let device = &on.device;
    let volume = seen.facts.require_volume();
    let size = match decision {
        Decision::Refuse(reason) => return Err(Refusal::of(id, reason).into()),
        Decision::Extend(size) => {
            // LVM's commands close all that they inherit but standard input: of the two locks this one,
            // since LVM itself lets nobody else change the volume meanwhile.
            let group = holding
                .group
                .take()
                .context("the group's lock is not held")?;
            let fitting = seen.facts.ground.as_ref();
            let fitting = fitting.and_then(|ground| ground.disks.as_ref());
            let disks = fitting.map_or(&[][..], |fitting| &fitting.disks);
            lvm::extend(host, volume?, &Larger { size, disks }, &group)?;
            size
        }
        _ => volume.map_or(size, |volume| volume.size.max(size)),
    };
    holding.group = None;
    let lock = holding.of_volume()?;
    let inside = seen
        .facts
        .uses
        .as_ref()
        .and_then(|uses| uses.inside.as_ref());
    let inside = inside.map(|inside| inside.device.clone());
    if let Some(inside) = &inside {
        crypt::resize(host, &crypt::name_of(&inside.lv_uuid), lock)
            .with_context(|| format!("growing what is inside the encrypted volume {id}"))?;
    }
    let mounts = seen.facts.uses.map(|uses| uses.mounts).unwrap_or_default();
    let writable = mounts.iter().map(|mounted| &mounted.row);
    let writable = writable.filter(|row| !row.is_read_only());
    let later = |when: &str| {
        Ok(Reply::success().with_message(&format!(
            "{} is {size} large; its filesystem grows {when}",
            device.id
        )))
    };
    let Some(row) = writable.min_by_key(|row| row.mount_point != dir) else {
        return later("when it is mounted for writing");
    };
    // LVM's lock may have been waited for, and the tools of xfs and btrfs go by this path.
    if host.kernel.mount_id(&row.mount_point).ok() != Some(row.id) {
        return later("when it is mounted again");
    }
    let fs = FsType::parse(&row.fs_type)?;
    if fs == FsType::Ext2 {
        return later("before its next mount, because the kernel grows no ext2 that is mounted");
    }
    let top = inside.as_ref().unwrap_or(device);
    // Inside it is smaller, by the header.
    let room = match &inside {
        Some(inside) => inside.size(host.kernel)?,
        None => size,
    };
    if !fs.grows_to(room) {
        return later("once it has 256 MiB: the kernel grows no btrfs to less");
    }
    if host.kernel.device_number(&row.source)? != Some(top.number) && fs != FsType::Btrfs {
        bail!(
            "{} was renamed while it was mounted from {}, and the tool that grows {fs} goes by that \
             name. The volume is large enough; its filesystem grows at the next mount: end the pods \
             that use it, and start them again",
            device.id,
            row.source.shown()
        );
    }
    grow(host, fs, &top.node(host.kernel), &row.mount_point, lock)
        .with_context(|| format!("growing {}", device.id))?;
    Ok(Reply::success())
}
