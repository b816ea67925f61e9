//! `flexvolume-lvm status`: groups and volumes. The sources are LVM, the kernel, the driver's record, and a look like
//! that of the next mount.

mod row;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::commands::survey::{Choice, Finding, GroupHealth, Inventory, NodeHealth, Severity};
use crate::output::{
    self, Printed, bold, columns, columns_of, counted, cut, percent, printed, red, share, titles,
    yellow,
};
use driver::config::Loaded;
use driver::host::{Host, own_name};
use driver::lvm::{KeptAway, Volume};
use driver::names::LvId;
use row::{Cells, TITLES, VolumeRow};

/// The least time that the list has for reading devices. Mounted and inactive volumes need no reading.
const SHORTEST: Duration = Duration::from_millis(400);

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Volumes (VG/LV, a device, a path that is on one), groups, pods (UID or namespace/name),
    /// kubelet's names of volumes [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Show only volumes and groups that are not well, and volumes that would not mount; the exit code is 1 if
    /// there is any
    #[arg(short = 'x', long)]
    unwell: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct GroupRow {
    group: String,
    size_bytes: u64,
    free_bytes: u64,
    missing_disks: u64,
    exported: bool,
    health: String,
}

#[derive(Default, Serialize)]
struct StatusReport {
    groups: Vec<GroupRow>,
    volumes: Vec<VolumeRow>,
    /// Groups on this node's disks that the node does not use, each with its owner.
    not_used: BTreeMap<String, String>,
    /// Volumes that pods have mounted, and LVM does not know.
    lost: BTreeSet<String>,
    /// The groups for which LVM gave no answer, with its error.
    silent: BTreeMap<String, String>,
    /// Why LVM did not list its disks.
    disks_unknown: Option<String>,
}

/// `flexvolume-lvm status`.
pub fn run(host: &Host, config: &Loaded, args: &StatusArgs) -> Result<Printed> {
    let inventory = Inventory::take(host, config)?;
    let (choice, mut unknown) = inventory.choose(&args.names)?;
    unknown.push_str(&inventory.unlisted(&choice)?);
    let one = choice.one().filter(|_| !args.unwell);
    let mut shown = match one.and_then(|id| inventory.volume(id)) {
        Some(volume) => tree::of(&inventory, volume, args.json)?,
        None => list(&inventory, &choice, args)?,
    };
    if let Some(problem) = &config.problem {
        let line = format!("{}\n", red(problem));
        let text = if args.json {
            &mut shown.stderr
        } else {
            &mut shown.stdout
        };
        text.push_str(&line);
    }
    shown.stderr.push_str(&choice.notes);
    if !unknown.is_empty() {
        shown.code = 1;
        shown.stderr.push_str(&unknown);
    }
    Ok(shown)
}

fn list(inventory: &Inventory, choice: &Choice, args: &StatusArgs) -> Result<Printed> {
    let node = NodeHealth::of_choice(inventory, choice);
    let mut rows = Vec::new();
    let mut report = StatusReport::default();
    let names = choice.ids.iter().map(|id| id.vg().as_str());
    let names: BTreeSet<&str> = names
        .chain(choice.groups.iter().map(String::as_str))
        .collect();
    for name in names {
        let group = inventory.groups.iter().find(|group| group.name == name);
        if let Some(group) = group.filter(|_| choice.groups.contains(name)) {
            let health = node.group(inventory, group);
            report.add_group(&mut rows, inventory, &health, args.unwell);
        }
        for id in choice.ids.iter().filter(|id| id.vg().as_str() == name) {
            if let Some(volume) = inventory.volume(id) {
                report.add_volume(&mut rows, inventory, volume, args.unwell);
            }
        }
    }
    report.add_unlisted(&mut rows, &node, args.unwell);
    let is_unwell = !rows.is_empty() || !report.lost.is_empty() || report.disks_unknown.is_some();
    let text = if args.unwell && !is_unwell {
        "all is well\n".to_owned()
    } else {
        let table = if inventory.groups.is_empty() && rows.is_empty() {
            "LVM shows no volume groups; see `vgs`, `pvs`\n".to_owned()
        } else {
            in_columns(&rows)
        };
        table + &report.below_the_list()
    };
    printed(&report, text, args.json, u8::from(args.unwell && is_unwell))
}

impl StatusReport {
    fn add_group(
        &mut self,
        rows: &mut Vec<Cells>,
        inventory: &Inventory,
        health: &GroupHealth,
        only_unwell: bool,
    ) {
        let group = &health.group;
        let findings = health.findings();
        if only_unwell && !findings.iter().any(Finding::is_unwell) {
            return;
        }
        rows.push(group_cells(inventory, health, &findings));
        self.groups.push(GroupRow {
            group: group.name.clone(),
            size_bytes: group.size.get(),
            free_bytes: group.free.get(),
            missing_disks: group.missing,
            exported: group.exported,
            health: health.word(),
        });
    }

