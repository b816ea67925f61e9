//! Gathers what is known of a volume, and changes nothing.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use nix::libc::EBUSY;

use super::decide::decide;
use super::decision::{Decision, Level, Wish};
use super::device::{self, Device, loops_over_devices};
use super::doubt::Doubt;
use super::facts::{Content, Facts, Filesystem, Lvm, Mounted, Pool, There, Uses};
use super::in_use;
use crate::config::Config;
use crate::fs::{self, Examination, Found, Unreadable};
use crate::host::{DeviceNumber, Host, Kernel};
use crate::lvm::{self, Locks, Volume};
use crate::mount::{KubeletPath, Row, Table, is_kubelets, mounted_at};
use crate::names::{Bytes, LvId};

/// The kernel's tables, read once for a look at many volumes.
pub struct Tables {
    pub mounts: Table,
    loops: Vec<(String, DeviceNumber)>,
    swaps: Vec<DeviceNumber>,
}

impl Tables {
    pub fn read(kernel: &Kernel) -> Result<Self> {
        Ok(Self {
            mounts: Table::read(kernel)?,
            loops: loops_over_devices(kernel).context("looking for loop devices")?,
            swaps: device::swaps(kernel),
        })
    }
}

pub struct Look<'a> {
    host: &'a Host<'a>,
    config: &'a Config,
    /// The directory of the call, and what kubelet calls the volume. None: nobody calls.
    call: Option<(&'a Path, Option<&'a str>)>,
    /// The kernel's tables, if they were read for many volumes. None: they are read for this one.
    pub tables: Option<&'a Tables>,
    pub facts: Facts,
    /// The device, claimed: nobody else can claim it while this lives.
    pub claim: Option<Arc<File>>,
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
            claim: None,
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
                    Level::Lvm => self.facts.lvm = Some(self.ask_lvm(wish)),
                    Level::Locks => self.facts.locks = self.locks(),
                    Level::Content => self.facts.content = Some(self.content()),
                },
                decision => return Ok(decision),
            }
        }
    }

    fn uses(&self) -> Result<Option<Uses>> {
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
        let rows = table.of_device(kernel, device.number);
        let mounts = rows.iter().map(|row| {
            let at = &row.mount_point;
            Mounted {
                row: (*row).clone(),
                kubelets: is_kubelets(at, &self.config.kubelet_dirs),
                global: KubeletPath::of(at) == KubeletPath::Global,
            }
        });
        let mut uses = Uses {
            mounts: mounts.collect(),
            swap: tables.swaps.contains(&device.number),
            holders: device
                .holders(kernel)
                .with_context(|| format!("looking for devices on top of {}", device.id))?,
            loops: device.among(&tables.loops),
            suspended: device.suspended(kernel),
            ..Uses::default()
        };
        if let Some((dir, name)) = self.call {
            let at = |dir: &Path| -> Result<Option<&Row>> {
                Ok(mounted_at(kernel, dir)?.and_then(|id| table.by_id(id)))
            };
            let advice = in_use::same_name_advice(name);
            uses.there = at(dir)?.map(|row| {
                if row.is_of(kernel, device.number) {
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
            if let KubeletPath::Pod { global } = KubeletPath::of(dir)
                && self.config.attach
                && let Some(row) = at(&global)?
                && !row.is_of(kernel, device.number)
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
            Ok(Lvm::Volume {
                volume,
                pool,
                unused_table,
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

    fn content(&mut self) -> Content {
        let (Some(device), Some(volume)) = (self.facts.device.clone(), self.facts.volume()) else {
            return Content::Failed(format!("{} is not active", self.facts.id));
        };
        let volume = volume.clone();
        self.facts.read_only = device.is_read_only(self.host.kernel);
        self.facts.read_only_disk = device.read_only_disk(self.host.kernel);
        // Exclusive: neither mounted nor swap nor part of another device, and it stays so.
        let claim = match self.host.kernel.open_device(&device.path, true) {
            Ok(file) => Arc::new(file),
            Err(e) if e.raw_os_error() == Some(EBUSY) => return self.claimed(&device),
            Err(e) => return Content::Failed(format!("opening {}: {e}", device.path.display())),
        };
        let seen = self.read(&device, &volume, &claim);
        self.claim = Some(claim);
        seen.unwrap_or_else(|error| Content::Failed(format!("{error:#}")))
    }

    fn claimed(&self, device: &Device) -> Content {
        let found = match fs::probe(self.host, &device.path) {
            Ok(Found::Filesystem { fs, uuid }) => Some((fs, uuid)),
            _ => None,
        };
        Content::Claimed {
            by: in_use::elsewhere(self.host.kernel, self.config, device),
            found,
        }
    }

    /// What is on a device that nobody else has.
    ///
    /// Of a volume that may be blank all is read first: where all is zero, nothing else needs to be
    /// asked. blkid alone would not do, for it says "nothing" of what it cannot read.
    fn read(&self, device: &Device, volume: &Volume, claim: &Arc<File>) -> Result<Content> {
        let host = self.host;
        let size = device.size(host.kernel)?;
        let (time, new) = (volume.created, volume.record.new);
        let scan = || fs::scan(host, size, time, new, claim, &device.path);
        if volume.record.made.is_none() {
            let seen = scan()?;
            if seen.unreadable.is_some() || seen.is_zero {
                return Ok(unnamed(seen));
            }
        }
        let mut found = fs::probe(host, &device.path)?;
        if found == Found::Nothing {
            let seen = scan()?;
            if seen.unreadable.is_some() || seen.is_zero {
                return Ok(unnamed(seen));
            }
            // A failing disk fails now and then. By now all was read, and lies in the kernel's cache.
            found = fs::probe(host, &device.path)?;
            if found == Found::Nothing && !fs::has_several(host, &device.path)? {
                return Ok(unnamed(seen));
            }
        }
        Ok(match found {
            Found::Nothing | Found::Several => Content::Several,
            Found::Other(what) => Content::Other(what),
            Found::Filesystem { fs, uuid } => {
                let superblock = fs::read_primary(claim.as_ref()).with_context(|| {
                    format!("reading the superblock of {}", device.path.display())
                })?;
                let Some(superblock) = superblock else {
                    return Ok(Content::Damaged(fs));
                };
                let ours = volume.record.making.as_deref() == Some(fs.as_str());
                let half = ours && fs::was_cut_short(host, &device.path, fs, &superblock)?;
                Content::Filesystem(Filesystem {
                    fs,
                    uuid,
                    covers: Bytes::new(superblock.size),
                    device: size,
                    half,
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
