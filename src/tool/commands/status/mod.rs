//! `flexvolume-lvm status`: groups and volumes as LVM, the kernel, the driver's record and the next mount have
//! them.

mod row;
mod tree;

pub use row::{Health, Line, of_volume};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use crate::commands::log;
use crate::commands::survey::{Choice, Inventory};
use crate::commands::unwell::Ours;
use crate::output::{self, Printed, bold, columns, counted, cut, printed, red};
use driver::config::Loaded;
use driver::host::{Host, own_name};
use driver::lvm::{self, Group, Volume};
use driver::names::{Bytes, LvId};
use row::{Cells, Column, sized};

/// How long the list reads devices at least. Mounted and inactive volumes need no reading.
const SHORTEST: Duration = Duration::from_millis(400);
/// How often `--watch` draws.
const PAUSE: Duration = Duration::from_secs(2);

/// Erases the rest of the terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub struct Status {
    /// Volumes (VG/LV, a device, a path that is on one), groups, pods (UID or namespace/name),
    /// kubelet's names of volumes [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Show devices, UUIDs, records and mount points too: where the terminal is too narrow for a line, below it
    #[arg(short, long)]
    wide: bool,
    /// Show only volumes that are not well or would not mount, and groups whose disks are missing; the exit
    /// code is 1 if there is any
    #[arg(short = 'x', long)]
    unwell: bool,
    /// Show these columns, separated by commas
    #[arg(short = 'o', long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with_all = ["wide", "json"])]
    columns: Vec<Column>,
    /// Show the volumes in the order of a column, without the groups
    #[arg(long, value_name = "COLUMN")]
    sort: Option<Column>,
    /// Show no titles, for scripts
    #[arg(short, long)]
    noheadings: bool,
    /// Show sizes in bytes
    #[arg(long)]
    bytes: bool,
    /// Show again every 2 s
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
struct StatusReport {
    groups: Vec<GroupLine>,
    volumes: Vec<Line>,
    /// Groups on this node's disks that it does not use, with whose they are.
    not_used: BTreeMap<String, String>,
    /// Mounted by pods, and unknown to LVM.
    lost: BTreeSet<String>,
}

/// `flexvolume-lvm status`.
pub fn run(host: &Host, config: &Loaded, args: &Status) -> Result<Printed> {
    loop {
        let inventory = Inventory::take(host, config)?;
        let choice = inventory.choose(&args.names)?;
        inventory.require(&choice)?;
        let is_list = args.unwell
            || args.bytes
            || args.noheadings
            || args.sort.is_some()
            || !args.columns.is_empty();
        let one = choice.one().filter(|_| !is_list);
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
        if !args.watch {
            return Ok(shown);
        }
        drop(inventory);
        if !output::tell(&format!("{CLEAR}{}", shown.stdout)) || host.kernel.pause(PAUSE) {
            return Ok(Printed::default());
        }
    }
}

fn list(inventory: &Inventory, choice: &Choice, args: &Status) -> Result<Printed> {
    let mut report = StatusReport {
        groups: Vec::new(),
        volumes: Vec::new(),
        not_used: BTreeMap::new(),
        lost: BTreeSet::new(),
    };
    let mut rows = Vec::new();
    let last_mounts = last_mounts(inventory, args);
    let names = choice.ids.iter().map(|id| id.vg().as_str());
    let names: BTreeSet<&str> = names
        .chain(choice.groups.iter().map(String::as_str))
        .collect();
    let ours = if args.unwell || args.json {
        Ours::of(inventory)
    } else {
        Ours::at_once(inventory)
    };
    // Who asks for what is wrong wants to know it all, but nothing is wrong with what is nobody's.
    let of_list = inventory.patience(SHORTEST);
    let longest = |volume: &Volume| match args.unwell {
        true if ours.has(volume) => Duration::MAX,
        true => Duration::ZERO,
        false => of_list,
    };
    let volumes = choice.ids.iter().filter_map(|id| inventory.volume(id));
    let volumes = volumes.filter(|volume| longest(volume) > Duration::ZERO);
    let at_most = if args.unwell { Duration::MAX } else { of_list };
    inventory.look_ahead(volumes, at_most);
    for name in names {
        let group = inventory.groups.iter().find(|group| group.name == name);
        let group = group.filter(|_| choice.groups.contains(name));
        if let Some(group) = group.filter(|group| !args.unwell || group.missing > 0) {
            if args.sort.is_none() {
                rows.push(group_cells(inventory, group, args.bytes));
            }
            report.groups.push(GroupLine {
                group: group.name.clone(),
                size_bytes: group.size.get(),
                free_bytes: group.free.get(),
                missing_disks: group.missing,
                exported: group.exported,
            });
        }
        for id in choice.ids.iter().filter(|id| id.vg().as_str() == name) {
            let Some(volume) = inventory.volume(id) else {
                continue;
            };
            let (mut line, _) = of_volume(inventory, &ours, volume, longest(volume));
            line.last_mount = last_mounts.get(&line.volume).cloned();
            if args.unwell && !line.unwell {
                continue;
            }
            if args.sort.is_none() {
                rows.push(line.cells(inventory, volume, args.bytes));
            }
            report.volumes.push(line);
        }
    }
    if let Some(column) = args.sort {
        report
            .volumes
            .sort_by_cached_key(|line| line.sorted_by(column));
        let volumes = report.volumes.iter();
        let rows_of = volumes
            .filter_map(|line| Some((line, inventory.volume(&LvId::parse(&line.volume).ok()?)?)));
        rows.extend(rows_of.map(|(line, volume)| line.cells(inventory, volume, args.bytes)));
    }
    if args.names.is_empty() {
        add_kept_away(inventory, args, &mut report, &mut rows);
    }
    let mut text = if inventory.groups.is_empty() && rows.is_empty() {
        "LVM shows no volume groups; see `vgs`, `pvs`\n".to_owned()
    } else {
        in_columns(&rows, args)
    };
    if args.names.is_empty() {
        report.lost = inventory.lost().iter().map(LvId::to_string).collect();
    }
    for id in &report.lost {
        let lost = format!("{id} is mounted for pods, and LVM does not know it any more");
        let _ = writeln!(text, "{}; see `{} doctor`", red(lost), own_name());
    }
    let verdicts = report.volumes.iter().filter_map(|l| l.next_mount.as_ref());
    let unread = verdicts.filter(|verdict| verdict.is_unread()).count();
    if unread > 0 && !args.noheadings {
        let _ = writeln!(
            text,
            "{} not read, since a list must not take long; `{} check` reads all",
            counted(unread, "volume"),
            own_name()
        );
    }
    let is_unwell = rows.len().saturating_add(report.lost.len()) > 0;
    if args.unwell && !is_unwell {
        let said = if args.noheadings { "" } else { "all is well\n" };
        said.clone_into(&mut text);
    }
    let mut printed = printed(&report, text, args.json)?;
    printed.code = u8::from(args.unwell && is_unwell);
    Ok(printed)
}

