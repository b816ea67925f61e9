//! The volumes of this node, for the commands that show them: LVM is asked for all at once, the
//! kernel's tables are read once, and what a person named is found among them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::look::{Look, Request, look};
use super::pods::Pods;
use super::verdict::{Outcome, Verdict};
use driver::config::{Config, Loaded};
use driver::host::{DeviceNumber, Host, Lack, Space};
use driver::lvm::{self, Group, KeptAway, Volume};
use driver::mount::{Row, is_kubelets};
use driver::names::LvId;
use driver::volume::{Device, Known, Place, Reason, Subject, Tables, all_inside, volume_of};
use driver::with_own_host;

pub struct Inventory<'a> {
    pub host: &'a Host<'a>,
    pub config: &'a Config,
    loaded: &'a Loaded,
    /// All visible volumes, pools among them.
    pub volumes: Vec<Volume>,
    pub groups: Vec<Group>,
    /// The devices of active volumes. A pool has none that anybody opens.
    devices: BTreeMap<LvId, Device>,
    /// The devices inside encrypted volumes that are open: these are mounted.
    insides: Vec<Device>,
    pub tables: Tables,
    pub pods: Pods,
    /// How long LVM took to answer: it waits for whatever holds its lock.
    pub asked: Duration,
    started: Instant,
    /// What was looked at before it was asked for.
    ahead: RefCell<BTreeMap<LvId, Result<Look>>>,
}

impl<'a> Inventory<'a> {
    pub fn take(host: &'a Host<'a>, loaded: &'a Loaded) -> Result<Self> {
        let config = loaded.or_default();
        let began = Instant::now();
        let (volumes, groups) = (lvm::all_volumes(host)?, lvm::all_groups(host)?);
        let asked = began.elapsed();
        let devices = volumes.iter().filter(|volume| !volume.is_pool());
        let devices = devices.filter_map(|volume| Device::listed(host.kernel, volume).ok()?);
        let devices = devices.map(|device| (device.id.clone(), device)).collect();
        Ok(Self {
            host,
            config,
            loaded,
            volumes,
            devices,
            insides: all_inside(host.kernel),
            groups,
            tables: Tables::read(host.kernel)?,
            pods: Pods::read(host.kernel),
            asked,
            started: Instant::now(),
            ahead: RefCell::default(),
        })
    }

    pub fn volume(&self, id: &LvId) -> Option<&Volume> {
        Volume::among(&self.volumes, id)
    }

    /// The thin pool of a volume.
    pub fn pool(&self, volume: &Volume) -> Option<&Volume> {
        volume.pool_among(&self.volumes)
    }

    pub fn device(&self, volume: &Volume) -> Option<&Device> {
        self.devices.get(&volume.id)
    }

    /// The device of a volume that is, or can be, mounted: of an encrypted one the device inside.
    pub fn top<'b>(&'b self, device: &'b Device) -> &'b Device {
        let is_its = |inside: &&Device| inside.lv_uuid == device.lv_uuid;
        self.insides.iter().find(is_its).unwrap_or(device)
    }

    pub fn mounts(&self, device: &Device) -> Vec<&Row> {
        self.tables.mounts.of_device(self.top(device).number)
    }

    /// Groups on this node's disks that it does not use.
    pub fn kept_away(&self) -> Vec<KeptAway> {
        lvm::kept_away(self.host, &self.groups, self.config.limits.query)
    }

    /// The volumes of pods that LVM no longer knows: their disks have gone, or are hidden from it.
    pub fn lost(&self) -> BTreeSet<LvId> {
        let kernel = self.host.kernel;
        let known = self.devices.values().map(|device| device.number);
        let known: BTreeSet<DeviceNumber> = known.collect();
        let rows = self.tables.mounts.rows().iter();
        let pods = rows.filter(|row| self.is_pods(row));
        let numbers: BTreeSet<DeviceNumber> = pods.map(Row::block_device).collect();
        let others = numbers.difference(&known);
        let ids = others.filter_map(|number| Some(volume_of(kernel, *number)?.id));
        ids.filter(|id| self.volume(id).is_none()).collect()
    }

    /// Whether a volume that several nodes share is active here and nothing uses it.
    pub fn is_kept_idle(&self, volume: &Volume) -> bool {
        let device = self.device(volume).filter(|_| volume.lock.is_some());
        device.is_some_and(|device| {
            let holders = device.holders(self.host.kernel).unwrap_or_default();
            holders.is_empty() && self.mounts(device).is_empty()
        })
    }

    /// Why no more pods get its filesystem, if the kernel met errors in it and pods have it.
    pub fn failed(&self, volume: &Volume) -> Option<Reason> {
        let device = self.device(volume)?;
        let mounts = self.mounts(device);
        let row = mounts.iter().find(|row| self.is_pods(row))?;
        let failure = self.top(device).failure(self.host.kernel, &mounts)?;
        let place = Place::Here(row.mount_point.clone());
        Some(Reason::FilesystemFailed(place, failure))
    }

    pub fn is_mounted_for_pods(&self, volume: &Volume) -> bool {
        let device = self.device(volume);
        let mounts = device.map(|device| self.mounts(device));
        mounts
            .unwrap_or_default()
            .iter()
            .any(|row| self.is_pods(row))
    }

