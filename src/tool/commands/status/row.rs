//! One volume of `status`. The sources are LVM, the kernel, the driver's record, and a look like that of the next
//! mount.

use std::time::Duration;

use serde::Serialize;

use crate::commands::survey::{Health, Inventory, OK, Request, Severity, Verdict, uids_of};
use crate::output::{counted, percent, red, share, yellow};
use driver::host::holders::Opener;
use driver::lvm::{LeaseState, Volume};
use driver::mount::Row;
use driver::names::Shown;
use driver::volume::{Content, Facts, User, users};

/// One volume, for programs and for the list.
#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools)] // independent answers
pub struct VolumeRow {
    pub volume: String,
    pub uuid: String,
    pub size_bytes: u64,
    pub layout: String,
    pub active: bool,
    pub fs: Option<String>,
    pub encrypted: Option<Encrypted>,
    pub fs_bytes: Option<u64>,
    pub fs_used_bytes: Option<u64>,
    pub health: String,
    #[serde(skip)]
    is_failed: bool,
    /// Whether somebody should look at the volume.
    pub unwell: bool,
    /// The origin, if this volume is a snapshot.
    pub snapshot_of: Option<String>,
    pub data_percent: Option<f64>,
    pub metadata_percent: Option<f64>,
    pub device: Option<String>,
    pub record: Vec<String>,
    pub mounted_at: Vec<String>,
    pub pods: Vec<String>,
    /// Users other than pods: the host itself, `swap`, devices on top, another node of a shared group.
    pub other_users: Vec<String>,
    pub next_mount: Option<Verdict>,
}

/// The LUKS2 layer of an encrypted volume, as far as it is known without a passphrase.
#[derive(Serialize)]
pub struct Encrypted {
    /// The UUID of the LUKS2 header in the record.
    pub uuid: String,
    /// The device inside. `None`: the volume is closed.
    pub open: Option<String>,
    /// The number of the device inside, as `major:minor`.
    pub number: Option<String>,
}

impl Encrypted {
    fn of(inventory: &Inventory, volume: &Volume, facts: Option<&Facts>) -> Option<Self> {
        let top = match facts {
            Some(facts) => facts.top(),
            None => inventory.device(volume).map(|device| inventory.top(device)),
        };
        let inside = top.filter(|device| device.luks.is_some());
        Some(Self {
            uuid: volume.record.luks_uuid()?.shown().to_string(),
            open: inside.map(|device| device.path.shown().to_string()),
            number: inside.map(|device| device.number.to_string()),
        })
    }
}

impl VolumeRow {
    /// Collects the facts about a volume, with its verdict. Does not read the device if the looks so far have taken
    /// longer than `longest`.
    pub fn of(
        inventory: &Inventory,
        volume: &Volume,
        longest: Option<Duration>,
    ) -> (Self, Option<Facts>) {
        let request = Request {
            longest,
            ..inventory.request(volume)
        };
        let (health, facts) = Health::of(inventory, volume, Some(request));
        let seen = facts.as_ref();
        // As the look saw them, or else as all volumes were listed.
        let listed = inventory.device(volume);
        let device = seen.map_or(listed, |facts| facts.device.as_ref());
        let mounts = device.map_or_else(Vec::new, |device| inventory.mounts(device));
        let readable = device.filter(|_| health.suspended.is_none());
        let space = readable.and_then(|device| inventory.space(device));
        let uids = uids_of(&mounts).into_iter();
        let row = Self {
            volume: volume.id.to_string(),
            uuid: volume.uuid.to_string(),
            size_bytes: volume.device_size().get(),
            layout: volume.layout.clone(),
            active: device.is_some() || volume.is_active(),
            fs: fs_of(volume, &mounts, seen),
            encrypted: Encrypted::of(inventory, volume, seen),
            fs_bytes: space.as_ref().map(|space| space.bytes),
            fs_used_bytes: space.as_ref().map(|space| space.used),
            unwell: health.is_unwell(),
            health: health.word(),
            is_failed: is_failed(&health),
            snapshot_of: snapshot_of(volume),
            data_percent: volume.data_percent,
            metadata_percent: volume.metadata_percent,
            record: volume.record.tags.clone(),
            mounted_at: mounts.iter().map(|mount| place(mount)).collect(),
            pods: uids
                .map(|uid| inventory.pods.name(uid).to_string())
                .collect(),
            other_users: seen.map(other_users).unwrap_or_default(),
            device: device.map(|device| device.path.shown().to_string()),
            next_mount: health.verdict,
        };
        (row, facts)
    }
}

/// The type of the filesystem: as it is mounted, or else as it is recorded, or else as it was seen.
fn fs_of(volume: &Volume, mounts: &[&Row], facts: Option<&Facts>) -> Option<String> {
    if let Some(row) = mounts.first() {
        return Some(row.fs_type.shown().to_string());
    }
    match &volume.record.made {
        Some(made) => Some(made.fs.clone()),
        None => kind(facts?.content.as_ref()?),
    }
}

/// Whether the worst that is wrong with the volume is a failure, not only a warning.
fn is_failed(health: &Health) -> bool {
    let wrong = health.wrong();
    let worst = wrong.first();
    worst.is_some_and(|worst| worst.severity == Severity::Failed)
}

