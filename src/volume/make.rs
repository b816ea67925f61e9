//! Makes a filesystem where [`decide`](super::decide::decide) has said so: the only way to mkfs.

use anyhow::{Context, Error, Result, bail};

use super::activate::{Job, require_not_suspended};
use super::decision::{Decision, Purpose};
use super::device::Device;
use super::facts::Lvm;
use super::look::Look;
use crate::fs::{self, Family};
use crate::host::{Lock, ToolError};
use crate::lvm::{Tags, made_tag, making_tag, retag};
use crate::mount::after_undo;
use crate::names::FsType;

/// Makes a filesystem, and returns its UUID. That mkfs is at work is recorded before, and what it
/// made afterwards, so that a killed one is known as such.
pub fn make(
    job: &Job,
    seen: &mut Look,
    device: &Device,
    fs: FsType,
    again: bool,
    lock: &Lock,
) -> Result<String> {
    let (host, config, options) = (job.host, job.config, job.options);
    let lvm = seen.facts.lvm.clone();
    let (Some(Lvm::Volume { volume, .. }), Some(claim)) = (&lvm, seen.claim.take()) else {
        bail!("{} was not looked at", device.id);
    };
    let record = &volume.record;
    let making = making_tag(fs);
    let is_begun = record.tags.contains(&making);
    // A mkfs of another type was cut short before: only the newest attempt counts.
    let earlier: Vec<String> = record.unmade_tags().map(str::to_owned).collect();
    if !is_begun {
        let begun = Tags {
            add: vec![making.clone()],
            remove: earlier.clone(),
        };
        device.require_still_there(host.kernel)?;
        retag(host, &device.id, &begun, Some(lock))?;
    }
    // A second descriptor keeps the device from being removed and its number given to another;
    // the first must go, because mkfs itself opens the device exclusively.
    let pin = host
        .kernel
        .open_device(&device.path, false)
        .with_context(|| format!("opening {}", device.path.display()))?;
    drop(claim);
    device.require_still_there(host.kernel)?;
    require_not_suspended(host.kernel, device)?;

    let more = config.mkfs_options(device.id.vg(), fs);
    if let Err(error) = fs::mkfs(host, fs, &device.path, &more, again, lock) {
        let refused = matches!(error, ToolError::Failed { .. } | ToolError::Missing { .. });
        let mut error = Error::from(error);
        if refused && options.size.is_some() {
            error = error.context(format!(
                "if it is too small, `lvextend` or `lvremove` {} by hand: its option `size` counts \
                 only when it is made",
                device.id
            ));
        }
        let error = error.context(format!("making {fs} on {}", device.id));
        drop(pin);
        // A mkfs that refused may have left the volume as blank as it was.
        let mut now = job.look(None);
        now.facts.lvm.clone_from(&lvm);
        let mut wish = job.wish(None);
        wish.purpose = Purpose::Filesystem;
        let is_untouched = !again
            && !is_begun
            && refused
            && matches!(now.settle(&wish), Ok(Decision::Make { again: false, .. }));
        if is_untouched {
            let tags = Tags {
                add: earlier,
                remove: vec![making],
            };
            let undo = retag(host, &device.id, &tags, Some(lock));
            return Err(after_undo(error, undo));
        }
        return Err(error);
    }
    let made = fs::read_primary(&pin)
        .with_context(|| format!("reading {} after mkfs", device.path.display()))?
        .filter(|made| made.family == Family::of(fs) && !made.in_progress)
        .with_context(|| {
            format!(
                "mkfs.{fs} said that it succeeded, but {} does not hold {fs}; see the kernel's log \
                 for write errors",
                device.id
            )
        })?;
    let mut tags = record.replaced_by(made_tag(fs, &made.uuid));
    if !is_begun {
        tags.remove.push(making);
    }
    device.require_still_there(host.kernel)?;
    retag(host, &device.id, &tags, Some(lock))?;
    Ok(made.uuid)
}
