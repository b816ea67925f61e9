//! Makes a filesystem where [`decide`](crate::volume::decide::decide) has said so. Nothing else runs an mkfs, or a
//! luksFormat, that writes to a volume.

use anyhow::{Context, Error, Result, bail};

use super::encrypted;
use crate::crypt::HEADER_SIZE;
use crate::fs::{self, Family};
use crate::host::{Lock, ToolError};
use crate::lvm::{Tags, making_in_luks_tag, making_tag, retag};
use crate::names::Filesystem;
use crate::reply::after_undo;
use crate::volume::decide::{Content, Decision, Lvm, Making, Mount, Permit};
use crate::volume::device::{Device, Pinned};
use crate::volume::job::{Job, Subject};
use crate::volume::look::{Asker, Look};

/// Makes a filesystem on a volume, or inside it, and says how that is mounted and which device it is on. `None`: the
/// volume has changed since the decision; nothing was made, and its tags are as before. A tag is set before mkfs and
/// replaced after it, so that a killed mkfs can be recognised.
pub fn make(
    job: &Job,
    seen: &mut Look,
    permit: Permit,
    how: &Making,
    lock: &Lock,
) -> Result<Option<(Mount, Device)>> {
    let fs = permit.fs();
    let Subject { host, id, .. } = job.subject;
    // Before anything is written: without its key nothing is.
    let header = match how {
        Making::InLuks { uuid } => Some(job.new_header(uuid.as_deref())?),
        Making::Plain { .. } | Making::Inside => None,
    };
    let (device, lvm) = (seen.facts.device.clone(), seen.facts.lvm.clone());
    let (Some(device), Some(Lvm::Volume { volume, .. })) = (&device, &lvm) else {
        bail!("{id} was not looked at");
    };
    let record = &volume.record;
    let opened = || seen.facts.top()?.luks.clone();
    let making = match (how, &header) {
        (Making::Plain { .. }, _) => making_tag(fs),
        (_, Some(header)) => making_in_luks_tag(fs, &header.uuid),
        (_, None) => making_in_luks_tag(fs, &opened().unwrap_or_default()),
    };
    let is_begun = record.tags.contains(&making);
    let begun = record.replaced_by(making.clone());
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
        let on = seen.facts.top().unwrap_or(device);
        is_as_it_was
            .then(|| on.clone().pin(host.kernel))
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

    let is_again = matches!(how, Making::Plain { again: true } | Making::Inside);
    let made = match &header {
        // Noise, which mkfs might take for something.
        Some(header) => encrypted::format(job, &pin, permit, header, lock)
            .and_then(|(inside, permit)| written(job, inside, permit, true, lock)),
        None => written(job, pin, permit, is_again, lock),
    };
    let on = match made {
        Ok(on) => on,
        Err(error) => {
            // A mkfs that refused may have written nothing: look whether the volume is still blank.
            let mut now = Look::at(job.subject, Asker::default());
            now.facts.lvm.clone_from(&lvm);
            let wish = job.wish();
            let is_untouched = !is_begun
                && !is_again
                && has_refused(&error)
                && matches!(now.settle(&wish), Ok(Decision::Make { .. }))
                && matches!(now.facts.content, Some(Content::Blank { .. }));
            return Err(if is_untouched {
                after_undo(error, take_back())
            } else {
                error
            });
        }
    };
    let made = fs::superblock_of(host, None, (&on.file, &on.device.path))
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
    let filesystem = Filesystem { fs, uuid };
    let mut tags = record.holding(&filesystem, on.device.luks.as_deref());
    if !is_begun {
        tags.remove.push(making);
    }
    retag(host, device.target(), &tags, Some(lock))?;
    Ok(Some((Mount::of_made(filesystem), on.device)))
}

/// Runs mkfs. Returns the device with the filesystem.
fn written(job: &Job, on: Pinned, permit: Permit, again: bool, lock: &Lock) -> Result<Pinned> {
    let fs = permit.fs();
    let Subject { host, config, id } = job.subject;
    let more = config.mkfs_options(id.vg(), fs);
    let made = fs::mkfs(host, permit, &on.node, &more, again, lock).map_err(Error::from);
    let made = made.map_err(|error| {
        if !has_refused(&error) {
            return error;
        }
        error.context(format!(
            "if it is too small, `lvextend` {id}: its option `size` counts only when it is made, and a LUKS2 header \
             takes {HEADER_SIZE} of that"
        ))
    });
    made.with_context(|| format!("making {fs} on {id}"))?;
    Ok(on)
}

fn has_refused(error: &Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(ToolError::Failed { .. } | ToolError::Missing { .. } | ToolError::Distrusted { .. })
    )
}