    fn add_volume(
        &mut self,
        rows: &mut Vec<Cells>,
        inventory: &Inventory,
        volume: &Volume,
        only_unwell: bool,
    ) {
        // For a list of faults, all volumes of the driver are read, and no others.
        let longest = match only_unwell {
            true if inventory.is_ours(volume) => None,
            true => Some(Duration::ZERO),
            false => Some(inventory.patience(SHORTEST)),
        };
        let (row, _) = VolumeRow::of(inventory, volume, longest);
        if !only_unwell || row.unwell {
            rows.push(row.cells(inventory, volume));
            self.volumes.push(row);
        }
    }

    /// Adds the groups and volumes that LVM does not list.
    fn add_unlisted(&mut self, rows: &mut Vec<Cells>, node: &NodeHealth, only_unwell: bool) {
        for (KeptAway { vg, owner, .. }, is_named) in &node.hidden {
            if !only_unwell || *is_named {
                rows.push(bare_cells(vg, owner.clone()));
            }
            self.not_used.insert(vg.clone(), owner.clone());
        }
        for (vg, why) in &node.silent {
            rows.push(bare_cells(vg.as_str(), red("LVM is silent")));
            self.silent.insert(vg.to_string(), why.clone());
        }
        self.lost = node.lost.iter().map(LvId::to_string).collect();
        self.disks_unknown.clone_from(&node.disks_unknown);
    }

    /// The lines below the list: LVM's errors, the volumes that LVM has lost, how many volumes were not read.
    fn below_the_list(&self) -> String {
        let mut text = String::new();
        for why in self.silent.values().chain(&self.disks_unknown) {
            let _ = writeln!(text, "{}", red(why));
        }
        for id in &self.lost {
            let lost = format!("{id} is mounted for pods, and LVM does not know it any more");
            let _ = writeln!(text, "{}; see `{} doctor`", red(lost), own_name());
        }
        let verdicts = self
            .volumes
            .iter()
            .filter_map(|row| row.next_mount.as_ref());
        let unread = verdicts.filter(|verdict| verdict.is_unread()).count();
        if unread > 0 {
            let _ = writeln!(
                text,
                "{} not read, since a list must not take long; `{} check` reads all",
                counted(unread, "volume"),
                own_name()
            );
        }
        text
    }
}

/// The rows below their titles, not wider than the terminal.
fn in_columns(rows: &[Cells]) -> String {
    let width = output::width();
    let or_none = |cell: &String| match cell.as_str() {
        "" => "-".to_owned(),
        _ => cell.clone(),
    };
    let rows = rows.iter().map(|row| row.iter().map(or_none).collect());
    let mut table: Vec<Cells> = [titles(TITLES)].into_iter().chain(rows).collect();
    let apart = names_apart(&mut table, width);
    let mut text = String::new();
    for (n, line) in cut(&columns(&table), width).lines().enumerate() {
        if let Some(name) = apart.get(&n) {
            let _ = writeln!(text, "{name}");
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Takes a name out of its row if the name is so long that `HEALTH` would not fit on the terminal. Returns these names
/// by the numbers of their rows. Each name is printed on a line above its row.
fn names_apart(table: &mut [Cells], width: usize) -> BTreeMap<usize, String> {
    /// The width for `HEALTH`. A snapshot's health names its origin, and may be cut.
    const WIDEST_HEALTH: usize = 40;
    if width == usize::MAX {
        return BTreeMap::new();
    }
    let mut widest = 0;
    for health in table.iter_mut().filter_map(|row| row.get_mut(1)) {
        cut(health, WIDEST_HEALTH).trim_end().clone_into(health);
        widest = columns_of(health).max(widest);
    }
    let room = width.saturating_sub(widest).saturating_sub(2);
    let names = table.iter_mut().filter_map(|row| row.first_mut());
    let long = names
        .enumerate()
        .filter(|(_, name)| columns_of(name) > room);
    long.map(|(n, name)| (n, std::mem::take(name))).collect()
}

fn group_cells(inventory: &Inventory, health: &GroupHealth, findings: &[Finding]) -> Cells {
    let group = &health.group;
    let its = inventory
        .volumes
        .iter()
        .filter(|v| v.id.vg().as_str() == group.name);
    let volumes = its.filter(|volume| !volume.is_pool()).count();
    let free = format!("{} free", group.free.rounded());
    let used = group.size.get().saturating_sub(group.free.get());
    let text = match findings.first() {
        None => free,
        Some(worst) if group.exported => worst.word.clone(),
        Some(worst) => format!("{}, {free}", worst.word),
    };
    let text = match findings.first().map(|worst| worst.severity) {
        Some(Severity::Failed) => red(text),
        Some(Severity::Warning) => yellow(text),
        _ => text,
    };
    vec![
        bold(&group.name),
        text,
        String::new(),
        share(percent(used, group.size.get()), "allotted"),
        "group".to_owned(),
        group.size.rounded(),
        counted(volumes, "volume"),
    ]
}

/// The row of a group about which only its health is known.
fn bare_cells(vg: &str, health: String) -> Cells {
    let [name, group] = [bold(vg), "group".to_owned()];
    let none = String::new;
    vec![name, health, none(), none(), group, none(), none()]
}
