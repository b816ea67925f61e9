//! Lists all volumes of this node, for the commands that show them. LVM is asked for all at once, and the kernel's
//! tables are read once.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::look::{Request, SeenVolume, look};
use super::objection::objection;
use super::pods::{Pods, uids_of};
use super::snapshot::nearly_lost;
use super::verdict::Verdict;
use crate::commands::log;
use driver::config::{Config, Loaded};
use driver::crypt;
use driver::host::{DeviceNumber, Host, Lack, Space};
use driver::lvm::{self, Group, GroupLeases, KeptAway, LeaseState, Listed, ReadOnlyBy, Volume};
use driver::mount::{KubeletPath, Row, is_kubelets};
use driver::names::{LvId, VgName};
use driver::volume::{
    Decision, Device, Facts, Help, Known, Place, Reason, State, Subject, Tables, all_inside,
    require_header, volume_of,
};

pub struct Inventory<'a> {
    pub host: &'a Host<'a>,
    pub config: &'a Config,
    loaded: &'a Loaded,
    /// All visible volumes, pools among them.
    pub volumes: Vec<Volume>,
    pub groups: Vec<Group>,
    /// The groups for which LVM gave no answer, with its error.
    pub silent: BTreeMap<VgName, String>,
    /// The devices of active volumes, without pools: nobody opens a pool's device.
    devices: BTreeMap<LvId, Device>,
    /// The devices inside open encrypted volumes. An encrypted volume is mounted through such a device.
    insides: Vec<Device>,
    pub tables: Tables,
    pub pods: Pods,
    /// How long LVM took to answer. It may have waited for its own lock.
    pub asked: Duration,
    /// How long the looks that read devices have taken so far. The time of questions to LVM between the looks is not
    /// included.
    looked: Cell<Duration>,
    /// The volumes that the log names. The log is read at most once, and only for a volume that has no record and no
    /// mount for a pod.
    called: OnceCell<BTreeSet<String>>,
    /// The states of the locks of shared groups.
    leases: RefCell<BTreeMap<VgName, GroupLeases>>,
}

impl<'a> Inventory<'a> {
    pub fn take(host: &'a Host<'a>, loaded: &'a Loaded) -> Result<Self> {
        let config = &loaded.config;
        let began = Instant::now();
        let Listed {
            mut volumes,
            groups,
            silent,
        } = lvm::list(host)?;
        for volume in &mut volumes {
            // If LVM does not answer, the pool counts as one that may run out.
            let _ = lvm::see_promised(host, volume, config.thin_pool_limit);
        }
        let asked = began.elapsed();
        let devices = volumes
            .iter()
            .filter(|volume| !volume.is_pool())
            .filter_map(|volume| Device::find(host.kernel, &volume.id).ok()?)
            .map(|device| (device.id.clone(), device))
            .collect();
        Ok(Self {
            host,
            config,
            loaded,
            volumes,
            devices,
            insides: all_inside(host.kernel),
            groups,
            silent,
            tables: Tables::read(host.kernel)?,
            pods: Pods::read(host.kernel),
            asked,
            looked: Cell::default(),
            called: OnceCell::new(),
            leases: RefCell::default(),
        })
    }

    pub fn volume(&self, id: &LvId) -> Option<&Volume> {
        Volume::among(&self.volumes, id)
    }

    /// The thin pool of a volume.
    pub fn pool(&self, volume: &Volume) -> Option<&Volume> {
        self.volume(&volume.pool_id()?)
    }

    pub fn device(&self, volume: &Volume) -> Option<&Device> {
        self.devices.get(&volume.id)
    }

    /// The device inside, if this is an encrypted volume that is open. Otherwise the device itself.
    pub fn top<'b>(&'b self, device: &'b Device) -> &'b Device {
        let is_its = |inside: &&Device| inside.target() == device.target();
        self.insides.iter().find(is_its).unwrap_or(device)
    }

    pub fn mounts(&self, device: &Device) -> Vec<&Row> {
        self.tables.mounts.of_device(self.top(device).number)
    }

    fn mounts_of(&self, volume: &Volume) -> Vec<&Row> {
        let device = self.device(volume);
        device.map(|device| self.mounts(device)).unwrap_or_default()
    }