/// The users that are no pods of this mount namespace, as the rules see them.
fn other_users(facts: &Facts) -> Vec<String> {
    let mut all: Vec<String> = users(facts).into_iter().flat_map(in_words).collect();
    // Several mounts of the host are one user.
    all.dedup();
    if let Some(LeaseState::Elsewhere(Some(holder))) = &facts.locks {
        all.push(format!("node {}", holder.name));
    }
    all
}

fn in_words(user: User) -> Vec<String> {
    let command = |opener: Opener| opener.command.to_string();
    match user {
        User::Swap => vec!["swap".to_owned()],
        User::PartOfDevice { holders, .. } => holders,
        User::HostMount { .. } => vec!["host".to_owned()],
        User::InUse(elsewhere) => elsewhere
            .iter()
            .map(|one| one.command.to_string())
            .collect(),
        User::StillMounted | User::OpenUnseen => vec!["unseen".to_owned()],
        User::Loop(loops) => loops.into_iter().map(|one| one.name).collect(),
        User::Open(processes) => processes.into_iter().map(command).collect(),
    }
}

/// The content in one word, such as `ext4` or `crypto_LUKS`. `None`: there is no such word.
fn kind(content: &Content) -> Option<String> {
    let kind = match content {
        Content::Filesystem(found) => found.filesystem.fs.to_string(),
        Content::Damaged(fs) => fs.to_string(),
        Content::Other(what) => what.to_string(),
        Content::Blank { .. }
        | Content::Luks(_)
        | Content::Several
        | Content::Unreadable { .. }
        | Content::Claimed(_)
        | Content::Failed(_) => return None,
    };
    (!kind.contains(' ')).then_some(kind)
}

/// The origin of a snapshot, as VG/LV. `None`: it is no snapshot.
fn snapshot_of(volume: &Volume) -> Option<String> {
    let origin = volume.origin.as_ref().filter(|_| volume.is_snapshot())?;
    Some(format!("{}/{origin}", volume.id.vg()))
}

fn place(row: &Row) -> String {
    let read_only = if row.is_read_only() { " (ro)" } else { "" };
    format!("{}{read_only}", row.mount_point.shown())
}

/// The titles of the list. If a terminal is too narrow, the last ones are cut.
pub const TITLES: [&str; 7] = [
    "VOLUME",
    "HEALTH",
    "NEXT MOUNT",
    "USE%",
    "FS",
    "SIZE",
    "USED BY",
];
/// A row of the list: a cell for each title. An empty cell is shown as `-`.
pub type Cells = Vec<String>;

impl VolumeRow {
    pub fn cells(&self, inventory: &Inventory, volume: &Volume) -> Cells {
        let is_pool = volume.is_pool();
        // A thick snapshot is lost when its own space is full. So the fill of this space is shown, not that of its
        // filesystem.
        let used = if is_pool || volume.is_thick_snapshot() {
            volume.data_percent
        } else {
            let filled = self.fs_used_bytes.zip(self.fs_bytes);
            filled.map(|(used, all)| percent(used, all))
        };
        let fs = match (&self.encrypted, &self.fs) {
            _ if is_pool => "pool".to_owned(),
            (Some(_), fs) => format!("luks2/{}", fs.as_deref().unwrap_or("-")),
            (None, fs) => fs.clone().unwrap_or_default(),
        };
        let next = self.next_mount.as_ref().map(|verdict| match verdict {
            verdict if self.unwell && verdict.is_refused() => red(verdict.short()),
            verdict => verdict.short().to_owned(),
        });
        let metadata = volume.metadata_percent.filter(|_| is_pool);
        let metadata = metadata.map(|metadata| format!(", metadata {metadata:.1} %"));
        let health = format!(
            "{}{}{}",
            self.health,
            metadata.unwrap_or_default(),
            self.of_origin()
        );
        vec![
            self.volume.clone(),
            self.colored(health),
            next.unwrap_or_default(),
            used.map_or_else(String::new, |used| share(used, "filled")),
            fs,
            volume.device_size().rounded(),
            self.users(inventory, volume),
        ]
    }

    /// Of which volume this is a snapshot, as an addition to other words. Empty: it is none.
    pub fn of_origin(&self) -> String {
        let origin = self.snapshot_of.as_ref();
        origin.map_or_else(String::new, |origin| format!(", snapshot of {origin}"))
    }

    /// The text in the colour of the volume's health. Red needs attention, yellow is worth knowing.
    pub fn colored(&self, text: String) -> String {
        match self.health.as_str() {
            OK => text,
            _ if self.is_failed => red(text),
            _ => yellow(text),
        }
    }

    /// The volume's users, for example `shop/web-0`, `3 pods`, `host`, `swap`, `dm-5`.
    fn users(&self, inventory: &Inventory, volume: &Volume) -> String {
        if volume.is_pool() {
            let its = inventory
                .volumes
                .iter()
                .filter(|one| one.pool_id().as_ref() == Some(&volume.id));
            return counted(its.count(), "volume");
        }
        let mut users = match self.pods.as_slice() {
            [] => Vec::new(),
            [pod] => vec![pod.clone()],
            pods => vec![counted(pods.len(), "pod")],
        };
        users.extend(self.other_users.iter().cloned());
        users.join(", ")
    }
}
