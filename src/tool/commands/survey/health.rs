//! Judges a volume, a pool or a snapshot: what is wrong with it, and which command helps. `status`, `check`, `doctor`
//! and the metrics print this judgement.

use super::finding::{Finding, OK};
use super::inventory::Inventory;
use super::look::Request;
use super::snapshot::nearly_lost;
use super::verdict::{Outcome, Verdict};
use driver::fs::Condition;
use driver::host::{Lack, own_name};
use driver::lvm::{LeaseState, Volume};
use driver::names::{Bytes, Shown};
use driver::volume::{
    Concern, Content, Device, Facts, May, Place, Reason, State, extend_pool, first_command,
    outgrown, require_lease, require_well, what_helps,
};
use std::path::PathBuf;

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
    pub failed: Option<Reason>,
    /// Whether the kernel has found errors in the filesystem, now or earlier.
    pub has_errors: bool,
    /// What the mounted filesystem has run out of.
    pub lack: Option<Lack>,
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
        let uses = facts.as_ref().and_then(|facts| facts.uses.as_ref());
        let content = facts.as_ref().and_then(Facts::top_content);
        let had_errors = matches!(content, Some(Content::Filesystem(found))
            if found.condition == Condition::Errors);
        let has_failed = uses.is_some_and(|uses| uses.failure.is_some());
        let device = inventory.device(volume);
        let suspended = match uses {
            Some(uses) => uses.suspended.clone(),
            None => device.and_then(|one| one.suspended(inventory.host.kernel)),
        };
        let read = device.filter(|_| suspended.is_none());
        let health = Self {
            is_ours: inventory.is_ours(volume),
            limit: inventory.config.thin_pool_limit,
            pool: inventory.pool(volume).cloned(),
            suspended,
            outgrown: match facts.as_ref().filter(|facts| facts.lvm.is_some()) {
                Some(facts) => facts.outgrown,
                None => device.and_then(|one| outgrown(inventory.host, volume, one)),
            },
            failed: inventory.failed(volume),
            has_errors: had_errors || has_failed,
            lack: read.and_then(|device| inventory.lack(volume, &inventory.space(device)?)),
            lacks_node: volume.is_active()
                && !volume.is_pool()
                && device.is_none()
                && matches!(Device::find(inventory.host.kernel, &volume.id), Ok(None)),
            lock: inventory.lock(volume),
            header: read
                .filter(|_| is_read)
                .and_then(|device| inventory.header_problem(volume, device)),
            is_kept_idle: inventory.is_kept_idle(volume),
            globals: inventory.globals_for_good(volume),
            btrfs_at: inventory.btrfs_at(volume),
            unused_global: inventory.unused_global(volume),
            verdict,
            volume: volume.clone(),
        };
        (health, facts)
    }

    /// The volume's faults, the worst first. A refusal of the next mount is not among them: see [`Self::refusal`].
    fn faults(&self) -> Vec<Finding> {
        let all = [
            // LVM calls the state of such a volume unknown.
            self.outgrown(),
            self.lvm(),
            self.suspended(),
            self.failed(),
            self.node(),
            self.lock(),
            self.header(),
            self.full(),
            self.in_full_pool(),
            self.without_space(),
            self.snapshot_full(),
            self.errors(),
            self.may_be_formatted(),
            self.mkfs_unfinished(),
            self.kept_from_others(),
            self.two_globals(),
            self.unused_global(),
        ];
        all.into_iter().flatten().collect()
    }

    /// What is wrong with the volume itself: its faults, the worst first, and then a refusal of its next mount. That this
    /// host or another node uses the volume is nothing wrong with it.
    pub fn wrong(&self) -> Vec<Finding> {
        let mut all = self.faults();
        let is_used = self
            .reason()
            .is_some_and(|reason| reason.concern() == Concern::Host);
        all.extend(self.refusal().filter(|_| !is_used));
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
        self.is_ours && (!self.faults().is_empty() || self.refusal().is_some())
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

    /// Why the next mount is refused, if that is a fault. `None`: it is not refused, another node has the volume, or the
    /// volume is not the driver's and nothing about it is broken.
    fn refusal(&self) -> Option<Finding> {
        let verdict = self.verdict.as_ref()?;
        let reason = match &verdict.outcome {
            Outcome::Decided(decision) => decision.refusal()?,
            Outcome::Tried(_, what) => return self.is_ours.then(|| refused(verdict, what)),
            Outcome::Unknown(error) => {
                let finding = Finding::warning("next-mount", error);
                return Some(finding.word("not looked at"));
            }
            Outcome::Repair(_) | Outcome::Busy(_) => return None,
        };
        // Errors of the filesystem are among the faults already.
        let is_named =
            self.failed.is_some() && matches!(reason, Reason::FilesystemFailed(Place::Here(_), _));
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
        (!is_well).then(|| refused(verdict, &words))
    }

    /// What LVM says of the volume. It is a finding beside the refusal of the next mount, since a pod that has the volume
    /// mounted goes on writing to it.
    fn lvm(&self) -> Option<Finding> {
        let (volume, state) = (&self.volume, State::of(&self.volume));
        if state.may == May::Make {
            return None;
        }
        let refusal = require_well(volume, false).err();
        let text = match refusal.filter(|_| !volume.is_pool()) {
            Some(reason) => reason.message(&volume.id),
            None => format!("LVM says {:?}. {}", state.says, what_helps(&state)),
        };
        let finding = Finding::warning("volume-health", text).word(&state.says);
        if volume.runs_out_at(self.limit) && state.may < May::Write {
            // A repair would not give the pool more room.
            return Some(finding.why("its volumes cannot be written until it has room"));
        }
        Some(finding.run(first_command(&state)))
    }

    fn suspended(&self) -> Option<Finding> {
        let reason = Reason::Suspended(self.suspended.clone()?);
        let finding =
            Finding::warning("suspended", reason.message(&self.volume.id)).word("suspended");
        Some(finding.why("whoever reads or writes it waits"))
    }

    /// The fault that the volume's device is larger than LVM's metadata says. It is a finding beside the refusal of the
    /// next mount, since a pod that has the volume mounted goes on writing to it.
    fn outgrown(&self) -> Option<Finding> {
        let reason = Reason::LargerDevice {
            device: self.outgrown?,
            volume: self.volume.device_size(),
        };
        let finding = Finding::failed("larger-device", reason.message(&self.volume.id));
        let command = format!("vgcfgrestore --list {}", self.volume.id.vg());
        Some(finding.word("larger than LVM says").run(command))
    }

    fn failed(&self) -> Option<Finding> {
        let finding = self.failed.as_ref()?.message(&self.volume.id);
        let finding = Finding::failed("filesystem-errors", finding).word("filesystem errors");
        let finding = finding.why("pods cannot rely on what they write there");
        Some(finding.run("dmesg"))
    }

    fn errors(&self) -> Option<Finding> {
        let finding = "the kernel met errors in its filesystem";
        let finding = Finding::warning("filesystem-errors", finding).word("filesystem errors");
        let finding = finding.why("the next mount checks it, and fails if that needs a decision");
        let command = format!("{} check {}; dmesg", own_name(), self.volume.id);
        (self.has_errors && self.failed.is_none()).then(|| finding.run(command))
    }

    fn node(&self) -> Option<Finding> {
        let id = &self.volume.id;
        let finding = format!("active, but {} is missing", id.device().shown());
        let finding = Finding::failed("device-node", finding).word("no device node");
        let finding = finding.why("it cannot be mounted");
        self.lacks_node
            .then(|| finding.run(format!("vgmknodes {}", id.vg())))
    }

    fn lock(&self) -> Option<Finding> {
        let id = &self.volume.id;
        let reason = require_lease(self.lock.as_ref()?, id.vg(), true).err()?;
        let finding = format!("mounted, but {}", reason.message(id));
        Some(Finding::failed("volume-lock", finding).word("lock lost"))
    }

    fn header(&self) -> Option<Finding> {
        let finding = Finding::failed("luks-header", self.header.as_ref()?).word("header lost");
        Some(finding.why("it cannot be opened again once it is closed"))
    }

    fn full(&self) -> Option<Finding> {
        let (volume, id, size) = (&self.volume, &self.volume.id, self.volume.takes());
        if !volume.runs_out_at(self.limit) {
            return None;
        }
        let (mut findings, mut commands) = (Vec::new(), Vec::new());
        for (what, percent) in volume.short_of(self.limit, Bytes::default()) {
            let full = Reason::PoolFull {
                pool: id.clone(),
                size,
                what,
                percent,
                limit: self.limit,
            };
            findings.push(full.message(id));
            commands.push(extend_pool(id, size, what));
        }
        let first = if volume.group.free.get() == 0 {
            format!("vgextend {} DISK && ", id.vg())
        } else {
            String::new()
        };
        let finding = Finding::warning("pool-full", findings.join(". ")).word("full");
        let finding = finding.why("its volumes run full with it");
        Some(finding.run(format!("{first}{}", commands.join(" && "))))
    }

    fn in_full_pool(&self) -> Option<Finding> {
        let pool = self.pool.as_ref()?;
        let finding = format!("its thin pool {} is nearly full", pool.id);
        let finding = Finding::warning("pool-full", finding).word("pool full");
        pool.runs_out_at(self.limit).then_some(finding)
    }

    fn without_space(&self) -> Option<Finding> {
        let (finding, word) = match self.lack? {
            Lack::Space => ("its filesystem is full", "filesystem full"),
            Lack::Inodes => ("no inode is left in its filesystem", "no inodes"),
        };
        let finding = Finding::warning("filesystem-full", finding).word(word);
        let finding = finding.why("pods cannot create files in it: delete files, or grow it");
        // An ext gets more inodes when it grows: mke2fs(8), -i.
        let id = &self.volume.id;
        Some(finding.run(match &self.btrfs_at {
            // LVM's fsadm knows no btrfs.
            Some(at) => format!(
                "lvextend --extents +20%LV {id} && btrfs filesystem resize max {}",
                at.quoted()
            ),
            None => format!("lvextend --resizefs --extents +20%LV {id}"),
        }))
    }

    /// The fault that a snapshot is nearly full. If it is full already, its next mount is refused, and that message
    /// says what helps.
    fn snapshot_full(&self) -> Option<Finding> {
        let percent = nearly_lost(&self.volume)?;
        let finding = format!("the snapshot is {percent:.0} % full");
        let finding = Finding::warning("snapshot-full", finding).word("nearly full");
        let finding = finding.why("a snapshot that is full is lost");
        Some(finding.run(format!("lvextend --extents +20%ORIGIN {}", self.volume.id)))
    }

    fn kept_from_others(&self) -> Option<Finding> {
        let finding = "active here, and nothing uses it";
        let finding = Finding::warning("kept-from-others", finding).word("kept from others");
        let why = "no other node can have it; only a pod that is just starting needs it so";
        let command = format!("lvchange -an {}", self.volume.id);
        self.is_kept_idle.then(|| finding.why(why).run(command))
    }

    /// The fault that a volume has several global mounts. An older driver made one for each of two `PersistentVolume`s.
    fn two_globals(&self) -> Option<Finding> {
        let (first, more) = self.globals.split_first()?;
        let finding = "kubelet has it mounted for all pods under two names";
        let finding = Finding::warning("two-global-mounts", finding).word("two global mounts");
        let finding = finding.why("kubelet unmounts neither, and does not detach it");
        let me = own_name();
        let one = |at: &PathBuf| format!("{me} unmountdevice {}", at.quoted());
        let more = more.iter().map(|at| format!(" && {}", one(at)));
        Some(finding.run(format!("{}{}", one(first), more.collect::<String>())))
    }

    /// The fault that a global mount serves no pod. If kubelet restarts between the ends of the pods of two
    /// `PersistentVolume`s of one volume, it forgets the global mount of the first.
    fn unused_global(&self) -> Option<Finding> {
        let at = self.unused_global.as_ref()?;
        let finding = "mounted for all pods of this node, and no pod has it";
        let finding = Finding::warning("unused-global-mount", finding).word("unused mount");
        let why = "kubelet may have forgotten this mount; only a pod that is just starting or ending needs it";
        let command = format!("{} unmountdevice {}", own_name(), at.quoted());
        Some(finding.why(why).run(command))
    }
}

fn refused(verdict: &Verdict, words: &str) -> Finding {
    let finding = format!("the next mount is refused: {words} [{}]", verdict.short());
    let finding = Finding::failed("next-mount", finding).word("would not mount");
    match verdict.see() {
        Some(see) => finding.run(see),
        None => finding,
    }
}
