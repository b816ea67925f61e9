//! The loop of every call that brings a volume up, grows it or activates it: look, decide, do one thing, look again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};

use crate::crypt::modules_are_gone;
use crate::failed_step::{FailedStep, has_own_words};
use crate::fs;
use crate::host::{Kernel, Lock};
use crate::lvm::{self, Found, Mapped, Volume};
use crate::names::{Bytes, LvId, Shown};
use crate::volume::decide::{Decision, Reason, Refusal, repair_pool, row_is_enough_to_mount};
use crate::volume::device::Device;
use crate::volume::job::Job;
use crate::volume::kernel_tables::is_in_kernel;
use crate::volume::lock::{self, HeldLocks};
use crate::volume::look::{Look, look_of_call};
use crate::volume::step::Step;
use crate::volume::subject::Subject;

impl Job<'_> {
    /// Creates the volume if the config allows that, activates it, resumes it, and takes its lock, as far as the call's
    /// wish needs that. To create the volume, takes the group's lock. `carry_out` mounts, binds, makes, opens or
    /// extends. A refusal is an error.
    pub fn conduct<T>(
        &self,
        carry_out: impl Fn(Look, Decision, &mut HeldLocks) -> Result<Step<T>>,
    ) -> Result<T> {
        const TRIES: usize = 8;
        let Subject { host, config, id } = self.subject;
        let (mut locks, mut activated) = (HeldLocks::default(), None);
        let mut again = "";
        for _ in 0..TRIES {
            // LVM's row from before the activation is used for one look only.
            let row = activated.take();
            let (seen, decision) = look_of_call(self, row.as_ref(), &mut locks)?;
            again = match decision {
                Decision::Refuse(reason) => return Err(Refusal::of(id, reason).into()),
                // Only `Level::Room` comes here: the free space is looked at under the group's lock.
                Decision::Look(_) => {
                    locks.group = Some(lock::hold_group(host.kernel, id.vg(), config.limits.lock)?);
                    "the group's lock was taken"
                }
                // lvcreate also activates the new volume.
                Decision::Create(size) => {
                    let disks = seen.facts.disks_to_create_on();
                    self.create((size, &disks), locks.group.take())?;
                    "it was created"
                }
                Decision::Activate => {
                    activated = self.activate(seen, &mut locks)?;
                    "it was activated"
                }
                Decision::Resume => {
                    self.resume(&seen, &locks)?;
                    "it was resumed"
                }
                // `carry_out` is in bring_up.rs or grow.rs.
                decision @ (Decision::Ready
                | Decision::Extend(_)
                | Decision::Restrict { .. }
                | Decision::Bind(_)
                | Decision::Mount(_)
                | Decision::Open { .. }
                | Decision::Make { .. }) => match carry_out(seen, decision, &mut locks)? {
                    Step::Done(done) => return Ok(done),
                    Step::LookAgain(why) => why,
                },
            };
        }
        bail!("what is known of {id} changes all the time (last: {again}); repeat the call")
    }

    /// The device of the volume. Activates the volume if needed; creates it if it is missing and the config allows
    /// that. Finds an active volume in the kernel's own tables, without a process.
    pub fn ensure_active(&self) -> Result<Device> {
        let device = self.conduct(|seen, decision, _| {
            if decision != Decision::Ready {
                bail!("{decision:?} is no decision about a device");
            }
            Ok(Step::Done(seen.facts.require_device()?.clone()))
        })?;
        self.tag_kubelets_name_if_needed(None);
        Ok(device)
    }

    /// Creates the volume under its group's lock, and cleans it. `disks`: the disks that the volume may be on; if
    /// empty, any disk.
    fn create(&self, (size, disks): (Bytes, &[PathBuf]), group: Option<Lock>) -> Result<()> {
        let Subject { host, id, .. } = self.subject;
        let lock = group.context("the group's lock is not held")?;
        let mut more = self.wish.group.lvcreate_options.clone();
        // lvcreate activates the volume. If this call is killed, another call finds by this tag which volume to
        // deactivate.
        let name = self.options.volume_name.as_ref();
        if let Some(name) = name.filter(|_| lvm::has_lvmlockd(host)) {
            more.extend(["--addtag".to_owned(), lvm::volume_tag(name)]);
        }
        let made = lvm::create(host, id, (size, disks), self.wish.thin_pool(), &more, &lock);
        // The new volume is cleaned also if the driver is told to stop: otherwise a restart of kubelet could leave a
        // volume that waits for an operator.
        host.kernel.undo(|| self.after_lvcreate(made, &lock))
    }

    /// Cleans the volume that lvcreate has made, also if lvcreate was stopped before it ended.
    fn after_lvcreate(&self, made: Result<()>, group: &Lock) -> Result<()> {
        let Subject { host, id, .. } = self.subject;
        // A new thin volume has no blocks, so it reads as zeros.
        let is_thin = self.wish.thin_pool().is_some();
        if is_thin && made.is_ok() {
            return Ok(());
        }
        match (made, lvm::find(host, id)) {
            // Another node was quicker.
            (Err(_), Ok(Found::Volume(volume))) if volume.lock.is_some() => Ok(()),
            (made, Ok(Found::Volume(volume))) if volume.record.new && !is_thin => {
                let cleaned = self.clean(&volume, group).map_err(|error| {
                    let doing = format!("cleaning the new volume {id}");
                    FailedStep::Creation.of(host, error, doing)
                });
                made.and(cleaned)
            }
            (made, found) => {
                made?;
                found?;
                Err(FailedStep::Creation.error(not_the_new_one(id)))
            }
        }
    }

    /// Makes zero what a removed volume may have left where data leaves signs. `volume`: LVM's row of the volume, from
    /// after lvcreate and with the tag `flexvolume.new`. Somebody may rename volumes at any time, so only the device
    /// with this volume's UUID is written to. The group's lock is still held: another call that sees the volume waits
    /// for that lock before it reads the volume.
    fn clean(&self, volume: &Volume, group: &Lock) -> Result<()> {
        let Subject { host, id, .. } = self.subject;
        self.wait_for_device()?;
        let found = Device::find(host.kernel, id)?;
        let device = found
            .filter(|device| device.lv_uuid == volume.uuid)
            .with_context(|| not_the_new_one(id))?;
        let pinned = device.open(host.kernel, false)?;
        // Before it was open, the kernel could give its number to another device.
        device.require_still_there(host.kernel)?;
        fs::clean(host, device.size(host.kernel)?, pinned, group)
    }

    /// Resumes the volume if a killed LVM command left it suspended.
    fn resume(&self, seen: &Look, locks: &HeldLocks) -> Result<()> {
        let device = seen.facts.require_device()?;
        // LVM reported the unused table before other, perhaps slow, questions were asked. So this asks again.
        if is_left_suspended(self.subject, device)? {
            resume(self.subject, device, locks.of_volume()?)?;
        }
        require_not_suspended(self.subject, device)
    }

    /// Activates the volume. Takes the volume's lock first: otherwise the last unmount of another pod could deactivate
    /// it before this call finds its device. Returns LVM's row of the volume if the mount can use that row: the volume
    /// was activated as the row says. `None`: LVM must be asked again.
    fn activate(&self, mut seen: Look, locks: &mut HeldLocks) -> Result<Option<Volume>> {
        let Subject { host, config, id } = self.subject;
        let volume = seen.facts.require_volume()?.clone();
        locks.hold(host.kernel, volume.target(), false, config.limits.lock)?;
        let lock = locks.of_volume()?;
        if row_is_enough_to_mount(&volume, &self.wish) && !is_in_kernel(host.kernel, id) {
            lvm::activate_as_listed(host, &volume, lock)?;
            // If LVM has activated nothing, the volume has changed since its row was read, or its tags cannot be
            // compared, or lvm.conf leaves the volume out.
            if is_in_kernel(host.kernel, id) {
                return self.wait_for_device().map(|()| Some(volume));
            }
        }
        let shared = volume.lock.is_some();
        if shared {
            // If this call is killed, another call finds by this tag which volume to deactivate.
            self.tag_kubelets_name(&volume, Some(lock))?;
        }
        let activated = lvm::activate(host, volume.target(), lock);
        if shared && activated.is_err() {
            seen.note_holder(config.limits.query);
            if let Decision::Refuse(reason) = seen.settle(&self.wish)? {
                return Err(Refusal::of(id, reason).into());
            }
        }
        activated.map_err(|error| not_activated(host.kernel, &volume, error))?;
        self.wait_for_device().map(|()| None)
    }

    /// Waits for the device's node in /dev. LVM's commands wait until udev has made the node, but a killed command did
    /// not.
    fn wait_for_device(&self) -> Result<()> {
        let Subject { host, config, id } = self.subject;
        let kernel = host.kernel;
        let most = config.limits.activate.min(Duration::from_secs(10));
        let started = Instant::now();
        while Device::find(kernel, id)?.is_none() {
            if !is_in_kernel(kernel, id) {
                return Err(FailedStep::Activation.error(format!(
                    "LVM did not activate {id}: see whether lvm.conf has `global/activation = 0`, or its `volume_list` \
                     leaves it out (`lvmconfig activation/volume_list`). If there is no such list, `lvm tags` shows the host's tags, and LVM \
                     activates only volumes with these: set `volume_list = [ \"@*\", \"{}\" ]`, in which \"@*\" \
                     stands for these tags",
                    id.vg()
                )));
            }
            if started.elapsed() >= most {
                return Err(FailedStep::Activation.error(format!(
                    "LVM activated {id}, but {0} is missing, or is a plain file (`ls -l {0}`), which you can remove; make \
                     it with `vgmknodes {1}`, and see that udevd runs and that the driver sees the host's /dev",
                    id.device().shown(),
                    id.vg()
                )));
            }
            if kernel.pause(Duration::from_millis(20)) {
                let text =
                    format!("the driver was told to stop while it waited for udev to show {id}");
                return Err(FailedStep::Stopped.error(text));
            }
        }
        Ok(())
    }
}