    /// Groups on this node's disks that the node does not use.
    pub fn kept_away(&self) -> Vec<KeptAway> {
        lvm::kept_away(self.host, &self.groups, self.config.limits.query)
    }

    /// The volumes of pods that LVM does not know any more: their disks are gone, or hidden from LVM.
    pub fn lost(&self) -> BTreeSet<LvId> {
        let kernel = self.host.kernel;
        let known = self.devices.values().map(|device| device.number);
        let known: BTreeSet<DeviceNumber> = known.collect();
        let rows = self.tables.mounts.rows().iter();
        let pods = rows.filter(|row| self.is_pods(row));
        let numbers: BTreeSet<DeviceNumber> = pods.map(Row::block_device).collect();
        let others = numbers.difference(&known);
        let ids = others.filter_map(|number| Some(volume_of(kernel, *number)?.id));
        let is_lost = |id: &LvId| self.volume(id).is_none() && !self.silent.contains_key(id.vg());
        ids.filter(is_lost).collect()
    }

    /// The UIDs of the pods that have a volume mounted, even if LVM does not list it.
    pub fn pods_of(&self, id: &LvId) -> BTreeSet<&str> {
        let kernel = self.host.kernel;
        let rows = self.tables.mounts.rows().iter();
        let is_its = |row: &&Row| {
            self.is_pods(row)
                && volume_of(kernel, row.block_device()).is_some_and(|device| device.id == *id)
        };
        let rows: Vec<&Row> = rows.filter(is_its).collect();
        uids_of(&rows)
    }

    /// Whether a volume of a shared group is active here, and nothing uses it.
    pub fn is_kept_idle(&self, volume: &Volume) -> bool {
        let device = self.device(volume).filter(|_| volume.lock.is_some());
        device.is_some_and(|device| {
            let holders = device.holders(self.host.kernel).unwrap_or_default();
            holders.is_empty() && self.mounts(device).is_empty()
        })
    }

    /// Why no further pod gets the volume's filesystem, if the kernel has found errors in it while pods have it
    /// mounted.
    pub fn failed_filesystem(&self, volume: &Volume) -> Option<Reason> {
        let device = self.device(volume)?;
        let mounts = self.mounts(device);
        let row = mounts.iter().find(|row| self.is_pods(row))?;
        let failure = self.top(device).failure(self.host.kernel, &mounts)?;
        let place = Place::Here(row.mount_point.clone());
        Some(Reason::FilesystemFailed(place, failure))
    }

    pub fn is_mounted_for_pods(&self, volume: &Volume) -> bool {
        self.mounts_of(volume).iter().any(|row| self.is_pods(row))
    }

    /// Where a btrfs on the volume is mounted for writing.
    pub fn btrfs_at(&self, volume: &Volume) -> Option<PathBuf> {
        let mut rows = self.mounts_of(volume).into_iter();
        let row = rows.find(|row| row.fs_type == "btrfs" && !row.is_read_only())?;
        Some(row.mount_point.clone())
    }

    /// The volume's global mount, if the volume has no other mount.
    pub fn unused_global(&self, volume: &Volume) -> Option<PathBuf> {
        let rows = self.mounts_of(volume);
        let first = rows.first()?;
        let table = &self.tables.mounts;
        let is_global = self.is_pods(first) && KubeletPath::of(&first.mount_point).is_global();
        let is_only = rows.iter().all(|row| table.are_at_one_place(first, row));
        (is_global && is_only).then(|| first.mount_point.clone())
    }

    /// The global mounts of a volume that kubelet will never unmount. Empty if the volume has only one: kubelet
    /// unmounts a volume's global mount only if there is no other. If pods use the volume under the name of such a
    /// mount, this mount is left out, since kubelet needs it. Of several such mounts, only one is left out.
    pub fn globals_for_good(&self, volume: &Volume) -> Vec<PathBuf> {
        let table = &self.tables.mounts;
        let (mut globals, mut names) = (Vec::<&Row>::new(), BTreeSet::new());
        for row in self.mounts_of(volume) {
            let at = &row.mount_point;
            match KubeletPath::of(at) {
                _ if !self.is_pods(row) => {}
                KubeletPath::Global
                    if globals.iter().any(|one| table.are_at_one_place(one, row)) => {}
                KubeletPath::Global => globals.push(row),
                KubeletPath::Pod { .. } => names.extend(at.file_name()),
                KubeletPath::Other => {}
            }
        }
        if globals.len() < 2 {
            return Vec::new();
        }
        let is_had = |row: &&Row| {
            row.mount_point
                .file_name()
                .is_some_and(|name| names.contains(name))
        };
        let (had, mut left): (Vec<&Row>, Vec<&Row>) = globals.into_iter().partition(is_had);
        // One of the mounts under names that pods use is left out.
        left.extend(had.into_iter().skip(1));
        left.into_iter()
            .map(|row| row.mount_point.clone())
            .collect()
    }

