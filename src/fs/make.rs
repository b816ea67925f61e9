use std::fs::File;
use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};

use super::examine::Examination;
use super::prepare::{Ready, Subject, require_blank, require_readable};
use super::probe::{Content, probe};
use super::superblock::{self, Family, Superblock};
use crate::host::{Command, Effect, ToolError};
use crate::lvm::{Tags, made_tag, making_tag, retag};
use crate::names::Bytes;
use crate::names::FsType;

/// Makes a filesystem on a volume on which blkid has found nothing.
///
/// `claim` is the device, opened exclusively before blkid looked at it.
pub(super) fn from_blank(subject: &Subject, claim: File) -> Result<Ready> {
    let fs = subject.wanted.unwrap_or(subject.config.default_fs);
    let claim = Arc::new(claim);
    let seen = examine(subject, &claim)?;
    require_readable(subject, &seen)?;
    require_writable(subject, fs)?;
    require_blank(subject, &seen)?;
    // blkid says "nothing" of what it cannot read, too, and a failing disk fails now and then. By
    // now everything has been read, and lies in the kernel's cache.
    match probe(subject.host, &subject.config.limits, subject.device)? {
        Content::Nothing => make(subject, claim, fs, Force::No),
        other => bail!(
            "{id} holds {other}, which could not be seen a moment ago: see the kernel's log for \
             read errors of its disk; nothing was written",
            id = subject.device.id
        ),
    }
}

/// Makes the filesystem again whose first making was cut short.
pub(super) fn again(subject: &Subject, claim: File, fs: FsType) -> Result<Ready> {
    let claim = Arc::new(claim);
    require_writable(subject, fs)?;
    // The record says that there is only our own half of a filesystem; it must be readable still.
    let seen = examine(subject, &claim)?;
    require_readable(subject, &seen)?;
    require_blank(subject, &seen)?;
    make(subject, claim, fs, Force::OverRemains)
}

/// Whether what is there is the half of a filesystem that the driver itself began and nobody has
/// ever mounted.
pub(super) fn was_cut_short(subject: &Subject, fs: FsType, found: &Superblock) -> Result<bool> {
    let record = &subject.volume.record;
    let ours = record.made.is_none() && record.making.as_deref() == Some(fs.as_str());
    if !ours {
        return Ok(false);
    }
    match found.family {
        // mkfs.xfs clears this last of all, after everything else is on the disk.
        Family::Xfs => Ok(found.in_progress),
        // mkfs.btrfs writes its magic number last; a superblock with it is a whole filesystem.
        Family::Btrfs => Ok(false),
        // mke2fs writes the superblock last, but only its own check can say that a power cut
        // left the rest. Once mounted, there may be data: then it is never made again.
        Family::Ext => Ok(found.never_mounted && !is_sound(subject)?),
    }
}

