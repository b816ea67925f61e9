//! Asks LVM and the kernel about groups, disks and volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::disk_kind::kind_of_shared;
use crate::commands::survey::{Inventory, Outcome};
use crate::commands::unwell::Ours;
use driver::config::Loaded;
use driver::crypt::{self, Header};
use driver::fs::Condition;
use driver::host::{Host, Lack};
use driver::lvm::{self, Disk, Group, GroupLeases, KeptAway, LeaseState, Sight, Volume};
use driver::names::{LvId, VgName};
use driver::volume::{Content, Device, Reason};

/// For how long volumes are read that are the driver's.
pub const LONGEST: Duration = Duration::from_secs(10);
/// The same of all others at least, which are read after these: of them only what is broken is told.
const SHORTEST: Duration = Duration::from_secs(1);

pub struct Lvm {
    /// Sorted by name.
    pub volumes: Vec<VolumeFacts>,
    /// How long LVM's first answer took: it waits for whatever holds its lock.
    pub answered_after: Duration,
    pub groups: Vec<Group>,
    pub kept_away: Vec<KeptAway>,
    /// Disks that LVM would see if its settings did not leave them out.
    pub hidden: Vec<Hidden>,
    pub used_disks: Result<Vec<UsedDisk>, String>,
    /// Whether LVM looks for disks inside open encrypted volumes.
    pub reads_inside: bool,
    /// Volumes of pods that LVM does not know any more.
    pub lost: BTreeSet<LvId>,
}

pub struct Hidden {
    pub disk: Disk,
    /// LVM's devices file does not list it. Else a filter leaves it out.
    pub is_unlisted: bool,
}

pub struct UsedDisk {
    pub disk: Disk,
    /// "an iSCSI", if it is of a kind that several hosts may use.
    pub shared_kind: Option<&'static str>,
}

#[allow(clippy::struct_excessive_bools)] // answers, each by itself
pub struct VolumeFacts {
    pub volume: Volume,
    /// Whether it is the driver's, so that a pod would miss it.
    pub is_ours: bool,
    /// Whether it is active in a group that nodes share, and nothing uses it.
    pub is_kept_idle: bool,
    /// Whether it is active and has no device node.
    pub lacks_node: bool,
    /// Why no more pods get its filesystem: the kernel met errors in it.
    pub failed: Option<Reason>,
    /// The lock of a mounted volume. None: it takes none. (The next mount does not ask for that lock.)
    pub lock: Option<LeaseState>,
    /// None: the config or the locks keep every volume from being mounted, or it is a pool.
    pub next_mount: Option<Outcome>,
    /// Whether the kernel met errors in its filesystem before.
    pub has_errors: bool,
    /// Of what its mounted filesystem has none left.
    pub lack: Option<Lack>,
    /// The LUKS2 header of an encrypted volume, or why it cannot be read. `None`: it has none, or is not active.
    pub header: Option<Result<Option<Header>, String>>,
}

impl Lvm {
    /// Fails if LVM does not answer. `can_lock`: without that no volume can be looked at as a mount does.
    pub(super) fn ask(host: &Host, loaded: &Loaded, can_lock: bool) -> Result<Self> {
        let inventory = Inventory::take(host, loaded)?;
        let disks = lvm::disks(host, Sight::Used).map_err(|error| format!("{error:#}"));
        let is_inside = |device: &PathBuf| crypt::is_inside(device);
        let reads_inside = disks
            .as_ref()
            .is_ok_and(|(_, others)| others.iter().any(is_inside));
        let used = |disk: Disk| UsedDisk {
            shared_kind: kind_of_shared(host.kernel, &disk.path),
            disk,
        };
        let mut asked = Self {
            volumes: Vec::new(),
            answered_after: inventory.asked,
            kept_away: inventory.kept_away(),
            hidden: hidden(&inventory),
            used_disks: disks.map(|(disks, _)| disks.into_iter().map(used).collect()),
            reads_inside,
            lost: inventory.lost(),
            groups: inventory.groups.clone(),
        };
        let is_mountable = can_lock && loaded.problem.is_none();
        let mut locks = BTreeMap::new();
        let ours = Ours::of(&inventory);
        if is_mountable {
            let all = inventory.volumes.iter();
            let (its, others): (Vec<_>, Vec<_>) = all.partition(|volume| ours.has(volume));
            inventory.look_ahead(its.into_iter(), LONGEST);
            inventory.look_ahead(others.into_iter(), inventory.patience(SHORTEST));
        }
        for volume in &inventory.volumes {
            let facts = of_volume(&inventory, &ours, volume, is_mountable, &mut locks);
            asked.volumes.push(facts);
        }
        Ok(asked)
    }