/// Only where they are shown: the whole log is read for them.
fn last_mounts(inventory: &Inventory, args: &Status) -> BTreeMap<String, String> {
    let wanted = args.columns.iter().chain(&args.sort);
    if !args.wide
        && !wanted
            .into_iter()
            .any(|column| *column == Column::LastMount)
    {
        return BTreeMap::new();
    }
    // A log that cannot be read is the doctor's to name.
    log::last_mounts(inventory.host, inventory.config).unwrap_or_default()
}

/// Groups on this node's disks that it does not use.
fn add_kept_away(
    inventory: &Inventory,
    args: &Status,
    report: &mut StatusReport,
    rows: &mut Vec<Cells>,
) {
    let mut kept = inventory.kept_away();
    kept.retain(|kept| !inventory.has_group(&kept.vg));
    for lvm::KeptAway { vg, owner, .. } in kept {
        if args.sort.is_none() && !args.unwell {
            rows.push(Cells::from([
                (Column::Volume, bold(&vg)),
                (Column::Fs, "group".to_owned()),
                (Column::Health, owner.clone()),
            ]));
        }
        report.not_used.insert(vg, owner);
    }
}

/// The rows as they are asked for, and no wider than the terminal.
fn in_columns(rows: &[Cells], args: &Status) -> String {
    let columns_of = |wanted: &[Column]| {
        let titles = wanted.iter().map(|column| {
            let title = column.name().to_uppercase().replace('-', " ");
            bold(title)
        });
        let mut all: Vec<Vec<String>> = Vec::new();
        all.extend((!args.noheadings).then(|| titles.collect()));
        all.extend(rows.iter().map(|cells| {
            let its = wanted.iter().map(|column| column.of(cells));
            its.collect()
        }));
        columns(&all)
    };
    let all = Column::value_variants();
    let (usual, more) = all.split_at(Column::USUAL);
    let wanted = match (args.columns.as_slice(), args.wide) {
        ([], false) => usual,
        ([], true) => all,
        (wanted, _) => wanted,
    };
    let text = columns_of(wanted);
    let width = output::width();
    if !args.wide || text == cut(&text, width) {
        return cut(&text, width);
    }
    let text = cut(&columns_of(usual), width);
    let mut lines = text.lines();
    let mut text = String::new();
    if !args.noheadings {
        let _ = writeln!(text, "{}", lines.next().unwrap_or_default());
    }
    for (line, cells) in lines.zip(rows) {
        let _ = writeln!(text, "{line}");
        for column in more.iter().filter(|column| column.of(cells) != "-") {
            let name = column.name().replace('-', " ");
            let _ = writeln!(text, "  {name}: {}", column.of(cells));
        }
    }
    text
}

fn group_cells(inventory: &Inventory, group: &Group, bytes: bool) -> Cells {
    let its = inventory
        .volumes
        .iter()
        .filter(|v| v.id.vg().as_str() == group.name);
    let volumes = its.filter(|volume| !volume.is_pool()).count();
    let free = format!("{} free", sized(group.free, bytes));
    let used = group.size.get().saturating_sub(group.free.get());
    let health = match group.missing {
        0 if group.exported => "exported".to_owned(),
        0 => free,
        missing => red(format!(
            "{} missing, {free}",
            counted(usize::try_from(missing).unwrap_or(usize::MAX), "disk")
        )),
    };
    Cells::from([
        (Column::Volume, bold(&group.name)),
        (Column::Size, sized(group.size, bytes)),
        (Column::Used, sized(Bytes::new(used), bytes)),
        (Column::Fs, "group".to_owned()),
        (Column::UsedBy, counted(volumes, "volume")),
        (Column::Health, health),
    ])
}