fn is_sound(subject: &Subject) -> Result<bool> {
    let command = Command::reads("e2fsck", subject.config.limits.check)
        .args(["-n", "-f"])
        .operand(&subject.device.path);
    match subject.host.run(&command) {
        Ok(_) => Ok(true),
        Err(ToolError::Failed { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn require_writable(subject: &Subject, fs: FsType) -> Result<()> {
    let id = &subject.device.id;
    if subject.read_only {
        bail!(
            "{id} holds no filesystem, and a read-only volume is not formatted; mount it for \
             writing once, or name another volume"
        );
    }
    if !subject.volume.writable || subject.device.is_read_only(subject.host.kernel) {
        bail!(
            "{id} holds no filesystem and is a read-only logical volume; to have {fs} made on it \
             run `lvchange --permission rw {id}`"
        );
    }
    Ok(())
}

/// Reads the device in a child process: a read of a failing disk may never come back, and a
/// process can be left behind.
fn examine(subject: &Subject, claim: &Arc<File>) -> Result<Examination> {
    let size = subject.device.size(subject.host.kernel)?;
    let limit = subject.config.limits.query;
    // LVM does not flush: if the power went later, what lvcreate has wiped could show again.
    let flush = subject.volume.record.new.then_some("flush");
    let command = Command::myself(super::EXAMINE, Effect::Reads, limit)
        .stdin(Arc::clone(claim))
        .args([size.get().to_string(), subject.volume.created.to_string()])
        .args(flush);
    let examining = || format!("reading {}", subject.device.path.display());
    let output = subject.host.run(&command).with_context(examining)?;
    serde_json::from_slice(&output.stdout).with_context(examining)
}

/// Whether mkfs is told to overwrite what it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Force {
    No,
    /// What is there is the half of a filesystem that the driver's own mkfs left.
    OverRemains,
}

fn make(subject: &Subject, claim: Arc<File>, fs: FsType, force: Force) -> Result<Ready> {
    let Subject {
        host,
        config,
        device,
        volume,
        lock,
        ..
    } = *subject;
    let making = making_tag(fs);
    let is_new = !volume.record.tags.contains(&making);
    let earlier = volume.record.unmade_tags();
    if is_new {
        let mut tags = Tags::adding(making.as_str());
        // A mkfs of another type was cut short before: only the newest attempt counts.
        tags.remove.clone_from(&earlier);
        device.require_still_there(host.kernel)?;
        retag(host, &config.limits, &device.id, &tags, Some(lock))?;
    }
    // A second descriptor keeps the device from being removed and its number given to another;
    // the first must go, because mkfs itself opens the device exclusively.
    let pin = host
        .kernel
        .open_device(&device.path, false)
        .with_context(|| format!("opening {}", device.path.display()))?;
    drop(claim);
    device.require_still_there(host.kernel)?;
    device.require_not_suspended(host.kernel)?;

    let command = mkfs(subject, fs, force);
    if let Err(error) = host.run(&command) {
        let refused = matches!(error, ToolError::Failed { .. } | ToolError::Missing { .. });
        let mut error = Error::from(error);
        if refused && volume.record.new {
            error = error.context(format!(
                "if it is too small, `lvextend` or `lvremove` {} by hand: its option `size` counts \
                 only when it is made",
                device.id
            ));
        }
        let error = error.context(format!("making {fs} on {}", device.id));
        drop(pin);
        if refused && is_new && force == Force::No && is_untouched(subject) {
            // What lvcreate or an earlier mkfs left, of another type perhaps, is as it was.
            let tags = Tags {
                add: earlier,
                remove: vec![making],
            };
            let undo = retag(host, &config.limits, &device.id, &tags, Some(lock));
            return Err(crate::mount::after_undo(error, undo));
        }
        return Err(error);
    }
    let made = superblock::read_primary(&pin)
        .with_context(|| format!("reading {} after mkfs", device.path.display()))?
        .filter(|made| made.family == Family::of(fs) && !made.in_progress)
        .with_context(|| {
            format!(
                "mkfs.{fs} said that it succeeded, but {} holds no {fs}; see the kernel's log for \
                 write errors",
                device.id
            )
        })?;
    let mut tags = volume.record.replaced_by(made_tag(fs, &made.uuid));
    if is_new {
        tags.remove.push(making);
    }
    device.require_still_there(host.kernel)?;
    retag(host, &config.limits, &device.id, &tags, Some(lock))?;
    Ok(Ready {
        fs,
        uuid: made.uuid,
        size: Bytes::new(made.size),
        recorded: true,
        fresh: true,
    })
}

/// Whether a mkfs that refused has left the volume as blank as before. (A busy device cannot be
/// examined, and counts as touched.)
fn is_untouched(subject: &Subject) -> bool {
    let look = || -> Result<bool> {
        let claim = subject
            .host
            .kernel
            .open_device(&subject.device.path, true)?;
        let content = probe(subject.host, &subject.config.limits, subject.device)?;
        let seen = examine(subject, &Arc::new(claim))?;
        let blank = require_readable(subject, &seen).and_then(|()| require_blank(subject, &seen));
        Ok(content == Content::Nothing && blank.is_ok())
    };
    look().unwrap_or(false)
}

fn mkfs(subject: &Subject, fs: FsType, force: Force) -> Command {
    let (tool, options): (_, &[&str]) = match fs {
        FsType::Ext2 => ("mkfs.ext2", EXT_OPTIONS),
        FsType::Ext3 => ("mkfs.ext3", EXT_OPTIONS),
        FsType::Ext4 => ("mkfs.ext4", EXT_OPTIONS),
        // -K: no discard.
        FsType::Xfs => ("mkfs.xfs", &["-q", "-K"]),
        FsType::Btrfs => ("mkfs.btrfs", &["-q", "-K"]),
    };
    let mut command = Command::writes(tool, subject.config.limits.make)
        .stdin(Arc::clone(&subject.lock.file()))
        .args(options);
    // mke2fs needs no -F for a device that is neither mounted nor busy, and with it would not look.
    if force == Force::OverRemains && !fs.is_ext() {
        command = command.args(["-f"]);
    }
    command
        .args(subject.config.mkfs_options(subject.device.id.vg(), fs))
        .operand(&subject.device.path)
}

/// No blocks kept for root, which a pod's volume has no use for; tables and journal are cleared by
/// the kernel after mounting; no discard on a volume that was just allocated.
const EXT_OPTIONS: &[&str] = &[
    "-q",
    "-m",
    "0",
    "-E",
    "nodiscard,lazy_itable_init=1,lazy_journal_init=1",
];
