//! Makes a filesystem where [`decide`](crate::volume::decide::decide) has said so. Nothing else runs an mkfs that writes to a volume.

use anyhow::{Context, Error, Result, bail};

use super::job::Job;
use crate::fs::{self, Family};
use crate::host::{Lock, ToolError};
use crate::lvm::{Tags, made_tag, making_tag, retag};
use crate::mount::after_undo;
use crate::names::{Filesystem, FsType};
use crate::volume::decide::{Decision, Lvm, Purpose};
use crate::volume::device::{Device, Pinned};
use crate::volume::look::Look;
use crate::volume::subject::Subject;

/// Makes a filesystem, and returns it. `None`: the volume has changed since the decision; nothing was
/// made, and its tags are as before. A tag is set before mkfs and replaced after it, so that a killed mkfs can
/// be recognised.
pub fn make(
    job: &Job,
    seen: &mut Look,
    device: &Device,
    fs: FsType,
    again: bool,
    lock: &Lock,
) -> Result<Option<Filesystem>> {
    let Subject { host, config, .. } = job.subject;
    let lvm = seen.facts.lvm.clone();
    let Some(Lvm::Volume { volume, .. }) = &lvm else {
        bail!("{} was not looked at", device.id);
    };
    let record = &volume.record;
    let making = making_tag(fs);
    let is_begun = record.tags.contains(&making);
    // Replaces the tag of an earlier mkfs of another type that was killed: only the newest counts.
    let begun = Tags {
        remove: record.unmade_tags().map(str::to_owned).collect(),
        add: vec![making.clone()],
    };
    let take_back = || {
        let tags = Tags {
            add: begun.remove.clone(),
            remove: begun.add.clone(),
        };
        retag(host, device.target(), &tags, Some(lock))
    };
    if !is_begun {
        device.require_still_there(host.kernel)?;
        retag(host, device.target(), &begun, Some(lock))?;
    }
    let ready = || -> Result<Option<Pinned>> {
        let is_as_it_was = seen.is_as_it_was()?;
        // The claim must go, because mkfs opens the device exclusively. This second descriptor keeps the kernel
        // from removing the device and giving its number to another.
        is_as_it_was
            .then(|| device.clone().pin(host.kernel))
            .transpose()
    };
    let pin = match ready() {
        Ok(Some(pin)) => pin,
        // mkfs did not run: remove its tag, unless an earlier mkfs set it.
        other => {
            let undo = if is_begun { Ok(()) } else { take_back() };
            return match other {
                Err(error) => Err(after_undo(error, undo)),
                Ok(_) => undo.map(|()| None),
            };
        }
    };
    seen.claim = None;

    let more = config.mkfs_options(device.id.vg(), fs);
    if let Err(error) = fs::mkfs(host, fs, &pin.node, &more, again, lock) {
        let refused = matches!(
            error,
            ToolError::Failed { .. } | ToolError::Missing { .. } | ToolError::Distrusted { .. }
        );
        let mut error = Error::from(error);
        if refused && job.options.size.is_some() {
            error = error.context(format!(
                "if it is too small, `lvextend` or `lvremove` {} by hand: its option `size` counts \
                 only when it is made",
                device.id
            ));
        }
        let error = error.context(format!("making {fs} on {}", device.id));
        drop(pin);
        // A mkfs that refused may have written nothing: look whether the volume is still blank.
        let mut now = Look::at(job.subject, job.asker(None));
        now.facts.lvm.clone_from(&lvm);
        let mut wish = job.wish(None);
        wish.purpose = Purpose::Filesystem;
        let is_untouched = !again
            && !is_begun
            && refused
            && matches!(now.settle(&wish), Ok(Decision::Make { again: false, .. }));
        return Err(if is_untouched {
            after_undo(error, take_back())
        } else {
            error
        });
    }
    let made = fs::superblock_of(host, None, (&pin.file, &device.path))
        .with_context(|| format!("looking at the {fs} that was made on {}", device.id))?
        .filter(|made| made.family == Family::of(fs) && !made.in_progress)
        .with_context(|| {
            format!(
                "mkfs.{fs} said that it succeeded, but {} does not hold {fs}; see the kernel's log \
                 for write errors",
                device.id
            )
        })?;
    let uuid = made.uuid;
    let made = Filesystem { fs, uuid };
    let mut tags = record.replaced_by(made_tag(&made));
    if !is_begun {
        tags.remove.push(making);
    }
    retag(host, device.target(), &tags, Some(lock))?;
    Ok(Some(made))
}
