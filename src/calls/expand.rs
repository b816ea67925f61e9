use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::config::Loaded;
use crate::fs::grow;
use crate::host::Host;
use crate::lvm::{self, Volume};
use crate::names::{Bytes, FsType};
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{
    Decision, Job, Level, Look, Lvm, Pool, Reason, Refusal, ensure_not_suspended, of_pool,
    require_reserve,
};

/// `expandfs <options> <device> <dir> <new> <old>` and `expandvolume <options> <dir> <new> <old>`:
/// makes the volume and the filesystem on it at least `size` large, while it is mounted.
///
/// Never shrinks, and may be repeated. Both call-outs do both, because the controller never makes
/// the second: without this nobody would grow the volume itself.
pub fn run(
    host: &Host,
    config: &Loaded,
    options: &Options,
    dir: &Path,
    size: Bytes,
) -> Result<Reply> {
    let config = config.require()?;
    let job = Job {
        host,
        config,
        options,
    };
    let device = job.ensure_active()?;
    let (device, lock) = job.hold_active(device)?;
    let mut seen = job.look(Some(dir));
    match seen.settle_up_to(Level::Lvm, &job.wish(Some(dir)))? {
        // Grown when it is mounted for writing.
        Decision::Refuse(Reason::ThereReadOnly(_) | Reason::MountedReadOnly(_)) => {}
        Decision::Refuse(reason) => return Err(Refusal::of(&device.id, reason).into()),
        _ => {}
    }
    ensure_not_suspended(host, config, &device)?;
    extend(&job, &seen, size)?;

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
    let fs = FsType::parse(&row.fs_type)?;
    if fs == FsType::Ext2 {
        return later("before its next mount, because the kernel grows no ext2 that is mounted");
    }
    if host.kernel.device_number(&row.source)? != Some(device.number) && fs != FsType::Btrfs {
        bail!(
            "{} was renamed while it was mounted from {}, and the tool that grows {fs} goes by that \
             name. The volume is large enough; its filesystem grows at the next mount: end the pods \
             that use it, and start them again",
            device.id,
            row.source.display()
        );
    }
    grow(
        host,
        &config.limits,
        fs,
        &device.path,
        &row.mount_point,
        &lock,
    )
    .with_context(|| format!("growing the {fs} filesystem of {}", device.id))?;
    Ok(Reply::success())
}

fn extend(job: &Job, seen: &Look, size: Bytes) -> Result<()> {
    let Job { host, config, .. } = *job;
    let id = &job.options.id;
    // Asked anew: the pool counts, whatever is mounted.
    let (volume, pool) = match seen.ask_lvm(true) {
        Lvm::Volume { volume, pool, .. } => (volume, pool),
        Lvm::Silent(words) => return Err(Refusal::of(id, Reason::LvmSilent(words)).into()),
        Lvm::NoGroup | Lvm::NoVolume => return Err(Refusal::of(id, Reason::Unknown).into()),
    };
    let wish = job.wish(None);
    let refused = match pool {
        Some(Pool::Seen(pool)) => of_pool(&pool, &wish),
        Some(Pool::Unseen(pool)) => Some(Reason::NoPool(pool)),
        None => None,
    };
    let largest = wish.create.largest.filter(|largest| size > *largest);
    let refused = refused.or(match largest {
        Some(largest) if size > volume.size => Some(Reason::TooLarge { size, largest }),
        _ => None,
    });
    if let Some(reason) = refused {
        return Err(Refusal::of(id, reason).into());
    }
    if size <= volume.size {
        return Ok(());
    }
    let missing = Bytes::new(size.get().saturating_sub(volume.size.get()));
    // A thin volume takes nothing from the group.
    if volume.pool.is_none()
        && let Some(policy) = config.policy(id.vg())?
    {
        require_reserve(host, config, policy, id, missing)?;
    }
    lvm::extend(host, &config.limits, &volume, size).map_err(|error| {
        if volume.pool.is_none() && volume.free < missing {
            return error.context(no_room(&volume, missing));
        }
        error
    })
}

/// kubelet starts no pod of a claim whose growth fails, so an operator has to know the way back.
fn no_room(volume: &Volume, missing: Bytes) -> String {
    let vg = volume.id.vg();
    format!(
        "{} needs {missing} more, and {vg} has {} free. Extend the group (`vgextend {vg} DEVICE`), \
         or set the claim's request back to {} (Kubernetes 1.32 and later)",
        volume.id, volume.free, volume.size
    )
}
