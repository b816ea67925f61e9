//! Judges a volume, a pool or a snapshot: whether something is wrong with it, and whether that counts. `status`,
//! `check`, `doctor` and the metrics print this judgement.

use std::path::PathBuf;

use super::finding::{Finding, OK};
use super::inventory::Inventory;
use super::look::Request;
use super::verdict::{Outcome, Verdict};
use driver::fs::Condition;
use driver::host::Lack;
use driver::lvm::{LeaseState, Volume};
use driver::names::Bytes;
use driver::volume::{Concern, Content, Device, Facts, Place, Reason};

/// A volume, with the facts by which it is judged.
#[allow(clippy::struct_excessive_bools)] // independent answers
pub struct Health {
    pub volume: Volume,
    /// Whether the volume is the driver's, so that a pod would miss it.
    pub is_ours: bool,
    pub verdict: Option<Verdict>,
    /// The driver refuses the next pod if the thin pool is filled to this percentage.
    pub limit: u8,
    pub pool: Option<Volume>,
    /// The device-mapper name of the suspended device: the volume's own, or one below it.
    pub suspended: Option<String>,
    /// The size of the volume's device, if it is larger than LVM's metadata says.
    pub outgrown: Option<Bytes>,
    /// Why no further pod gets the filesystem: the kernel has found errors in it.
    pub failed_filesystem: Option<Reason>,
    /// Whether the kernel has found errors in the filesystem, now or earlier.
    pub has_errors: bool,
    /// What the mounted filesystem has run out of.
    pub ran_out_of: Option<Lack>,
    /// Whether the volume is active, but has no device node.
    pub lacks_node: bool,
    /// The state of a mounted volume's lock. `None`: the volume is not mounted, or its group is not shared. The state
    /// is judged here, since the next mount does not ask for it.
    pub lock: Option<LeaseState>,
    /// Why an open LUKS2 volume could not be opened again.
    pub header: Option<String>,
    /// Whether the volume is active in a shared group though nothing uses it.
    pub is_kept_idle: bool,
    /// The volume's global mounts that kubelet will never unmount.
    pub globals: Vec<PathBuf>,
    /// Whether the volume is mounted for writing.
    pub is_written: bool,
    /// Where a btrfs on the volume is mounted for writing.
    pub btrfs_at: Option<PathBuf>,
    /// The volume's global mount, if nothing else has the volume mounted.
    pub unused_global: Option<PathBuf>,
}

impl Health {
    /// Judges a volume. `request`: how to look at the volume for the verdict on its next mount. `None`: there is no
    /// verdict. A pool has no verdict either, since no pod mounts a pool.
    pub fn of(
        inventory: &Inventory,
        volume: &Volume,
        request: Option<Request>,
    ) -> (Self, Option<Facts>) {
        let looks = request.filter(|_| !volume.is_pool());
        let seen = looks.map(|request| inventory.verdict(&volume.id, request));
        let (verdict, facts) = seen.unzip();
        let facts = facts.flatten();
        let is_read = request.is_none_or(|request| inventory.has_time(request.longest));
        let device = inventory.device(volume);
        let suspended = suspended(inventory, device, facts.as_ref());
        let readable = device.filter(|_| suspended.is_none());
        let health = Self {
            is_ours: inventory.is_ours(volume),
            limit: inventory.config.thin_pool_limit,
            pool: inventory.pool(volume).cloned(),
            suspended,
            outgrown: larger_device(inventory, volume, facts.as_ref()),
            failed_filesystem: inventory.failed_filesystem(volume),
            has_errors: facts.as_ref().is_some_and(has_errors),
            ran_out_of: readable
                .and_then(|device| inventory.ran_out_of(volume, &inventory.space(device)?)),
            lacks_node: volume.is_active() && !volume.is_pool() && device.is_none() && {
                matches!(Device::find(inventory.host.kernel, &volume.id), Ok(None))
            },
            lock: inventory.lock(volume),
            header: readable
                .filter(|_| is_read)
                .and_then(|device| inventory.header_problem(volume, device)),
            is_kept_idle: inventory.is_kept_idle(volume),
            globals: inventory.globals_for_good(volume),
            is_written: facts.as_ref().is_some_and(Facts::is_written_here),
            btrfs_at: inventory.btrfs_at(volume),
            unused_global: inventory.unused_global(volume),
            verdict,
            volume: volume.clone(),
        };
        (health, facts)
    }

    /// What is wrong with the volume itself: its faults, the worst first, and then a refusal of its next mount. That
    /// this host or another node uses the volume is nothing wrong with it.
    pub fn wrong(&self) -> Vec<Finding> {
        let mut all = self.faults();
        let is_used = self
            .reason()
            .is_some_and(|reason| reason.concern() == Concern::Host);
        all.extend(self.refusal().filter(|one| one.is_unwell() && !is_used));
        all
    }

    /// What is wrong with the volume, in a few words, or `ok`.
    pub fn word(&self) -> String {
        let worst = self.wrong().into_iter().next();
        worst.map_or_else(|| OK.to_owned(), |worst| worst.word)
    }

    /// Whether somebody should look at the volume: it is the driver's, and something is wrong with it or its next mount
    /// is refused.
    pub fn is_unwell(&self) -> bool {
        let is_refused = || self.refusal().is_some_and(|one| one.is_unwell());
        self.is_ours && (!self.faults().is_empty() || is_refused())
    }

