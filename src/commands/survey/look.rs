//! One look at a volume, as its next mount looks.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::config::Config;
use crate::host::{Host, Lock};
use crate::lvm::{self, Group, Volume, twins};
use crate::names::{FsType, LvId};
use crate::options::Options;
use crate::volume::{
    Decision, Device, Facts, Level, Look, Lvm, Pool, Reason, Tables, Wish, lock, of_pool,
};

/// How long sanlock is asked which node has a volume: its disk may hang.
const HOLDER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Default)]
pub struct Ask<'a> {
    pub fs: Option<FsType>,
    pub read_only: bool,
    /// The options of a call that is rehearsed, instead of these two.
    pub options: Option<&'a Options>,
    /// How long a call that works on the volume is waited for.
    pub patience: Duration,
    /// Its device, where the kernel was asked just now.
    pub device: Option<&'a Device>,
    /// All volumes, where LVM has listed them just now.
    pub all: &'a [Volume],
    /// And all groups.
    pub groups: &'a [Group],
    /// The kernel's tables, where they were read just now.
    pub tables: Option<&'a Tables>,
    /// The device is not read, though the next mount would read it.
    pub unread: bool,
}

pub struct Seen {
    pub facts: Facts,
    pub decision: Decision,
    /// The volume's lock. None: it is not active, or the lock was not taken.
    pub lock: Option<Lock>,
}

impl Seen {
    pub fn volume(&self, id: &LvId) -> Result<&Volume> {
        match self.facts.volume() {
            Some(volume) => Ok(volume),
            None => bail!("LVM was not asked for {id}"),
        }
    }
}

/// Looks at a volume as the next mount does, under its lock, and changes nothing.
pub fn look(host: &Host, config: &Config, id: &LvId, ask: Ask) -> Result<Seen> {
    let wish = match ask.options {
        // Of a pod: it will be mounted in kubelet's directory.
        Some(options) => {
            let dir = config.kubelet_dirs.first().map(PathBuf::as_path);
            Wish::of_call(config, options, dir)
        }
        None => Wish::of_person(config, id, ask.fs, ask.read_only),
    };
    let device = match ask.device {
        Some(device) => Ok(Some(device.clone())),
        None => Device::find(host.kernel, id),
    };
    let mut seen = Look::at(host, config, id, device, None);
    seen.tables = ask.tables;
    seen.by_person = true;
    let lock = match &seen.facts.device {
        Some(device) => Some(lock::hold(host.kernel, device, ask.patience)?),
        None => None,
    };
    let mut decision = seen.settle_up_to(Level::Uses, &wish)?;
    let uses = seen.facts.uses.as_ref();
    if uses.is_none_or(|uses| uses.suspended.is_none()) {
        seen.facts.lvm = listed(host, id, ask);
    }
    if let Decision::Look(_) = decision {
        decision = seen.settle_up_to(Level::Lvm, &wish)?;
        let is_new = seen.facts.is_new();
        // An lvcreate may be at work on it.
        let _being_made = is_new
            .then(|| lock::hold_name(host.kernel, &id.dm_name(), ask.patience))
            .transpose()?;
        if let Decision::Look(_) = decision
            && !ask.unread
        {
            decision = seen.settle(&wish)?;
        }
    }
    let is_shared = seen.facts.volume().is_some_and(|v| v.lock.is_some());
    if decision == Decision::Activate && is_shared && !ask.unread {
        seen.note_holder(HOLDER.min(config.limits.query));
        decision = seen.settle(&wish)?;
    }
    // The mount would make it there, and find that then.
    if let Decision::Create(_) = decision
        && let Some(reason) = against_pool(id, &wish, ask.all)
    {
        decision = Decision::Refuse(reason);
    }
    // Whatever was decided, these are shown.
    if seen.facts.uses.is_none() {
        seen.facts.uses = seen.uses()?;
    }
    if seen.facts.lvm.is_none() {
        seen.facts.lvm = Some(seen.ask_lvm(&wish));
    }
    Ok(Seen {
        facts: seen.facts,
        decision,
        lock,
    })
}

/// What speaks against the thin pool in which a volume would be made.
fn against_pool(id: &LvId, wish: &Wish, all: &[Volume]) -> Option<Reason> {
    let pool = wish.create.thin_pool()?;
    let pool = LvId::new(id.vg().clone(), pool.clone()).ok()?;
    match Volume::among(all, &pool) {
        Some(pool) => of_pool(pool, wish),
        None => Some(Reason::NoPool(pool)),
    }
}

/// What a list of all volumes says of one.
fn listed(host: &Host, id: &LvId, Ask { all, groups, .. }: Ask) -> Option<Lvm> {
    let is_its = |group: &&Group| group.name == id.vg().as_str();
    let number = groups.iter().filter(is_its).count();
    if number > 1 {
        return Some(Lvm::Silent(twins(id.vg(), number)));
    }
    let volume = Volume::among(all, id)?;
    let pool = match &volume.pool {
        None => None,
        Some(name) => Some(match volume.pool_among(all) {
            Some(pool) => Pool::Seen(Box::new(pool.clone())),
            None => Pool::Unseen(LvId::new(id.vg().clone(), name.clone()).ok()?),
        }),
    };
    Some(Lvm::Volume {
        volume: Box::new(volume.clone()),
        pool,
        unused_table: false,
        lost: volume.health.contains("partial") && lvm::has_lost_data(host, volume).unwrap_or(true),
    })
}