    pub fn has_group(&self, vg: &str) -> bool {
        self.groups.iter().any(|group| group.name == vg)
    }
}

/// Disks of groups that LVM would see and does not, and that the config does not exclude.
fn hidden(inventory: &Inventory) -> Vec<Hidden> {
    let named = &inventory.config.volume_groups;
    let beyond = |sight| {
        let (mut disks, _) = lvm::disks(inventory.host, sight).unwrap_or_default();
        let is_ours = |vg: &str| named.is_empty() || named.keys().any(|name| name.as_str() == vg);
        disks.retain(|disk| is_ours(&disk.vg) && !inventory.has_group(&disk.vg));
        disks
    };
    let hidden = beyond(Sight::All);
    let unlisted = if hidden.is_empty() {
        Vec::new()
    } else {
        beyond(Sight::Unlisted)
    };
    let of_disk = |disk: Disk| Hidden {
        is_unlisted: unlisted.iter().any(|other| other.vg == disk.vg),
        disk,
    };
    hidden.into_iter().map(of_disk).collect()
}

/// A suspended device may answer only when it is resumed.
fn header(inventory: &Inventory, volume: &Volume) -> Option<Result<Option<Header>, String>> {
    let kernel = inventory.host.kernel;
    volume.record.luks.as_ref()?;
    let device = inventory.device(volume)?;
    device.suspended(kernel).is_none().then(|| {
        let pinned = device.clone().pin(kernel);
        let read = pinned.and_then(|pinned| {
            crypt::header_of(inventory.host, (&pinned.file, &pinned.device.path))
        });
        read.map_err(|error| format!("{error:#}"))
    })
}

/// Asks each group for its locks at most once.
fn of_volume(
    inventory: &Inventory,
    ours: &Ours,
    volume: &Volume,
    is_mountable: bool,
    locks: &mut BTreeMap<VgName, GroupLeases>,
) -> VolumeFacts {
    let (host, id) = (inventory.host, &volume.id);
    let is_mounted = |device: &Device| !inventory.mounts(device).is_empty();
    let is_mounted = inventory.device(volume).is_some_and(is_mounted);
    let lock = volume.lock.as_ref().filter(|_| is_mounted).map(|lock| {
        let ask = || GroupLeases::ask(host, id.vg(), host.limits.query);
        let its = locks.entry(id.vg().clone()).or_insert_with(ask);
        its.of(Some(lock))
    });
    let mut has_errors = false;
    let is_ours = ours.has(volume);
    let others = inventory.patience(SHORTEST);
    let longest = if is_ours { LONGEST } else { others };
    let next_mount = (is_mountable && !volume.is_pool()).then(|| {
        let verdict = inventory.verdict(id, inventory.request(volume), longest, |seen| {
            let content = seen.facts.top_content();
            has_errors = matches!(content, Some(Content::Filesystem(found))
                if found.condition == Condition::Errors);
            None
        });
        verdict.outcome
    });
    let none_left = || {
        let device = inventory.device(volume)?;
        let is_asked = device.suspended(host.kernel).is_none();
        let space = is_asked.then(|| inventory.space(device)).flatten()?;
        inventory.lack(volume, &space)
    };
    VolumeFacts {
        volume: volume.clone(),
        is_ours,
        is_kept_idle: inventory.is_kept_idle(volume),
        lacks_node: volume.active
            && !volume.is_pool()
            && inventory.device(volume).is_none()
            && matches!(Device::find(host.kernel, id), Ok(None)),
        failed: inventory.failed(volume),
        lock,
        next_mount,
        has_errors,
        lack: none_left(),
        header: header(inventory, volume),
    }
}