fn not_the_new_one(id: &LvId) -> String {
    format!(
        "{id} is not the volume that lvcreate has made just now: somebody has renamed or removed that. Nothing was \
         written to {id}. `lvs -o lv_name,lv_tags @flexvolume.new` lists new volumes that nobody has used"
    )
}

/// Adds advice to the error of an activation. A killed lvcreate may leave a thin volume that is in LVM's metadata but
/// not in its pool, or a RAID volume that is not ready.
fn not_activated(kernel: &Kernel, volume: &Volume, error: Error) -> Error {
    if !has_own_words(&error) {
        return error;
    }
    let id = &volume.id;
    // LVM's words for a helper that cannot be run: lvm2 lib/misc/lvm-exec.c.
    let said = format!("{error:#}");
    if said.contains("execvp failed") || said.contains("(status:127)") {
        return error.context(format!(
            "LVM could not run the program that checks the metadata of {id}'s pool or cache: install it \
             (thin-provisioning-tools). Nothing is known to be damaged: repair nothing"
        ));
    }
    if let Some(gone) = modules_are_gone(kernel).filter(|_| said.contains("ioctl")) {
        return error.context(format!("LVM's words follow. {gone}"));
    }
    if volume.record.new {
        return error.context(format!(
            "the tag of {id} says that nobody has used it yet. If lvcreate was cut short just now (`lvs -o lv_time {id}` \
             says when that was), run `lvremove {id}`, and it is made again. If vgcfgrestore has brought the tag back, \
             data may be there"
        ));
    }
    match volume.pool_id() {
        // Before LVM activates the pool, it runs thin_check on the pool's metadata. Source: lvmthin(7), "Metadata check
        // and repair".
        Some(pool) => error.context(format!(
            "LVM's words follow. If they name a transaction_id, repair nothing: docs/on-call.md has what helps \
             (\"activating\"). If they ask for a repair of the thin pool {pool}, end the pods of its volumes, and run `{}`",
            repair_pool(&pool)
        )),
        None if volume.is_cached() => error.context(cache_not_activated(kernel, id)),
        None => error,
    }
}

