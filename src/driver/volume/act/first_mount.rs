//! Mounts a filesystem, if the driver's mount namespace has no mount to bind from.

use std::path::Path;

use anyhow::{Error, Result};

use super::grow_filesystem::grow_filesystem;
use crate::failed_step::{FailedStep, has_own_words};
use crate::fs::{self, IF_E2FSCK_IS_OLD, if_e2fsck_was_killed};
use crate::host::holders::name_them;
use crate::host::{Lock, ToolError};
use crate::lvm::{self, Volume};
use crate::mount::{Source, by_hand, ensure_unmounted, mount_device, mounted_at};
use crate::names::{FsType, LvId};
use crate::options::MountOptions;
use crate::volume::decide::{
    Elsewhere, May, Mount, Place, Reason, Refusal, State, When, look_at_disks, writable_again,
};
use crate::volume::device::{Device, Pinned};
use crate::volume::job::Job;
use crate::volume::look::Look;
use crate::volume::mounted_filesystem::{Failure, is_shut_down};
use crate::volume::step::Step;
use crate::volume::subject::Subject;

/// Mounts a filesystem that has no mount to bind from in this mount namespace. Another namespace may have it mounted.
/// `is_new`: this call has made the filesystem. Returns warnings to show although the call succeeded.
pub fn first_mount(
    job: &Job,
    dir: &Path,
    mut seen: Look,
    (how, on): (Mount, Device),
    is_new: bool,
    lock: &Lock,
) -> Result<Step<Vec<String>>> {
    // The pin keeps the device's number until the filesystem is mounted.
    let first = FirstMount {
        job,
        dir,
        volume: seen.facts.require_volume()?.clone(),
        on: on.pin(job.subject.host.kernel)?,
        how,
        is_new,
        lock,
    };
    // e2fsck and mount(8) claim the device themselves. After `make`, the claim is gone already.
    seen.release_claim();
    let mut remarks = Vec::from_iter(first.prepare()?);
    // This asks for users only. Which filesystem it is, `mount_device` compares after the mount, except for an xfs.
    if !seen.is_still_free()? {
        return Ok(Step::LookAgain("it has another user"));
    }
    remarks.extend(first.mount()?);
    Ok(Step::Done(remarks))
}

/// A filesystem to mount, under its volume's lock.
struct FirstMount<'a> {
    job: &'a Job<'a>,
    dir: &'a Path,
    volume: Volume,
    on: Pinned,
    how: Mount,
    /// Whether this call has made the filesystem.
    is_new: bool,
    lock: &'a Lock,
}

