//! Gathers what is known of a volume, and changes nothing.

mod device;
mod in_use;
mod openers;
mod tables;

pub use device::{is_in_kernel, swaps, volume_of};
pub use in_use::require_same;
pub use tables::Tables;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use nix::libc::EBUSY;

use crate::config::Config;
use crate::fs::{self, Examination, Found, Unreadable};
use crate::host::Host;
use crate::lvm::{self, Locks, Volume};
use crate::mount::{KubeletPath, Row, is_kubelets, mounted_at};
use crate::names::{Bytes, LvId};
use crate::volume::decide::{
    Content, Decision, Doubt, Facts, Filesystem, Level, Lvm, Mounted, Openers, Pool, There, Uses,
    Wish, decide, of_openers,
};
use crate::volume::device::Device;
use openers::{Openings, PATIENCE};

pub struct Look<'a> {
    host: &'a Host<'a>,
    config: &'a Config,
    /// The directory of the call, and what kubelet calls the volume. None: nobody calls.
    call: Option<(&'a Path, Option<&'a str>)>,
    /// The kernel's tables, if they were read for many volumes. None: they are read for this one.
    pub tables: Option<&'a Tables>,
    pub facts: Facts,
    /// A person asks: nothing is claimed, and nobody is waited for.
    pub by_person: bool,
    /// The device, claimed unless a person asks: nobody else can claim it while this lives.
    pub claim: Option<Arc<File>>,
    /// What had been written to the device when LVM was asked.
    written: Option<u64>,
}

