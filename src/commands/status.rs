//! `lvm status`: groups and volumes as LVM, the kernel, the driver's record and the next mount have
//! them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::pods::uids_of;
use super::story;
use super::verdict::{Ask, Verdict};
use super::walk::{Choice, Walk};
use crate::config::Loaded;
use crate::host::{Host, own_name};
use crate::lvm::{Group, Locks, Volume};
use crate::mount::{Row, is_kubelets};
use crate::names::Bytes;
use crate::output::{self, Printed, bold, columns, printed, red, titles, yellow};
use crate::volume::Facts;

/// How long the list reads devices. What is mounted or not active is told without that.
const LONGEST: Duration = Duration::from_millis(400);
/// How often `--watch` draws.
const PAUSE: Duration = Duration::from_secs(2);

/// Ends what stands on the terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What to show, and how.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Volumes (VG/LV, a device, a path that is on one), groups, pods (UID or namespace/name),
    /// kubelet's names of volumes; none: all
    names: Vec<String>,
    /// Show devices, UUIDs, records and mount points too
    #[arg(short, long)]
    wide: bool,
    /// Show it again every 2 s
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is known of one volume.
#[derive(Serialize)]
pub struct Line {
    pub volume: String,
    pub uuid: String,
    pub size_bytes: u64,
    pub layout: String,
    pub active: bool,
    pub fs: Option<String>,
    pub fs_bytes: Option<u64>,
    pub fs_used_bytes: Option<u64>,
    pub health: String,
    pub data_percent: Option<f64>,
    pub metadata_percent: Option<f64>,
    pub device: Option<String>,
    pub record: Vec<String>,
    pub mounted_at: Vec<String>,
    pub pods: Vec<String>,
    /// The host itself, `swap`, devices on top of it, the node that has it in a shared group.
    pub other_users: Vec<String>,
    pub next_mount: Option<Verdict>,
    /// Pods read it, and none writes.
    #[serde(skip)]
    pub only_read: bool,
}

#[derive(Serialize)]
struct GroupLine {
    group: String,
    size_bytes: u64,
    free_bytes: u64,
    missing_disks: u64,
}

#[derive(Serialize)]
struct Report {
    groups: Vec<GroupLine>,
    volumes: Vec<Line>,
}

/// `lvm status`.
pub fn run(host: &Host, config: &Loaded, asked: &Status) -> Result<Printed> {
    loop {
        let walk = Walk::begin(host, config)?;
        let choice = walk.choose(&asked.names)?;
        walk.require(&choice)?;
        let shown = match choice.one().and_then(|id| walk.volume(id)) {
            Some(volume) => story::of(&walk, volume, asked.json)?,
            None => list(&walk, &choice, asked)?,
        };
        if !asked.watch {
            return Ok(shown);
        }
        if !output::tell(&format!("{CLEAR}{}", shown.stdout)) || host.kernel.pause(PAUSE) {
            return Ok(Printed::default());
        }
    }
}

fn list(walk: &Walk, choice: &Choice, asked: &Status) -> Result<Printed> {
    let mut report = Report {
        groups: Vec::new(),
        volumes: Vec::new(),
    };
    let mut heads = titles([
        "VOLUME",
        "SIZE",
        "USED",
        "FS",
        "NEXT MOUNT",
        "USED BY",
        "HEALTH",
    ]);
    if asked.wide {
        heads.extend(titles(["DEVICE", "UUID", "RECORD", "MOUNTED AT"]));
    }
    let mut rows = vec![heads];
    let names = choice.ids.iter().map(|id| id.vg().as_str());
    let names: BTreeSet<&str> = names
        .chain(choice.groups.iter().map(String::as_str))
        .collect();
    for name in names {
        let group = walk.groups.iter().find(|group| group.name == name);
        if let Some(group) = group.filter(|_| choice.groups.contains(name)) {
            rows.push(group_row(walk, group));
            report.groups.push(GroupLine {
                group: group.name.clone(),
                size_bytes: group.size.get(),
                free_bytes: group.free.get(),
                missing_disks: group.missing,
            });
        }
        for id in choice.ids.iter().filter(|id| id.vg().as_str() == name) {
            let Some(volume) = walk.volume(id) else {
                continue;
            };
            let (line, _) = of_volume(walk, volume, LONGEST);
            rows.push(line.row(walk, volume, asked.wide));
            report.volumes.push(line);
        }
    }
    let mut text = columns(&rows);
    if rows.len() == 1 {
        "LVM shows no volume groups; see `vgs`, `pvs`\n".clone_into(&mut text);
    }
    let verdicts = report.volumes.iter().filter_map(|l| l.next_mount.as_ref());
    let unread = verdicts.filter(|verdict| verdict.is_unread()).count();
    if unread > 0 {
        let _ = writeln!(
            text,
            "{} not read, since a list must not take long; `{} check` reads all",
            counted(unread, "volume"),
            own_name()
        );
    }
    printed(&report, text, asked.json)
}

