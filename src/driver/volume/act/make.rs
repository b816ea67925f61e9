//! Makes a filesystem where [`decide`](crate::volume::decide::decide) has said so. Nothing else runs an mkfs, or a
//! luksFormat, that writes to a volume.

use anyhow::{Context, Error, Result, bail};

use super::encrypted;
use super::passphrase::{CHOOSING, NewHeader};
use crate::crypt::HEADER_SIZE;
use crate::failed_step::{FailedStep, has_own_words};
use crate::fs::{self, Family};
use crate::host::{Lock, ToolError};
use crate::lvm::{Found, Tags, Unfinished, Volume, find, retag};
use crate::names::{Filesystem, FsType};
use crate::volume::decide::{Content, Decision, Lvm, Making, Mount, Permit};
use crate::volume::device::{Device, Pinned};
use crate::volume::job::Job;
use crate::volume::look::{Asker, Look};
use crate::volume::step::Step;
use crate::volume::subject::Subject;

/// Makes a filesystem on a volume, or inside an encrypted one. Returns how to mount the filesystem, and its device.
/// [`Step::LookAgain`]: the volume has changed since the decision. Nothing was made then, and the tags are as before.
pub fn make(
    job: &Job,
    seen: &mut Look,
    permit: Permit,
    how: &Making,
    lock: &Lock,
) -> Result<Step<(Mount, Device)>> {
    // The key comes first: without a key, nothing is written.
    let header = match how {
        Making::InLuks { uuid } => Some(job.new_header(uuid.as_deref())?),
        Making::Plain { .. } | Making::InOpenLuks => None,
    };
    let making = unfinished(job, seen, permit.fs(), how, header.as_ref())?;
    let begun = Begun::set_tag(job, seen, permit.fs(), making, lock)?;
    let on = match begun.pinned_if_still_as_read(seen) {
        Ok(Some(on)) => on,
        Ok(None) => {
            begun.remove_tag_of_mkfs()?;
            return Ok(Step::LookAgain("it has changed before mkfs"));
        }
        Err(error) => return Err(begun.taken_back(error)),
    };
    seen.release_claim();
    let overwrites = !matches!(seen.facts.content, Some(Content::Blank { .. }));
    let made = match &header {
        Some(header) => encrypted::format(job, &on, permit, header, lock)
            .and_then(|(inside, permit)| run_mkfs(job, inside, permit, &begun.mkfs, true, lock)),
        None => run_mkfs(job, on, permit, &begun.mkfs, overwrites, lock),
    };
    match made {
        Ok(on) => begun.record_made(on).map(Step::Done),
        Err(error) if begun.is_untouched(&error) => Err(begun.taken_back(error)),
        Err(error) => Err(error),
    }
}

/// A volume whose tag says that mkfs is at work, so that a killed mkfs can be recognised.
struct Begun<'a> {
    job: &'a Job<'a>,
    fs: FsType,
    device: Device,
    /// What LVM said of the volume before the tag was set.
    volume: Volume,
    lvm: Lvm,
    /// What the tag `flexvolume.making` says.
    mkfs: Unfinished,
    /// Whether an earlier call, whose mkfs was killed, has set the tag.
    is_repeated: bool,
    lock: &'a Lock,
}

impl<'a> Begun<'a> {
    /// Sets the tag `flexvolume.making`, unless the volume has it already.
    fn set_tag(
        job: &'a Job<'a>,
        seen: &Look,
        fs: FsType,
        mkfs: Unfinished,
        lock: &'a Lock,
    ) -> Result<Self> {
        let Subject { host, id, .. } = job.subject;
        let facts = &seen.facts;
        let (Some(device), Some(lvm)) = (facts.device.clone(), facts.lvm.clone()) else {
            bail!("{id} was not looked at");
        };
        let volume = facts.require_volume()?.clone();
        let begun = Self {
            job,
            fs,
            device,
            lvm,
            is_repeated: volume.record.making.as_ref() == Some(&mkfs),
            volume,
            mkfs,
            lock,
        };
        if !begun.is_repeated {
            begun.device.require_still_there(host.kernel)?;
            begun.retag(&begun.tags())?;
        }
        Ok(begun)
    }

    /// The change that sets `flexvolume.making`. It removes an older `making` and `flexvolume.new`, and no other tag.
    fn tags(&self) -> Tags {
        self.volume.record.setting(self.mkfs.tag())
    }

    fn retag(&self, tags: &Tags) -> Result<()> {
        let host = self.job.subject.host;
        retag(host, self.device.target(), tags, Some(self.lock))
    }

    /// Looks once more, since the wait for LVM's lock may have been long. Returns the device to write to. `None`: the
    /// content has changed, the kernel counted a write, or somebody has the device open.
    fn pinned_if_still_as_read(&self, seen: &Look) -> Result<Option<Pinned>> {
        if !seen.is_still_as_read()? {
            return Ok(None);
        }
        // mkfs opens the device exclusively, so the claim must go. This second descriptor keeps the kernel from
        // removing the device and giving its number to another.
        let on = seen.facts.top().unwrap_or(&self.device).clone();
        on.pin(self.job.subject.host.kernel).map(Some)
    }

    /// Takes back the change that set the tag of a mkfs which has written nothing, unless an earlier mkfs set the tag.
    fn remove_tag_of_mkfs(&self) -> Result<()> {
        if self.is_repeated {
            return Ok(());
        }
        let Tags { add, remove } = self.tags();
        self.retag(&Tags {
            add: remove,
            remove: add,
        })
    }