impl FirstMount<'_> {
    /// Checks the filesystem, grows an ext that only grows unmounted, and changes tags that must change before the
    /// mount. Does nothing for a filesystem that this call has made ([`Mount::of_made`]). Returns a warning to show
    /// although the call succeeded.
    fn prepare(&self) -> Result<Option<String>> {
        let (host, mut remark) = (self.job.subject.host, None);
        let (how, node) = (&self.how, &self.on.node);
        if how.check {
            let all = how.grow == When::Before;
            fs::check(host, node, all, self.lock)
                .map_err(|error| self.not_checked(error.into()))?;
        }
        if how.grow == When::Before
            && let Err(error) = self.grow(None)
        {
            remark = Some(format!("{} is not grown: {error:#}", self.volume.id));
        }
        if how.record == When::Before {
            self.write_record()?;
        }
        Ok(remark)
    }

    /// Grows the filesystem. `mount`: the id of its mount. `None`: it is not mounted yet.
    fn grow(&self, mount: Option<u64>) -> Result<()> {
        let (subject, fs) = (self.job.subject, self.how.filesystem.fs);
        grow_filesystem(subject, fs, &self.on, (self.dir, mount), self.lock)
    }

    /// The error of a failed e2fsck, with what to do if e2fsck itself says why. On a broken RAID, e2fsck takes
    /// unreadable parts for errors of the filesystem, and a repair would write there.
    fn not_checked(&self, error: Error) -> Error {
        let (id, state) = (&self.volume.id, State::of(&self.volume));
        let by_hand = |command: &str| by_hand(id, &self.on.node, command);
        let repair = by_hand("e2fsck -f DEVICE");
        let doing = if !has_own_words(&error) {
            format!("checking the filesystem of {id}")
        } else if state.may < May::Make {
            format!(
                "checking the filesystem of {id}, of which LVM says \"{}\": what e2fsck finds may come from its \
                 disks. Do not repair the filesystem before they are well (`{}`, `dmesg`)",
                state.says,
                look_at_disks(id)
            )
        } else if let Some(advice) = if_e2fsck_was_killed(&error, by_hand) {
            format!("checking the filesystem of {id}; {advice}")
        } else {
            format!(
                "checking the filesystem of {id}; {IF_E2FSCK_IS_OLD}; if the filesystem has errors, save what is needed \
                 and repair it with {repair}"
            )
        };
        FailedStep::Fsck.of(self.job.subject.host, error, doing)
    }

    fn write_record(&self) -> Result<()> {
        let host = self.job.subject.host;
        let mut filesystem = self.how.filesystem.clone();
        if filesystem.uuid.is_empty() {
            // e2fsck gives a UUID to an ext that has none. Without this, the next mount would find another UUID than
            // the record's.
            let found = fs::superblock_of(host, (&self.on.file, &self.on.device.path))?;
            let uuid = found.map(|found| found.uuid);
            let is_nil = |uuid: &str| uuid.chars().all(|c| "0-".contains(c));
            filesystem.uuid = uuid.filter(|uuid| !is_nil(uuid)).unwrap_or_default();
        }
        let luks = self.on.device.luks.as_deref();
        let tags = self.volume.record.holding(&filesystem, luks);
        lvm::retag(host, self.volume.target(), &tags, Some(self.lock))
    }

    /// Mounts the filesystem, and then records and grows it. Returns warnings to show although the call succeeded.
    fn mount(&self) -> Result<Vec<String>> {
        let Subject { host, id, .. } = self.job.subject;
        let how = &self.how;
        if let Some(elsewhere) = how.alive.as_ref().filter(|others| !others.is_empty()) {
            host.log.about("elsewhere", &name_them(elsewhere));
        }
        let options = self.options()?;
        self.on.device.require_still_there(host.kernel)?;
        let source = Source {
            id,
            node: &self.on.node,
            number: self.on.device.number,
            filesystem: &how.filesystem,
            options: &options,
            read_only: self.job.options.read_only,
            is_new: self.is_new,
        };
        let mounted = mount_device(host, &source, self.dir, self.lock)
            .map_err(|error| self.unread_log(error));
        match &how.alive {
            None => mounted?,
            Some(elsewhere) => mounted
                .map_err(|error| not_mounted_again(id, elsewhere, error))
                .and_then(|()| self.undo_if_shut_down(elsewhere))?,
        }

        Ok(self.record_and_grow())
    }

    /// Records a filesystem that has just been mounted, and grows it if it is smaller than its device. A filesystem
    /// that this call has made is recorded already, and fills its device. The volume is mounted with its data, so a
    /// failure is only a warning, and the pod starts. Returns the warnings.
    fn record_and_grow(&self) -> Vec<String> {
        let Subject { host, id, .. } = self.job.subject;
        let (how, volume) = (&self.how, &self.volume);
        let mut remarks = Vec::new();
        let state = State::of(volume);
        if state.may < May::Make {
            remarks.push(format!(
                "{id} is mounted, but LVM says that it is not well: {}; see `{}`",
                state.says,
                look_at_disks(id)
            ));
        }
        if how.record == When::After
            && let Err(error) = self.write_record()
        {
            host.log.about("unrecorded", &format!("{error:#}"));
            remarks.push(format!(
                "{id} is mounted, but LVM could not record what it holds, so its next first mount does not know that it \
                 held a filesystem: {error:#}"
            ));
        }
        if how.grow == When::After
            && let Err(error) = self.grow(host.kernel.mount_id(self.dir).ok())
        {
            remarks.push(format!("{id} is mounted, but not grown: {error:#}"));
        }
        remarks
    }

    /// Adds to a mount's error why a read-only volume may fail even for a pod that only reads: mounting must first
    /// write the filesystem's log back.
    fn unread_log(&self, error: Error) -> Error {
        let (id, device) = (self.job.subject.id, &self.on.device);
        let reads = self.job.options.read_only && device.is_read_only(self.job.subject.host.kernel);
        if !reads || !matches!(error.downcast_ref(), Some(ToolError::Failed { .. })) {
            return error;
        }
        error.context(format!(
            "{id} is read-only itself. If the log of its filesystem must be played back (`dmesg`), as of a snapshot \
             of a volume in use, {}",
            writable_again(id, self.volume.read_only_by())
        ))
    }

    /// Unmounts the filesystem if the kernel has shut it down. While another mount namespace has it mounted, each new
    /// mount shows the same filesystem, which stays shut down.
    fn undo_if_shut_down(&self, elsewhere: &[Elsewhere]) -> Result<()> {
        let Subject { host, id, .. } = self.job.subject;
        let mount = mounted_at(host.kernel, self.dir).ok().flatten();
        if !mount.is_some_and(|mount| is_shut_down(host.kernel, self.dir, mount)) {
            return Ok(());
        }
        let place = Place::Elsewhere(elsewhere.to_owned());
        let refusal = Refusal::of(id, Reason::FilesystemFailed(place, Failure::ShutDown));
        Err(host.after_undo(refusal.into(), || ensure_unmounted(host, self.dir)))
    }

    /// The mount options of the driver, of the node's config and of the pod. Later ones override earlier ones.
    fn options(&self) -> Result<MountOptions> {
        let Subject { host, config, id } = self.job.subject;
        let fs = self.how.filesystem.fs;
        let of_driver = match fs {
            // Overrides the superblock: an error in one volume must neither stop the whole node (`tune2fs -e
            // panic`), nor let writes go on (the default of mke2fs).
            FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => "errors=remount-ro",
            // A snapshot has the UUID of its origin, and xfs mounts no UUID twice. A thin snapshot can outlive its
            // origin, so every thin volume may be one.
            FsType::Xfs if self.volume.is_snapshot() || self.volume.pool.is_some() => "nouuid",
            FsType::Xfs | FsType::Btrfs => "",
        };
        let (options, overruled) = MountOptions::of_node(of_driver)?
            .and(&config.mount_options(id.vg(), fs))
            .and_of_pod(&self.job.options.mount_options);
        if !overruled.is_empty() {
            host.log
                .about("mountoptions-overruled", &overruled.join(","));
        }
        Ok(options)
    }
}

/// Adds to the error that another mount namespace has the filesystem mounted, and that it may have failed there.
/// mount(8) of util-linux 2.41 does not say that the kernel has shut the filesystem down.
fn not_mounted_again(id: &LvId, elsewhere: &[Elsewhere], error: Error) -> Error {
    if elsewhere.is_empty() {
        return error;
    }
    error.context(format!(
        "{id} is mounted in another mount namespace ({}), and cannot be mounted here too; if it has \
         failed (`dmesg`), end each process that has it",
        name_them(elsewhere)
    ))
}