    pub fn is_pods(&self, row: &Row) -> bool {
        let dirs = &self.config.kubelet_dirs;
        is_kubelets(self.host.kernel, &self.tables.mounts, row, dirs)
    }

    /// The space of the mounted filesystem. Only a mount of kubelet's is opened: a path of the host may be on a network
    /// server that hangs. The caller makes sure that the device is not suspended: the answer could wait for the device.
    /// `None` also if the filesystem says that it is larger than its only device: its superblock is overwritten, or the
    /// volume was reduced, so the numbers say nothing.
    pub fn space(&self, device: &Device) -> Option<Space> {
        let kernel = self.host.kernel;
        let size = self.top(device).size(kernel).ok()?;
        let mounts = self.mounts(device).into_iter();
        let mut pods = mounts.filter(|row| self.is_pods(row));
        // A mount that another one hides does not answer.
        let space_of = |row: &Row| {
            Some((
                row.disks.len(),
                kernel.space(&row.mount_point, row.id).ok()?,
            ))
        };
        let (disks, space) = pods.find_map(space_of)?;
        (space.bytes <= size.get() || disks > 1).then_some(space)
    }

    /// What the filesystem has run out of, if pods may write to it.
    pub fn ran_out_of(&self, volume: &Volume, space: &Space) -> Option<Lack> {
        space.lack.filter(|_| !self.is_only_read(volume))
    }

    /// Whether every mount of the volume was made read-only. A filesystem that the kernel made read-only after an error
    /// does not count.
    pub fn is_only_read(&self, volume: &Volume) -> bool {
        let mounts = self.mounts_of(volume);
        !mounts.is_empty() && mounts.iter().all(|row| row.is_mount_read_only())
    }