    fn taken_back(&self, error: Error) -> Error {
        let host = self.job.subject.host;
        host.after_undo(error, || self.remove_tag_of_mkfs())
    }

    /// Whether a failed mkfs has written nothing: mkfs refused to run, and the volume is still blank.
    fn is_untouched(&self, error: &Error) -> bool {
        if self.is_repeated || !has_refused(error) {
            return false;
        }
        let mut now = Look::begin(self.job.subject, Asker::Step);
        now.facts.lvm = Some(self.lvm.clone());
        now.facts.lvcreate_ended = true;
        let decision = now.settle(&self.job.wish);
        matches!(decision, Ok(Decision::Make { .. }))
            && matches!(now.facts.content, Some(Content::Blank { .. }))
            && !self.has_new_blocks()
    }

    /// Whether mkfs has written to a thin volume, though only zeros are read. Without the tag, such blocks would count as
    /// data of somebody. True also if LVM does not tell.
    fn has_new_blocks(&self) -> bool {
        let (host, id) = (self.job.subject.host, &self.volume.id);
        self.volume.pool.is_some()
            && !matches!(
                find(host, id),
                Ok(Found::Volume(now)) if now.own_blocks() == self.volume.own_blocks()
            )
    }

    /// Flushes what mkfs has made on this device, reads it, and replaces the tag `flexvolume.making` by a record of
    /// that filesystem. So a record always names a filesystem that is on the disk.
    fn record_made(&self, on: Pinned) -> Result<(Mount, Device)> {
        let (fs, id) = (self.fs, &self.device.id);
        let host = self.job.subject.host;
        let made = fs::superblock_of_new(host, (&on.file, &on.device.path))
            .map_err(|error| {
                let doing = format!("looking at the {fs} that was made on {id}");
                FailedStep::Mkfs.of(host, error, doing)
            })?
            .filter(|made| made.family == Family::of(fs) && !made.in_progress)
            .filter(|made| made.uuid == self.mkfs.uuid || fs == FsType::Btrfs)
            .ok_or_else(|| {
                FailedStep::Mkfs.error(format!(
                    "mkfs.{fs} said that it succeeded, but {id} does not hold {fs} with the UUID that mkfs was \
                     given; see the kernel's log for write errors"
                ))
            })?;
        let uuid = made.uuid;
        let filesystem = Filesystem { fs, uuid };
        let luks = on.device.luks.as_deref();
        let mut tags = self.volume.record.holding(&filesystem, luks);
        if !self.is_repeated {
            tags.remove.push(self.mkfs.tag());
        }
        self.retag(&tags)?;
        Ok((Mount::of_made(filesystem), on.device))
    }
}

/// What the tag `flexvolume.making` is to say. A filesystem that is made again keeps its UUID, so that the remains of
/// each mkfs are known.
fn unfinished(
    job: &Job,
    seen: &Look,
    fs: FsType,
    how: &Making,
    header: Option<&NewHeader>,
) -> Result<Unfinished> {
    let facts = &seen.facts;
    let record = &facts.require_volume()?.record;
    let (is_again, luks) = match how {
        Making::Plain { again } => (*again, None),
        Making::InLuks { uuid } => (uuid.is_some(), header.map(|new| new.uuid.clone())),
        Making::InOpenLuks => (true, facts.top().and_then(|top| top.luks.clone())),
    };
    let before = record.own_making().filter(|_| is_again);
    let uuid = match before {
        Some(mkfs) => mkfs.uuid.clone(),
        None => job.subject.host.kernel.new_uuid().context(CHOOSING)?,
    };
    Ok(Unfinished {
        fs: fs.to_string(),
        uuid,
        luks,
    })
}

/// Runs mkfs. Returns the device with the filesystem. `overwrites`: whether the device may hold a filesystem already.
fn run_mkfs(
    job: &Job,
    on: Pinned,
    permit: Permit,
    mkfs: &Unfinished,
    overwrites: bool,
    lock: &Lock,
) -> Result<Pinned> {
    let fs = permit.fs();
    let Subject { host, config, id } = job.subject;
    let more = config.mkfs_options(id.vg(), fs);
    let uuid_and_more = (&*mkfs.uuid, &*more);
    let made = fs::mkfs(host, permit, &on.node, uuid_and_more, overwrites, lock);
    made.map_err(|failed| {
        let mut error = Error::from(failed);
        if has_own_words(&error) {
            error = error.context(format!(
                "if it is too small, `lvextend` {id}: its option `size` counts only when it is made, and a LUKS2 \
                 header takes {HEADER_SIZE} of that"
            ));
        }
        FailedStep::Mkfs.of(host, error, format!("making {fs} on {id}"))
    })?;
    Ok(on)
}

fn has_refused(error: &Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(ToolError::Failed { .. } | ToolError::Missing { .. } | ToolError::Distrusted { .. })
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::Effect;

    #[test]
    fn a_mkfs_that_may_still_run_has_not_refused() {
        let line = || "mkfs.ext4 /dev/vg/lv".to_owned();
        let (code, stderr) = (1, "too small".to_owned());
        let failed = ToolError::Failed {
            line: line(),
            code,
            stderr,
        };
        let stopped = ToolError::Stopped {
            line: line(),
            effect: Effect::Writes,
        };
        let late = ToolError::TimedOut {
            line: line(),
            limit: Duration::from_secs(7),
            effect: Effect::Writes,
            stuck: Some(7),
        };
        for (error, want) in [(failed, true), (stopped, false), (late, false)] {
            let error = Error::from(error);
            assert_eq!(has_refused(&error), want, "{error}");
        }
    }
}
