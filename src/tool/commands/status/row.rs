//! One volume as LVM, the kernel, the driver's record and the next mount have it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Serialize, Serializer};

use crate::commands::survey::{Inventory, Look, Verdict, uids_of};
use crate::commands::unwell::Ours;
use crate::output::{counted, red, yellow};
use driver::host::{Lack, Space};
use driver::lvm::{LeaseState, Volume};
use driver::mount::Row;
use driver::names::{Bytes, Shown};
use driver::volume::{Content, Device, Facts};

/// One volume, for programs and for the list.
#[derive(Serialize)]
pub struct Line {
    pub volume: String,
    pub uuid: String,
    pub size_bytes: u64,
    pub layout: String,
    pub active: bool,
    pub fs: Option<String>,
    pub encrypted: Option<Encrypted>,
    pub fs_bytes: Option<u64>,
    pub fs_used_bytes: Option<u64>,
    pub health: Health,
    /// Whether somebody should look at it.
    pub unwell: bool,
    pub data_percent: Option<f64>,
    pub metadata_percent: Option<f64>,
    pub device: Option<String>,
    pub record: Vec<String>,
    pub mounted_at: Vec<String>,
    pub pods: Vec<String>,
    /// Users that are no pods: the host itself, `swap`, devices on top, another node of a shared group.
    pub other_users: Vec<String>,
    pub next_mount: Option<Verdict>,
    /// When a call last mounted it, if that was asked for and the log goes back so far.
    pub last_mount: Option<String>,
}

/// The layer below the filesystem of an encrypted volume, as far as it is known without a passphrase.
#[derive(Serialize)]
pub struct Encrypted {
    /// Of the LUKS2 header that is recorded.
    pub uuid: String,
    /// The device inside. `None`: it is closed.
    pub open: Option<String>,
    /// The number of that.
    pub number: Option<String>,
}

impl Encrypted {
    fn of(volume: &Volume, top: Option<&Device>) -> Option<Self> {
        let inside = top.filter(|device| device.luks.is_some());
        Some(Self {
            uuid: volume.record.luks_uuid()?.shown().to_string(),
            open: inside.map(|device| device.path.shown().to_string()),
            number: inside.map(|device| device.number.to_string()),
        })
    }
}

/// Collects what is known of a volume, with its verdict. Reads no device after `longest`.
pub fn of_volume(
    inventory: &Inventory,
    ours: &Ours,
    volume: &Volume,
    longest: Duration,
) -> (Line, Option<Facts>) {
    let id = &volume.id;
    let (verdict, facts) = if volume.is_pool() {
        (None, None)
    } else {
        match inventory.see(id, inventory.request(volume), longest) {
            Ok(Look {
                facts,
                decision,
                lack,
                ..
            }) => (Some(Verdict::of_look(&facts, decision, lack)), Some(facts)),
            Err(error) => (Some(Verdict::of_error(id, &error)), None),
        }
    };
    let device = match &facts {
        Some(facts) => facts.device.clone(),
        None => inventory.device(volume).cloned(),
    };
    let mounts = device.as_ref().map(|device| inventory.mounts(device));
    let mounts = mounts.unwrap_or_default();
    let top = match &facts {
        Some(facts) => facts.top(),
        None => device.as_ref().map(|device| inventory.top(device)),
    };
    let encrypted = Encrypted::of(volume, top);
    let uses = facts.as_ref().and_then(|facts| facts.uses.as_ref());
    let space = space(inventory, device.as_ref(), facts.as_ref());
    let health = Health::of(inventory, volume, facts.as_ref(), space.as_ref());
    let record = &volume.record;
    let fs = mounts.first().map(|row| row.fs_type.shown().to_string());
    let is_hosts = |row: &&Row| !inventory.is_pods(row);
    let mut other_users = Vec::new();
    if mounts.iter().any(is_hosts) {
        other_users.push("host".to_owned());
    }
    if let Some(uses) = uses {
        other_users.extend(uses.swap.then(|| "swap".to_owned()));
        other_users.extend(uses.holders.iter().cloned());
    }
    if let Some(openers) = facts.as_ref().and_then(|facts| facts.openers.as_ref()) {
        other_users.extend(openers.loops.iter().cloned());
        let processes = openers.processes.iter();
        other_users.extend(processes.map(|opener| opener.command.to_string()));
    }
    if let Some(LeaseState::Elsewhere(Some(holder))) = facts.as_ref().and_then(|f| f.locks.as_ref())
    {
        other_users.push(format!("node {}", holder.short_name()));
    }
    let pods = uids_of(&mounts);
    let line = Line {
        volume: id.to_string(),
        uuid: volume.uuid.to_string(),
        size_bytes: volume.size.get(),
        layout: volume.layout.clone(),
        active: device.is_some() || volume.active,
        fs: fs
            .or_else(|| record.made.as_ref().map(|made| made.fs.clone()))
            .or_else(|| kind(facts.as_ref()?.content.as_ref()?)),
        encrypted,
        fs_bytes: space.as_ref().map(|space| space.bytes),
        fs_used_bytes: space.as_ref().map(|space| space.used),
        unwell: ours.is_unwell(volume, health == Health::Ok, verdict.as_ref()),
        health,
        data_percent: volume.data_percent,
        metadata_percent: volume.metadata_percent,
        device: device.map(|device| device.path.shown().to_string()),
        record: record.tags.clone(),
        mounted_at: mounts.iter().map(|row| place(row)).collect(),
        pods: pods
            .iter()
            .map(|uid| inventory.pods.name(uid).to_string())
            .collect(),
        other_users,
        next_mount: verdict,
        last_mount: None,
    };
    (line, facts)
}