/// What helps if the volume's cache is not activated. LVM runs `cache_check` on the cache's metadata. If that fails, or
/// if lvchange is killed, LVM may leave parts of the cache active, and then names only these at the next try.
fn cache_not_activated(kernel: &Kernel, id: &LvId) -> String {
    let parts = match parts_left(kernel, id) {
        parts if parts.is_empty() => String::new(),
        parts => format!(
            "parts of the cache of {id} are active, while {id} is not: if no LVM command is at work, run `lvchange -an {}`. ",
            parts.join(" ")
        ),
    };
    format!(
        "{parts}LVM's words follow; if they ask for a manual repair, see which mode the cache has (`lvs -o \
         cache_mode,pool_lv {id}`). With writethrough the other disks have all data, and `lvconvert --uncache {id}` keeps \
         it. With writeback what was not written back is only in the cache: copy all disks first. docs/on-call.md has \
         more (\"activating\")"
    )
}

/// The active parts of the cache of a volume that is not active itself, as LVM's commands take them.
fn parts_left(kernel: &Kernel, id: &LvId) -> Vec<String> {
    const PARTS: [&str; 4] = ["_corig", "_cvol", "_cdata", "_cmeta"];
    let vg = id.vg();
    let own_name = id.dm_name();
    let group = own_name
        .strip_suffix(&id.lv().as_str().replace('-', "--"))
        .unwrap_or_default();
    Mapped::all(kernel)
        .into_iter()
        .filter_map(|one| one.name(kernel))
        .filter(|name| PARTS.iter().any(|part| name.ends_with(part)))
        .filter_map(|name| Some(name.strip_prefix(group)?.replace("--", "-")))
        .map(|lv| format!("{vg}/{lv}"))
        .collect()
}