    pub fn is_pods(&self, row: &Row) -> bool {
        let dirs = &self.config.kubelet_dirs;
        is_kubelets(self.host.kernel, &self.tables.mounts, row, dirs)
    }

    /// The space of the mounted filesystem. A suspended device may answer only when it is resumed.
    pub fn space(&self, device: &Device) -> Option<Space> {
        let row = *self.mounts(device).first()?;
        self.host.kernel.space(&row.mount_point, row.id).ok()
    }

    /// Of what the filesystem has none left, though pods may write to it.
    pub fn lack(&self, volume: &Volume, space: &Space) -> Option<Lack> {
        space.lack.filter(|_| !self.is_only_read(volume))
    }

    /// True if every mount asked for read-only; a remount by the kernel after an error does not count.
    pub fn is_only_read(&self, volume: &Volume) -> bool {
        let device = self.device(volume);
        let mounts = device.map(|device| self.mounts(device));
        let mounts = mounts.unwrap_or_default();
        !mounts.is_empty() && mounts.iter().all(|row| row.is_mount_read_only())
    }

    /// What the next mount of a volume wishes. A volume that pods only read is well, though none could write to it now.
    pub fn request(&self, volume: &Volume) -> Request<'static> {
        Request {
            read_only: self.is_only_read(volume),
            ..Request::default()
        }
    }

    /// Looks at a volume as its next mount does, but reads no device once the inventory is older than `longest`:
    /// a list must not take long.
    pub fn see(&self, id: &LvId, request: Request, longest: Duration) -> Result<Look> {
        if let Some(seen) = self.ahead.borrow_mut().remove(id) {
            return seen;
        }
        let (host, config) = (self.host, self.loaded.require()?);
        let unread = self.started.elapsed() > longest;
        look(
            Subject { host, config, id },
            Some(self.known()),
            Request { unread, ..request },
        )
    }

    fn known(&self) -> Known<'_> {
        Known {
            volumes: &self.volumes,
            groups: &self.groups,
            devices: &self.devices,
            tables: &self.tables,
        }
    }

    /// For how long devices are read: on a busy node they answer late, as LVM did.
    pub fn patience(&self, at_least: Duration) -> Duration {
        at_least.max(self.asked.checked_div(2).unwrap_or_default())
    }

    /// Looks at many volumes side by side, as [`Self::see`] would at each when it is asked, and keeps no lock of
    /// theirs.
    pub fn look_ahead<'v>(&self, volumes: impl Iterator<Item = &'v Volume>, longest: Duration) {
        /// A process reads devices for each of so many threads.
        const THREADS: usize = 8;
        /// Fewer are looked at as soon one by one.
        const EACH: usize = 16;
        // The look at a new one takes its group's lock for a moment: two would be in each other's way.
        let wanted = volumes.filter(|volume| !volume.is_pool() && !volume.record.new);
        let wanted: Vec<_> = wanted
            .map(|one| (one.id.clone(), self.is_only_read(one)))
            .collect();
        let threads = wanted.len().checked_div(EACH).unwrap_or(0).min(THREADS);
        let Ok(config) = self.loaded.require() else {
            return;
        };
        // Each thread has a host of its own, which knows of no signal that came before.
        if threads < 2 || self.host.kernel.stopping() {
            return;
        }
        let (known, started) = (self.known(), self.started);
        let wanted = Mutex::new(wanted.into_iter());
        let next = || wanted.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = |host: &Host, done: &mpsc::Sender<_>| {
            while let Some((id, read_only)) = next() {
                let request = Request {
                    read_only,
                    unread: started.elapsed() > longest,
                    ..Request::default()
                };
                let id = &id;
                let seen = look(Subject { host, config, id }, Some(known), request);
                let seen = seen.map(|seen| Look { lock: None, ..seen });
                if done.send((id.clone(), seen)).is_err() {
                    return;
                }
            }
        };
        let (done, all) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads {
                let (done, work) = (done.clone(), &work);
                let run = move || with_own_host(config, |host| work(host, &done));
                // What no thread takes is looked at when it is asked for.
                let _ = thread::Builder::new().spawn_scoped(scope, run);
            }
            drop(done);
            for (id, seen) in all {
                self.ahead.borrow_mut().insert(id, seen);
            }
        });
    }

    /// The verdict in words, which `more` may know better; a look that fails is one too.
    pub fn verdict(
        &self,
        id: &LvId,
        request: Request,
        longest: Duration,
        more: impl FnOnce(&Look) -> Option<Outcome>,
    ) -> Verdict {
        match self.see(id, request, longest) {
            Ok(seen) => {
                let other = more(&seen);
                let mut verdict = Verdict::of_look(&seen.facts, seen.decision, seen.lack);
                verdict.outcome = other.unwrap_or(verdict.outcome);
                verdict
            }
            Err(error) => Verdict::of_error(id, &error),
        }
    }

    pub fn has_group(&self, vg: &str) -> bool {
        self.groups.iter().any(|group| group.name == vg)
    }
}