    /// Whether the volume counts for the exit code of `check` if only its group was named, or nothing. Two kinds of
    /// volumes do not count: one that another node has, and one that is not the driver's and would not mount or is not
    /// well.
    pub fn counts(&self) -> bool {
        let Some(verdict) = &self.verdict else {
            return false;
        };
        let is_well = || verdict.is_good() && self.findings().is_empty();
        is_well() || self.is_ours && !verdict.is_elsewhere()
    }

    /// Whether the metrics for alerts include the volume. They leave out a volume that is not the driver's and that has
    /// a fault or would not mount.
    pub fn is_in_metrics(&self) -> bool {
        let would_mount = || {
            self.verdict
                .as_ref()
                .is_none_or(|one| !one.would_not_mount())
        };
        self.is_ours || self.faults().is_empty() && would_mount()
    }

    fn reason(&self) -> Option<&Reason> {
        self.verdict.as_ref().and_then(Verdict::refusal)
    }

    /// All faults, and why the next mount is refused, each once.
    pub fn findings(&self) -> Vec<Finding> {
        let refusal = self.reason();
        let is_said = |fault: &Finding| match fault.check {
            "volume-health" => refusal.is_some_and(|reason| {
                reason.concern() == Concern::Broken || matches!(reason, Reason::MergeWaits)
            }),
            "larger-device" => matches!(refusal, Some(Reason::LargerDevice { .. })),
            "luks-header" => matches!(refusal, Some(Reason::Header { .. })),
            "pool-full" => matches!(refusal, Some(Reason::PoolFull { .. })),
            "suspended" => matches!(
                refusal,
                Some(Reason::Suspended(_) | Reason::SuspendedInside(_))
            ),
            _ => false,
        };
        let faults = self.faults().into_iter().filter(|fault| !is_said(fault));
        let all = faults.chain(self.refusal());
        let all = all.map(|one| one.noted_unless(self.is_ours).on(&self.volume.id));
        all.collect()
    }

    /// Why the next mount is refused, if that is a fault. `None`: it is not refused, another node has the volume, or
    /// the volume is not the driver's and nothing about it is broken.
    fn refusal(&self) -> Option<Finding> {
        let verdict = self.verdict.as_ref()?;
        let reason = match &verdict.outcome {
            Outcome::Decided(decision) => decision.refusal()?,
            Outcome::WouldFail(_, what) => return self.is_ours.then(|| refused(verdict, what)),
            Outcome::Unknown(error) => {
                let finding = Finding::warning("next-mount", error);
                return Some(finding.word("not looked at"));
            }
            Outcome::Repair(_) | Outcome::Busy(_) => return None,
        };
        // Errors of the filesystem are among the faults already.
        let is_named = self.failed_filesystem.is_some()
            && matches!(reason, Reason::FilesystemFailed(Place::Here(_), _));
        // For a volume that is not the driver's, a refusal is no fault unless something is broken.
        let is_well = match reason.concern() {
            Concern::OtherNode => true,
            Concern::Broken => is_named,
            Concern::Host | Concern::Pods => is_named || !self.is_ours,
        };
        let words = if let Reason::PoolFull { pool, .. } = reason {
            // The pool has a finding of its own with the whole message.
            format!("the thin pool {pool} is full")
        } else {
            reason.message(&self.volume.id)
        };
        // Pods that only read a volume mount it even if it is read-only. Somebody may have made it a template.
        let is_template = matches!(reason, Reason::ReadOnlyVolume(_)) && !self.is_written;
        (!is_well).then(|| refused(verdict, &words).noted_unless(!is_template))
    }
}

/// The size of the volume's device if it is larger than LVM's metadata says, as the look saw it. If the look did not
/// ask LVM, the device is compared here.
fn larger_device(inventory: &Inventory, volume: &Volume, facts: Option<&Facts>) -> Option<Bytes> {
    match facts.filter(|facts| facts.lvm.is_some()) {
        Some(facts) => facts.larger_device,
        None => driver::volume::larger_device(inventory.host, volume, inventory.device(volume)?),
    }
}

/// The device-mapper name of the suspended device, as the look saw it. Without a look, the kernel is asked.
fn suspended(
    inventory: &Inventory,
    device: Option<&Device>,
    facts: Option<&Facts>,
) -> Option<String> {
    match facts.and_then(|facts| facts.uses.as_ref()) {
        Some(uses) => uses.suspended.clone(),
        None => device?.suspended(inventory.host.kernel),
    }
}

/// Whether the kernel has found errors in the filesystem, now or earlier.
fn has_errors(facts: &Facts) -> bool {
    let had_errors = matches!(facts.top_content(), Some(Content::Filesystem(found))
        if found.condition == Condition::Errors);
    let uses = facts.uses.as_ref();
    had_errors || uses.is_some_and(|uses| uses.failure.is_some())
}

fn refused(verdict: &Verdict, words: &str) -> Finding {
    let finding = format!("the next mount is refused: {words} [{}]", verdict.short());
    let finding = Finding::failed("next-mount", finding).word("would not mount");
    match verdict.see() {
        Some(see) => finding.run(see),
        None => finding,
    }
}