fn group_row(walk: &Walk, group: &Group) -> Vec<String> {
    let its = walk
        .volumes
        .iter()
        .filter(|v| v.id.vg().as_str() == group.name);
    let volumes = its.filter(|volume| !volume.is_pool()).count();
    let free = format!("{} free", group.free.rounded());
    let used = group.size.get().saturating_sub(group.free.get());
    vec![
        bold(&group.name),
        group.size.rounded(),
        Bytes::new(used).rounded(),
        "group".to_owned(),
        "-".to_owned(),
        counted(volumes, "volume"),
        match group.missing {
            0 => free,
            missing => red(format!(
                "{} missing, {free}",
                counted(usize::try_from(missing).unwrap_or(usize::MAX), "disk",)
            )),
        },
    ]
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// What is known of a volume, and what was seen of it. After `longest` it is not read.
pub fn of_volume(walk: &Walk, volume: &Volume, longest: Duration) -> (Line, Option<Facts>) {
    let id = &volume.id;
    let (verdict, facts) = if volume.is_pool() {
        (None, None)
    } else {
        match walk.see(id, Ask::default(), longest) {
            Ok(seen) => (Some(Verdict::of(&seen)), Some(seen.facts)),
            Err(error) => (Some(Verdict::unknown(id, format!("{error:#}"))), None),
        }
    };
    let device = match &facts {
        Some(facts) => facts.device.clone(),
        None => walk.device(volume),
    };
    let mounts = device.as_ref().map(|device| walk.mounts(device.number));
    let mounts = mounts.unwrap_or_default();
    let uses = facts.as_ref().and_then(|facts| facts.uses.as_ref());
    let suspended = uses.is_some_and(|uses| uses.suspended.is_some());
    let first = mounts.first().filter(|_| !suspended);
    let space = first.and_then(|row| walk.host.kernel.space(&row.mount_point).ok());
    let record = &volume.record;
    let fs = mounts.first().map(|row| row.fs_type.clone());
    let is_hosts = |row: &&Row| !is_kubelets(&row.mount_point, &walk.config.kubelet_dirs);
    let mut other_users = Vec::new();
    if mounts.iter().any(is_hosts) {
        other_users.push("host".to_owned());
    }
    if let Some(uses) = uses {
        other_users.extend(uses.swap.then(|| "swap".to_owned()));
        other_users.extend(uses.holders.iter().chain(&uses.loops).cloned());
    }
    if let Some(Locks::Elsewhere(Some(holder))) = facts.as_ref().and_then(|f| f.locks.as_ref()) {
        other_users.push(format!("node {}", holder.short_name()));
    }
    let pods = uids_of(&mounts);
    let line = Line {
        volume: id.to_string(),
        uuid: volume.uuid.clone(),
        size_bytes: volume.size.get(),
        layout: volume.layout.clone(),
        active: device.is_some() || volume.active,
        fs: fs.or_else(|| record.made.as_ref().map(|made| made.fs.clone())),
        fs_bytes: space.map(|(all, _)| all),
        fs_used_bytes: space.map(|(_, used)| used),
        health: health(walk, volume, suspended),
        data_percent: volume.data_percent,
        metadata_percent: volume.metadata_percent,
        device: device.map(|device| device.path.display().to_string()),
        record: record.tags.clone(),
        mounted_at: mounts.iter().map(|row| place(row)).collect(),
        pods: pods
            .iter()
            .map(|uid| walk.pods.name(uid).to_owned())
            .collect(),
        other_users,
        next_mount: verdict,
        only_read: walk.is_only_read(volume),
    };
    (line, facts)
}

fn place(row: &Row) -> String {
    let read_only = if row.is_read_only() { " (ro)" } else { "" };
    format!("{}{read_only}", row.mount_point.display())
}

/// `ok`, or what is wrong in a word or two.
fn health(walk: &Walk, volume: &Volume, suspended: bool) -> String {
    let pool = walk.pool(volume);
    let record = &volume.record;
    if !volume.health.is_empty() {
        volume.health.clone()
    } else if suspended {
        "suspended".to_owned()
    } else if walk.has_failed(volume) {
        "filesystem errors".to_owned()
    } else if is_full(walk, volume) {
        "full".to_owned()
    } else if pool.is_some_and(|pool| is_full(walk, pool)) {
        "pool full".to_owned()
    } else if record.permission.is_some() {
        "may be formatted".to_owned()
    } else if record.making.is_some() {
        "mkfs unfinished".to_owned()
    } else if walk.is_kept_idle(volume) {
        "kept from others".to_owned()
    } else {
        "ok".to_owned()
    }
}

/// Whether a pool has less left than the driver wants for writing.
fn is_full(walk: &Walk, pool: &Volume) -> bool {
    let mut filled = pool.filled_to(walk.config.thin_pool_limit);
    pool.is_pool() && filled.next().is_some()
}

impl Line {
    fn row(&self, walk: &Walk, volume: &Volume, wide: bool) -> Vec<String> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let used = if volume.is_pool() {
            volume.data_percent.map(|data| format!("{data:.1} %"))
        } else {
            self.fs_used_bytes.map(|used| Bytes::new(used).rounded())
        };
        let fs = if volume.is_pool() {
            Some("pool".to_owned())
        } else {
            self.fs.clone()
        };
        let mut health = self.health.clone();
        if let Some(metadata) = volume.metadata_percent.filter(|_| volume.is_pool()) {
            let _ = write!(health, ", metadata {metadata:.1} %");
        }
        let next = self.next_mount.as_ref().map(|verdict| match verdict {
            verdict if verdict.is_hosts() => verdict.short().to_owned(),
            verdict if verdict.message.is_some() => red(verdict.short()),
            verdict => verdict.short().to_owned(),
        });
        let mut row = vec![
            self.volume.clone(),
            volume.size.rounded(),
            or_none(used),
            or_none(fs),
            or_none(next),
            self.users(walk, volume),
            match &*self.health {
                "ok" => health,
                "may be formatted" | "mkfs unfinished" | "kept from others" => yellow(health),
                _ => red(health),
            },
        ];
        if wide {
            let list = |items: &[String]| or_none((!items.is_empty()).then(|| items.join(" ")));
            row.extend([
                or_none(self.device.clone()),
                self.uuid.clone(),
                list(&self.record),
                list(&self.mounted_at),
            ]);
        }
        row
    }

    /// `shop/web-0`, `3 pods`, `host`, `swap`, `dm-5`.
    fn users(&self, walk: &Walk, volume: &Volume) -> String {
        if volume.is_pool() {
            let its = walk.volumes.iter().filter(|one| one.is_in(volume));
            return counted(its.count(), "volume");
        }
        let mut users = match self.pods.as_slice() {
            [] => Vec::new(),
            [pod] => vec![pod.clone()],
            pods => vec![counted(pods.len(), "pod")],
        };
        users.extend(self.other_users.iter().cloned());
        if users.is_empty() {
            return "-".to_owned();
        }
        users.join(", ")
    }
}