/// Resumes the volume, under its lock, if a killed lvextend left it suspended. Fails if the volume is suspended after
/// that. Does not resume an encrypted volume that is open, since LVM cannot be asked then.
pub fn ensure_not_suspended(subject: Subject, device: &Device) -> Result<()> {
    let Subject { host, config, .. } = subject;
    if is_left_suspended(subject, device)? {
        let lock = lock::hold(host.kernel, device.target(), config.limits.lock)?;
        if is_left_suspended(subject, device)? {
            resume(subject, device, &lock)?;
        }
    }
    require_not_suspended(subject, device)
}

/// Whether a killed LVM command left the volume suspended. False if an operator suspended it: that leaves no unused
/// table.
fn is_left_suspended(subject: Subject, device: &Device) -> Result<bool> {
    let Subject { host, id, .. } = subject;
    Ok(device.luks.is_none()
        && device.mapped().is_suspended(host.kernel)
        && lvm::has_unused_table(host, id)?)
}

/// Fails if every read and write of the device would wait.
fn require_not_suspended(subject: Subject, device: &Device) -> Result<()> {
    let Some(name) = device.suspended(subject.host.kernel) else {
        return Ok(());
    };
    let reason = match device.luks {
        Some(_) => Reason::SuspendedInside(name),
        None => Reason::Suspended(name),
    };
    Err(Refusal::of(subject.id, reason).into())
}

/// Resumes a volume that a killed LVM command left suspended. Without this, every access to the volume would wait for
/// ever.
fn resume(subject: Subject, device: &Device, lock: &Lock) -> Result<()> {
    subject.host.log.about("resumed", &subject.id.to_string());
    lvm::refresh(subject.host, device.target(), device.number, lock)
}