/// The space of the mounted filesystem, unless it would have to be waited for.
fn space(inventory: &Inventory, device: Option<&Device>, facts: Option<&Facts>) -> Option<Space> {
    let device = device.filter(|_| !is_suspended(facts))?;
    inventory.space(device)
}

fn is_suspended(facts: Option<&Facts>) -> bool {
    let uses = facts.and_then(|facts| facts.uses.as_ref());
    uses.is_some_and(|uses| uses.suspended.is_some())
}

/// What is there: `ext4`, `crypto_LUKS`. None: nothing that has a name of one word.
fn kind(content: &Content) -> Option<String> {
    let kind = match content {
        Content::Filesystem(found) => found.filesystem.fs.to_string(),
        Content::Damaged(fs) => fs.to_string(),
        Content::Other(what) => what.to_string(),
        _ => return None,
    };
    (!kind.contains(' ')).then_some(kind)
}

fn place(row: &Row) -> String {
    let read_only = if row.is_read_only() { " (ro)" } else { "" };
    format!("{}{read_only}", row.mount_point.shown())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Ok,
    /// LVM's words on its health.
    Lvm(String),
    Suspended,
    FilesystemErrors,
    /// Space or inodes, if the mounted filesystem has none left.
    Lacks(Lack),
    Full,
    PoolFull,
    MayBeFormatted,
    MkfsUnfinished,
    KeptFromOthers,
}

impl Health {
    /// The health of a volume that was looked at.
    pub fn seen(inventory: &Inventory, volume: &Volume, facts: &Facts) -> Self {
        let space = space(inventory, facts.device.as_ref(), Some(facts));
        Self::of(inventory, volume, Some(facts), space.as_ref())
    }

    fn of(
        inventory: &Inventory,
        volume: &Volume,
        facts: Option<&Facts>,
        space: Option<&Space>,
    ) -> Self {
        let suspended = is_suspended(facts);
        let failed = match facts.and_then(|facts| facts.uses.as_ref()) {
            Some(uses) => uses.failure.is_some(),
            None => inventory.failed(volume).is_some(),
        };
        let pool = inventory.pool(volume);
        let record = &volume.record;
        if !volume.health.is_empty() {
            Self::Lvm(volume.health.clone())
        } else if suspended {
            Self::Suspended
        } else if failed {
            Self::FilesystemErrors
        } else if is_full(inventory, volume) {
            Self::Full
        } else if pool.is_some_and(|pool| is_full(inventory, pool)) {
            Self::PoolFull
        } else if let Some(lack) = space.and_then(|space| inventory.lack(volume, space)) {
            Self::Lacks(lack)
        } else if record.permission.is_some() {
            Self::MayBeFormatted
        } else if record.making.is_some() {
            Self::MkfsUnfinished
        } else if inventory.is_kept_idle(volume) {
            Self::KeptFromOthers
        } else {
            Self::Ok
        }
    }

    /// With colours: red needs attention, yellow is worth knowing.
    pub fn colored(&self, text: String) -> String {
        match self {
            Self::Ok => text,
            Self::MayBeFormatted | Self::MkfsUnfinished | Self::KeptFromOthers => yellow(text),
            Self::Lvm(_)
            | Self::Suspended
            | Self::FilesystemErrors
            | Self::Lacks(_)
            | Self::Full
            | Self::PoolFull => red(text),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Lvm(health) => health,
            Self::Suspended => "suspended",
            Self::FilesystemErrors => "filesystem errors",
            Self::Lacks(Lack::Space) => "filesystem full",
            Self::Lacks(Lack::Inodes) => "no inodes",
            Self::Full => "full",
            Self::PoolFull => "pool full",
            Self::MayBeFormatted => "may be formatted",
            Self::MkfsUnfinished => "mkfs unfinished",
            Self::KeptFromOthers => "kept from others",
        })
    }
}