impl<'a> Look<'a> {
    /// Begins with the device, which the kernel has if the volume is active.
    pub fn at(
        host: &'a Host<'a>,
        config: &'a Config,
        id: &LvId,
        device: Result<Option<Device>>,
        call: Option<(&'a Path, Option<&'a str>)>,
    ) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut facts = Facts::of(id, now.as_secs());
        match device {
            Ok(device) => facts.device = device,
            Err(error) => facts.not_its_device = Some(format!("{error:#}")),
        }
        Self {
            host,
            config,
            call,
            tables: None,
            facts,
            by_person: false,
            claim: None,
            written: None,
        }
    }

    /// Looks until the decision needs nothing more.
    pub fn settle(&mut self, wish: &Wish) -> Result<Decision> {
        self.settle_up_to(Level::Content, wish)
    }

    /// The same, but it ends with [`Decision::Look`] where it would have to look further than this.
    pub fn settle_up_to(&mut self, most: Level, wish: &Wish) -> Result<Decision> {
        loop {
            match decide(&self.facts, wish) {
                Decision::Look(level) if level <= most => match level {
                    Level::Uses => self.facts.uses = self.uses()?,
                    Level::Lvm => {
                        let device = self.facts.device.as_ref();
                        self.written = device.and_then(|one| one.written(self.host.kernel));
                        self.facts.lvm = Some(self.ask_lvm(wish));
                        device::forget_what_lvm_resumed(self.host.kernel, &mut self.facts);
                    }
                    Level::Locks => self.facts.locks = self.locks(),
                    Level::Openers => self.facts.openers = Some(self.openers(0)?),
                    Level::Content => self.facts.content = Some(self.content()),
                },
                decision => return Ok(decision),
            }
        }
    }

    pub fn uses(&self) -> Result<Option<Uses>> {
        let Some(device) = &self.facts.device else {
            return Ok(None);
        };
        let kernel = self.host.kernel;
        let own;
        let tables = if let Some(tables) = self.tables {
            tables
        } else {
            own = Tables::read(kernel)?;
            &own
        };
        let table = &tables.mounts;
        let rows = table.of_device(device.number);
        let own_global = match self.call.map(|(dir, _)| KubeletPath::of(dir)) {
            Some(KubeletPath::Pod { global }) => Some(global),
            _ => None,
        };
        let mounts = rows.iter().map(|row| {
            let at = &row.mount_point;
            Mounted {
                row: (*row).clone(),
                kubelets: is_kubelets(at, &self.config.kubelet_dirs),
                own_global: own_global.as_ref() == Some(at),
            }
        });
        let mut uses = Uses {
            mounts: mounts.collect(),
            swap: tables.swaps.contains(&device.number),
            holders: device
                .holders(kernel)
                .with_context(|| format!("looking for devices on top of {}", device.id))?,
            suspended: device.suspended(kernel),
            ..Uses::default()
        };
        if let Some((dir, name)) = self.call {
            let at = |dir: &Path| -> Result<Option<&Row>> {
                Ok(mounted_at(kernel, dir)?.and_then(|id| table.by_id(id)))
            };
            let advice = in_use::advice(self.config, dir, name);
            uses.there = at(dir)?.map(|row| {
                if row.is_of(device.number) {
                    return There::This(row.clone());
                }
                There::Another(format!(
                    "{} already holds {}, not {}. {advice}",
                    dir.display(),
                    in_use::name_of(self.host, row),
                    device.id
                ))
            });
            // In attach mode the global directory of this pod's volume belongs to it alone.
            if let Some(global) = own_global
                && self.config.attach
                && let Some(row) = at(&global)?
                && !row.is_of(device.number)
            {
                let what = in_use::name_of(self.host, row);
                uses.name_taken = Some((global, format!("{what}, not {}. {advice}", device.id)));
            }
        }
        if uses.there.is_none() && uses.suspended.is_none() {
            uses.failure = device.failure(kernel, &rows);
        }
        Ok(Some(uses))
    }

    /// Asks LVM for the volume and, if it is to be written, for its thin pool; and for the group, if
    /// it is to be made of what is free there.
    pub fn ask_lvm(&self, wish: &Wish) -> Lvm {
        let host = self.host;
        let answer = || -> Result<Lvm> {
            let volume = match lvm::find(host, &self.facts.id)? {
                lvm::Found::Volume(volume) => volume,
                lvm::Found::NoVolume => {
                    let create = &wish.create;
                    if !create.allowed || create.thin_pool().is_some() || create.size.is_none() {
                        return Ok(Lvm::NoVolume { free: None });
                    }
                    let group = lvm::find_group(host, self.facts.id.vg())?;
                    let free = group.map(|group| Some(group.free));
                    return Ok(free.map_or(Lvm::NoGroup, |free| Lvm::NoVolume { free }));
                }
                lvm::Found::Hidden => return Ok(Lvm::Hidden),
                lvm::Found::NoGroup => return Ok(Lvm::NoGroup),
            };
            let pool = match volume.pool.clone().filter(|_| !wish.read_only) {
                None => None,
                Some(pool) => {
                    let pool = LvId::new(volume.id.vg().clone(), pool)
                        .with_context(|| format!("naming the thin pool of {}", volume.id))?;
                    Some(match lvm::find(host, &pool)? {
                        lvm::Found::Volume(row) => Pool::Seen(row),
                        _ => Pool::Unseen(pool),
                    })
                }
            };
            let suspended = self.facts.uses.as_ref().and_then(|u| u.suspended.as_ref());
            let unused_table = suspended.is_some_and(|name| *name == self.facts.id.dm_name())
                && lvm::has_unused_table(host, &self.facts.id)?;
            let lost = volume.health.contains("partial") && lvm::has_lost_data(host, &volume)?;
            Ok(Lvm::Volume {
                volume,
                pool,
                unused_table,
                lost,
            })
        };
        answer().unwrap_or_else(|error| Lvm::Silent(format!("{error:#}")))
    }

    fn locks(&self) -> Option<Locks> {
        let (vg, limit) = (self.facts.id.vg(), self.config.limits.query);
        let lock = self.facts.volume()?.lock.as_ref();
        Some(lvm::locks(self.host, vg, lock, limit))
    }

    /// Notes which node has the volume, if that can be told.
    pub fn note_holder(&mut self, limit: Duration) {
        let volume = self.facts.volume();
        let lock = volume.and_then(|volume| lvm::lock_of(self.host, volume));
        let holder = lock.and_then(|lock| lvm::holder(self.host, self.facts.id.vg(), &lock, limit));
        if holder.is_some() {
            self.facts.locks = Some(Locks::Elsewhere(holder));
        }
    }

    /// Who has the device open, beside this process, which has it open `own` times. Whoever only looks at
    /// it for a moment is waited for.
    fn openers(&self, own: usize) -> Result<Openers> {
        let Some(device) = &self.facts.device else {
            return Ok(Openers::default());
        };
        let (host, kernel) = (self.host, self.host.kernel);
        let see = |openings: &Openings| {
            openings.of(kernel, self.config, device, self.is_mounted_here(), own)
        };
        if let (true, Some(tables)) = (self.by_person, self.tables) {
            return see(tables.openings(host)?);
        }
        let is_recorded = self.facts.volume().is_some_and(|v| v.record.made.is_some());
        let started = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            let openers = see(&Openings::read(host, Some(device.number))?)?;
            let is_late = self.by_person || started.elapsed() >= PATIENCE;
            if !openers.may_end(is_recorded) || is_late || kernel.pause(pause) {
                return Ok(openers);
            }
            pause = pause.saturating_mul(2);
        }
    }

    /// Looks once more who has the device open, which is held open by this process, but not claimed any
    /// more: much time has passed since LVM was asked.
    pub fn openers_now(&mut self, wish: &Wish) -> Result<Option<Decision>> {
        self.facts.openers = Some(self.openers(1)?);
        Ok(of_openers(&self.facts, wish))
    }

    fn is_mounted_here(&self) -> bool {
        let uses = self.facts.uses.as_ref();
        uses.is_some_and(|uses| !uses.mounts.is_empty())
    }

    fn content(&mut self) -> Content {
        let (Some(device), Some(volume)) = (self.facts.device.clone(), self.facts.volume()) else {
            return Content::Failed(format!("{} is not active", self.facts.id));
        };
        let volume = volume.clone();
        let kernel = self.host.kernel;
        self.facts.read_only = device.is_read_only(kernel);
        self.facts.read_only_disk = device.read_only_disk(kernel);
        let openers = self.facts.openers.as_ref();
        if self.is_mounted_here() || openers.is_some_and(Openers::is_mounted) {
            return self.claimed(&device);
        }
        // Exclusive: neither mounted nor swap nor part of another device, and it stays so.
        let claim = match device.open(kernel, !self.by_person) {
            Ok(file) => Arc::new(file),
            Err(e) if e.raw_os_error() == Some(EBUSY) => {
                match self.openers(0) {
                    Ok(openers) => self.facts.openers = Some(openers),
                    Err(error) => return Content::Failed(format!("{error:#}")),
                }
                return self.claimed(&device);
            }
            Err(e) => return Content::Failed(format!("opening {}: {e}", device.path.display())),
        };
        let seen = self.read(&device, &volume, &claim, volume.record.new);
        self.claim = Some(claim);
        seen.unwrap_or_else(|error| Content::Failed(format!("{error:#}")))
    }

    fn claimed(&self, device: &Device) -> Content {
        Content::Claimed(match fs::probe(self.host, &device.node(self.host.kernel)) {
            Ok(Found::Filesystem { fs, uuid }) => Some((fs, uuid)),
            _ => None,
        })
    }

    /// Looks once more, before what cannot be taken back, after a disk or LVM's lock may have been
    /// waited for: the volume is still claimed, nobody else has it open, nothing was written to it since
    /// the look began, and it reads as it did.
    pub fn is_as_it_was(&self) -> Result<bool> {
        let (host, facts) = (self.host, &self.facts);
        let (Some(device), Some(volume), Some(claim)) =
            (&facts.device, facts.volume(), &self.claim)
        else {
            return Ok(false);
        };
        device.require_still_there(host.kernel)?;
        // Flushed: what somebody wrote into the kernel's cache is counted then.
        let content = self.read(device, volume, claim, true)?;
        let written = device.written(host.kernel);
        Ok(Some(content) == facts.content
            && written.is_some()
            && written == self.written
            && device.suspended(host.kernel).is_none()
            && self.openers(1)?.is_nobody())
    }

    /// What is on a device that nobody else has. `flush`: see [`fs::scan`].
    ///
    /// Of a volume that may be blank all is read first: where all is zero, nothing else needs to be
    /// asked. blkid alone would not do, for it says "nothing" of what it cannot read.
    fn read(
        &self,
        device: &Device,
        volume: &Volume,
        claim: &Arc<File>,
        flush: bool,
    ) -> Result<Content> {
        let (host, node) = (self.host, device.node(self.host.kernel));
        let size = device.size(host.kernel)?;
        let scan = || fs::scan(host, size, volume.created, flush, claim, &device.path);
        if volume.record.made.is_none() {
            let seen = scan()?;
            if seen.is_zero && seen.unreadable.is_none() {
                return Ok(unnamed(seen));
            }
        }
        let mut found = fs::probe(host, &node)?;
        if found == Found::Nothing {
            let seen = scan()?;
            if seen.is_zero && seen.unreadable.is_none() {
                return Ok(unnamed(seen));
            }
            // A failing disk fails now and then. By now all was read, and lies in the kernel's cache.
            found = match seen.unreadable {
                None => fs::probe(host, &node)?,
                // One page that only the probe of another kind reads keeps blkid from naming anything.
                Some(_) if seen.signature.is_none() => fs::probe_filesystems(host, &node)?,
                Some(_) => Found::Nothing,
            };
            let is_whole = matches!(found, Found::Filesystem { .. });
            if (seen.unreadable.is_some() && !is_whole)
                || (found == Found::Nothing && !fs::has_several(host, &node)?)
            {
                return Ok(unnamed(seen));
            }
        }
        Ok(match found {
            Found::Nothing | Found::Several => Content::Several,
            Found::Other(what) => Content::Other(what),
            Found::Filesystem { fs, uuid } => {
                let Some(superblock) = fs::superblock_of(host, claim, &device.path)? else {
                    return Ok(Content::Damaged(fs));
                };
                let ours = volume.record.making.as_deref() == Some(fs.as_str());
                let half = ours && fs::was_cut_short(host, &node, fs, &superblock)?;
                Content::Filesystem(Filesystem {
                    fs,
                    uuid,
                    covers: Bytes::new(superblock.size),
                    device: size,
                    half,
                    has_errors: superblock.has_errors,
                })
            }
        })
    }
}

/// What the driver's own reading says of a device where blkid names nothing, or was not asked.
fn unnamed(seen: Examination) -> Content {
    if let Some(Unreadable { offset: at, error }) = seen.unreadable {
        return Content::Unreadable { at, error };
    }
    let doubts = [
        seen.signature.map(Doubt::Mark),
        seen.backup.map(Doubt::Backup),
        seen.written.map(Doubt::Data),
    ];
    Content::Blank {
        zero: seen.is_zero,
        doubts: doubts.into_iter().flatten().collect(),
    }
}
