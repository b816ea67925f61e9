//! `flexvolume-lvm status`: groups and volumes as LVM, the kernel, the driver's record and the next mount have
//! them.

mod row;
mod tree;

pub use row::{Health, of_volume};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::commands::survey::{Choice, Walk};
use crate::config::Loaded;
use crate::host::{Host, own_name};
use crate::lvm::{self, Group};
use crate::names::{Bytes, LvId};
use crate::output::{self, Printed, bold, columns, counted, printed, red, titles};
use row::Line;

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

#[derive(Serialize)]
struct GroupLine {
    group: String,
    size_bytes: u64,
    free_bytes: u64,
    missing_disks: u64,
    exported: bool,
}

#[derive(Serialize)]
struct Report {
    groups: Vec<GroupLine>,
    volumes: Vec<Line>,
    /// Groups on this node's disks that it does not use, with whose they are.
    not_used: BTreeMap<String, String>,
    /// Mounted by pods, and unknown to LVM.
    lost: BTreeSet<String>,
}

/// `flexvolume-lvm status`.
pub fn run(host: &Host, config: &Loaded, asked: &Status) -> Result<Printed> {
    loop {
        let walk = Walk::begin(host, config)?;
        let choice = walk.choose(&asked.names)?;
        walk.require(&choice)?;
        let shown = match choice.one().and_then(|id| walk.volume(id)) {
            Some(volume) => tree::of(&walk, volume, asked.json)?,
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
        not_used: BTreeMap::new(),
        lost: BTreeSet::new(),
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
                exported: group.exported,
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
    if asked.names.is_empty() {
        let mut kept = lvm::kept_away(walk.host, &walk.groups, walk.config.limits.query);
        kept.retain(|(name, ..)| !walk.has_group(name));
        for (name, owner, _) in kept {
            let none = || "-".to_owned();
            rows.push(vec![
                bold(&name),
                none(),
                none(),
                "group".to_owned(),
                none(),
                none(),
                owner.clone(),
            ]);
            report.not_used.insert(name, owner);
        }
    }
    let mut text = columns(&rows);
    if rows.len() == 1 {
        "LVM shows no volume groups; see `vgs`, `pvs`\n".clone_into(&mut text);
    }
    if asked.names.is_empty() {
        report.lost = walk.lost().iter().map(LvId::to_string).collect();
    }
    for id in &report.lost {
        let lost = format!("{id} is mounted for pods, and LVM does not know it any more");
        let _ = writeln!(text, "{}; see `{} doctor`", red(lost), own_name());
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
            0 if group.exported => "exported".to_owned(),
            0 => free,
            missing => red(format!(
                "{} missing, {free}",
                counted(usize::try_from(missing).unwrap_or(usize::MAX), "disk",)
            )),
        },
    ]
}