    /// What the next mount is assumed to ask for: only reading, if all present mounts of the volume are read-only, or if
    /// thin volumes have it as their external origin, which LVM keeps read-only. So it is no fault if such a volume
    /// cannot be written.
    pub fn request(&self, volume: &Volume) -> Request<'static> {
        let is_origin = volume.read_only_by() == ReadOnlyBy::Origin;
        Request {
            read_only: is_origin || self.is_only_read(volume),
            ..Request::default()
        }
    }

    /// Looks at a volume as its next mount does. Once all looks have taken longer than [`Request::longest`], reads no
    /// device, since a list must not take long.
    pub fn see(&self, id: &LvId, request: Request) -> Result<SeenVolume> {
        let (host, config) = (self.host, self.loaded.require()?);
        let known = Known {
            volumes: &self.volumes,
            groups: &self.groups,
            devices: &self.devices,
            tables: &self.tables,
        };
        let unread = request.unread || !self.has_time(request.longest);
        let subject = Subject { host, config, id };
        let began = Instant::now();
        let seen = look(subject, Some(known), Request { unread, ..request });
        if !unread {
            let looked = self.looked.get().saturating_add(began.elapsed());
            self.looked.set(looked);
        }
        seen
    }

    /// Whether there is time left to read devices.
    pub fn has_time(&self, longest: Option<Duration>) -> bool {
        longest.is_none_or(|longest| self.looked.get() <= longest)
    }

    /// How long a list may read devices: `at_least`, or half of the time that LVM took to answer if this is longer,
    /// since the node may be busy.
    pub fn patience(&self, at_least: Duration) -> Duration {
        at_least.max(self.asked.checked_div(2).unwrap_or_default())
    }

    /// The verdict on the next mount, and the facts. If looking fails, the verdict says so.
    pub fn verdict(&self, id: &LvId, request: Request) -> (Verdict, Option<Facts>) {
        match self.see(id, request) {
            Ok(seen) => {
                let (host, config) = (self.host, self.config);
                let (facts, decision) = (seen.facts, seen.decision);
                // e2fsck may take long, and calls would wait for the lock.
                drop(seen.lock);
                let written = || facts.top().and_then(|device| device.written(host.kernel));
                let before = written();
                let subject = Subject { host, config, id };
                let objection = objection(subject, request, &facts, &decision);
                let is_mount = matches!(decision, Decision::Mount(_));
                // If the device has been written since, somebody has mounted the volume. e2fsck may have taken a
                // half-written state for errors, so this looks again.
                if is_mount && request.tries && written() != before {
                    return as_seen(id, look(subject, None, request));
                }
                let mut verdict = Verdict::of(&facts, decision);
                verdict.outcome = objection.unwrap_or(verdict.outcome);
                (verdict, Some(facts))
            }
            Err(error) => (Verdict::of_error(id, &error), None),
        }
    }

    /// Whether a volume is the driver's: it has a record, a pod has it, or the log has a call about it. Other volumes
    /// are the host's own, or those of virtual machines.
    pub fn is_ours(&self, volume: &Volume) -> bool {
        // A pool counts: volumes of pods may be in it.
        volume.is_pool()
            // A full or nearly full snapshot counts: somebody should extend or remove it.
            || State::of(volume).help == Help::Remove
            || nearly_lost(volume).is_some()
            || !volume.record.tags.is_empty()
            || self.is_mounted_for_pods(volume)
            || self.has_call(&volume.id)
    }

    /// Whether the log has a call about the volume. A log that cannot be read counts as empty: the command `log`
    /// reports that.
    fn has_call(&self, id: &LvId) -> bool {
        let called = self
            .called
            .get_or_init(|| log::volumes(self.host, self.config).unwrap_or_default());
        called.contains(&id.to_string())
    }

    /// The state of a mounted volume's lock, if its group is shared. Asks once for each group.
    pub fn lock(&self, volume: &Volume) -> Option<LeaseState> {
        let lock = volume.lock.as_ref()?;
        let device = self.device(volume)?;
        if self.mounts(device).is_empty() {
            return None;
        }
        let (host, vg) = (self.host, volume.id.vg());
        let mut leases = self.leases.borrow_mut();
        let entry = leases.entry(vg.clone());
        let its = entry.or_insert_with(|| GroupLeases::ask(host, vg, host.limits.query));
        Some(its.of(Some(lock)))
    }

    /// Why an open encrypted volume could not be opened again.
    pub fn header_problem(&self, volume: &Volume, device: &Device) -> Option<String> {
        let recorded = volume.record.luks.as_deref()?;
        let kernel = self.host.kernel;
        let read = device
            .clone()
            .pin(kernel)
            .and_then(|pinned| crypt::header_of(self.host, (&pinned.file, &pinned.device.path)));
        match read {
            Ok(header) => {
                let reason = require_header(recorded, header.as_ref()).err()?;
                Some(reason.message(&volume.id))
            }
            Err(error) => Some(format!("its LUKS2 header cannot be read: {error:#}")),
        }
    }

    /// Whether the config has a table for a group.
    pub fn is_named(&self, vg: &str) -> bool {
        let mut names = self.config.volume_groups.keys();
        names.any(|name| name.as_str() == vg)
    }

    /// Whether LVM lists a group.
    pub fn has_group(&self, vg: &str) -> bool {
        self.groups.iter().any(|group| group.name == vg)
    }

    /// Why LVM gave no answer about a group on this node's disks.
    pub fn why_silent(&self, vg: &str) -> Option<&String> {
        let mut all = self.silent.iter();
        all.find_map(|(name, why)| (name.as_str() == vg).then_some(why))
    }
}

/// The verdict by the look alone. Does not check what this node lacks, such as a tool.
fn as_seen(id: &LvId, seen: Result<SeenVolume>) -> (Verdict, Option<Facts>) {
    match seen {
        Ok(seen) => (Verdict::of(&seen.facts, seen.decision), Some(seen.facts)),
        Err(error) => (Verdict::of_error(id, &error), None),
    }
}