impl Serialize for Health {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Whether a pool is filled beyond `thin_pool_limit`.
fn is_full(inventory: &Inventory, pool: &Volume) -> bool {
    let mut filled = pool.filled_to(inventory.config.thin_pool_limit);
    pool.is_pool() && filled.next().is_some()
}

/// A row of the list. A missing cell is shown as `-`.
pub type Cells = BTreeMap<Column, String>;

/// The columns of the list, in this order; each has its arm in [`Line::cell`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Column {
    Volume,
    Size,
    Used,
    Fs,
    NextMount,
    UsedBy,
    Health,
    Device,
    Uuid,
    Record,
    MountedAt,
    LastMount,
}

impl Column {
    /// Those that are shown in any case.
    pub const USUAL: usize = Self::Device as usize;

    /// `next-mount`
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub fn of(self, cells: &Cells) -> String {
        cells.get(&self).map_or("-", String::as_str).to_owned()
    }
}

/// A size for people, or in bytes.
pub fn sized(size: Bytes, bytes: bool) -> String {
    if bytes {
        size.get().to_string()
    } else {
        size.rounded()
    }
}

impl Line {
    /// The key to sort by a column: numbers by their value.
    pub fn sorted_by(&self, column: Column) -> (u64, String) {
        let list = |items: &[String]| (0, items.join(" "));
        let or_none = |text: Option<&String>| (0, text.cloned().unwrap_or_default());
        match column {
            Column::Volume => (0, self.volume.clone()),
            Column::Size => (self.size_bytes, self.volume.clone()),
            Column::Used => (self.fs_used_bytes.unwrap_or(0), self.volume.clone()),
            Column::Fs => or_none(self.fs.as_ref()),
            Column::NextMount => {
                let next = self.next_mount.as_ref();
                (0, next.map_or("", |verdict| verdict.short()).to_owned())
            }
            Column::UsedBy => list(&[&self.pods[..], &self.other_users].concat()),
            Column::Health => (0, self.health.to_string()),
            Column::Device => or_none(self.device.as_ref()),
            Column::Uuid => (0, self.uuid.clone()),
            Column::Record => list(&self.record),
            Column::MountedAt => list(&self.mounted_at),
            Column::LastMount => or_none(self.last_mount.as_ref()),
        }
    }

    pub fn cells(&self, inventory: &Inventory, volume: &Volume, bytes: bool) -> Cells {
        let all = Column::value_variants().iter();
        let cell = |column: &Column| Some((*column, self.cell(*column, inventory, volume, bytes)?));
        all.filter_map(cell).collect()
    }

    fn cell(
        &self,
        column: Column,
        inventory: &Inventory,
        volume: &Volume,
        bytes: bool,
    ) -> Option<String> {
        let list = |items: &[String]| (!items.is_empty()).then(|| items.join(" "));
        let is_pool = volume.is_pool();
        match column {
            Column::Volume => Some(self.volume.clone()),
            Column::Size => Some(sized(volume.size, bytes)),
            Column::Used if is_pool => volume.data_percent.map(|data| format!("{data:.1} %")),
            Column::Used => self
                .fs_used_bytes
                .map(|used| sized(Bytes::new(used), bytes)),
            Column::Fs if is_pool => Some("pool".to_owned()),
            Column::Fs => match (&self.encrypted, &self.fs) {
                (Some(_), fs) => Some(format!("luks2/{}", fs.as_deref().unwrap_or("-"))),
                (None, fs) => fs.clone(),
            },
            Column::NextMount => self.next_mount.as_ref().map(|verdict| match verdict {
                verdict if self.unwell && verdict.is_refused() => red(verdict.short()),
                verdict => verdict.short().to_owned(),
            }),
            Column::UsedBy => self.users(inventory, volume),
            Column::Health => {
                let metadata = volume.metadata_percent.filter(|_| is_pool);
                let metadata = metadata.map(|metadata| format!(", metadata {metadata:.1} %"));
                let health = format!("{}{}", self.health, metadata.unwrap_or_default());
                Some(self.health.colored(health))
            }
            Column::Device => self.device.clone(),
            Column::Uuid => Some(self.uuid.clone()),
            Column::Record => list(&self.record),
            Column::MountedAt => list(&self.mounted_at),
            Column::LastMount => self.last_mount.clone(),
        }
    }

    /// `shop/web-0`, `3 pods`, `host`, `swap`, `dm-5`.
    fn users(&self, inventory: &Inventory, volume: &Volume) -> Option<String> {
        if volume.is_pool() {
            let its = inventory.volumes.iter().filter(|one| one.is_in(volume));
            return Some(counted(its.count(), "volume"));
        }
        let mut users = match self.pods.as_slice() {
            [] => Vec::new(),
            [pod] => vec![pod.clone()],
            pods => vec![counted(pods.len(), "pod")],
        };
        users.extend(self.other_users.iter().cloned());
        (!users.is_empty()).then(|| users.join(", "))
    }
}
