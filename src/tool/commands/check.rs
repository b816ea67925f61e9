//! `flexvolume-lvm check`: what the next mount would do, and why. Changes nothing.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};

use super::config::mistakes;
use super::idle;
use super::survey::{
    Choice, Finding, Health, Inventory, NodeHealth, OK, Outcome, Request, Verdict,
};
use crate::output::{Printed, columns_within, indented, printed, width};
use driver::config::Loaded;
use driver::host::Host;
use driver::lvm::Volume;
use driver::names::{FsType, LvId};
use driver::options::{FS_TYPE, GROUP, Options, READ_WRITE, VOLUME, by_hand};

/// How long to wait for a call that works on a volume.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Check {
    /// Volumes, groups, pods or paths, as `status` takes them [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Rehearse a mount with this option, as a call-out takes it by hand: -o size=1g, -o thinpool=POOL,
    /// -o mountoptions=…, -o fsType=…; the volume need not be there yet
    #[arg(short, value_name = "KEY=VALUE", value_parser = by_hand)]
    options: Vec<(String, String)>,
    /// Name the first mistake in the config FILE, with line and key; - is standard input. Without FILE, check the config
    /// that this driver reads. Needs neither root nor LVM
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "options", "fs", "ro", "idle"])]
    #[allow(clippy::option_option)] // `None`: no --config; `Some(None)`: --config without FILE
    pub config: Option<Option<PathBuf>>,
    /// Say whether nothing uses a volume, so that it can be handed to a CSI driver, renamed or removed: it is
    /// active, and nothing has it mounted or open, in any mount namespace. If not, each line says who has it and
    /// what to do
    #[arg(long, conflicts_with_all = ["options", "fs", "ro"])]
    pub idle: bool,
    /// The fsType that the pod will ask for
    #[arg(long, value_name = "TYPE", value_parser = FsType::parse)]
    fs: Option<FsType>,
    /// The pod will ask for it read-only
    #[arg(long)]
    ro: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Default, Serialize)]
struct CheckReport {
    volumes: Vec<Checked>,
    would_mount: usize,
    would_be_refused: usize,
    not_active: usize,
    busy: usize,
    to_repair: usize,
    /// How many volumes would mount, but are full or have another fault.
    unwell: usize,
    /// How many volumes do not count for the exit code: they are not the driver's, or another node has them, which is
    /// no fault.
    not_counted: usize,
    /// Faults of groups and disks, and questions that LVM did not answer.
    beside_volumes: Vec<Finding>,
}

#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    verdict: Verdict,
    /// The volume's health, as `status` prints it. `None`: a person named the volume, and only the verdict counts.
    health: Option<String>,
    /// Whether this volume counts for the exit code.
    counts: bool,
}

impl Checked {
    /// The result for a volume that a person names.
    fn named(verdict: Verdict) -> Self {
        Self {
            verdict,
            health: None,
            counts: true,
        }
    }

    fn is_unwell(&self) -> bool {
        let is_ill = self.health.as_ref().is_some_and(|health| health != OK);
        is_ill && self.counts && self.verdict.is_good()
    }
}

/// Checks volumes, a config, or whether nothing uses a volume.
pub fn run(host: &Host, config: &Loaded, args: &Check) -> Result<Printed> {
    if let Some(file) = &args.config {
        return mistakes(host, config, file.as_deref(), args.json);
    }
    if args.idle {
        let [volume] = args.names.as_slice() else {
            bail!("--idle takes one volume, as VG/LV");
        };
        let id = LvId::from_device(volume).map_or_else(|| LvId::parse(volume), Ok)?;
        return idle::check(host, config, &id, args.json);
    }
    volumes(host, config, args)
}

/// Checks the named volumes and groups, or all, or rehearses a mount. The exit code is 0 if every volume would mount,
/// as far as a look without writing can tell. Otherwise it is 1. It is also 1 if another call is at work on a volume. A
/// volume that is not the driver's (see [`Inventory::is_ours`]) counts only if it was named.
fn volumes(host: &Host, config: &Loaded, args: &Check) -> Result<Printed> {
    config.require()?;
    let rehearsed = (!args.options.is_empty()).then(|| args.rehearsed());
    let rehearsed = rehearsed.transpose()?;
    let inventory = Inventory::take(host, config)?;
    let mut report = CheckReport::default();
    let mut unknown = String::new();
    let is_one = if let Some(options) = &rehearsed {
        let request = Request {
            options: Some(options),
            ..args.request()
        };
        let (verdict, _) = inventory.verdict(&options.id, request);
        report.volumes.push(Checked::named(verdict));
        true
    } else {
        let choice;
        (choice, unknown) = inventory.choose(&args.names)?;
        report.beside_volumes = beside_volumes(&inventory, &choice);
        report.volumes = chosen(&inventory, &choice, args);
        choice.one().is_some()
    };
    report.count();
    let text = if is_one {
        in_steps(&report)
    } else {
        in_lines(&report)
    };
    let mut printed = printed(&report, text, args.json)?;
    let others = [
        report.would_be_refused,
        report.not_active,
        report.busy,
        report.to_repair,
        report.unwell,
        report.beside_volumes.len(),
    ];
    printed.code = u8::from(!unknown.is_empty() || others.iter().any(|number| *number > 0));
    printed.stderr = unknown;
    Ok(printed)
}

/// Looks at each chosen volume. A pool is looked at only if it was named.
fn chosen(inventory: &Inventory, choice: &Choice, args: &Check) -> Vec<Checked> {
    let mut checked = Vec::new();
    for id in &choice.ids {
        let is_named = choice.named.contains(id);
        let listed = inventory.volume(id);
        if let Some(volume) = listed.filter(|_| !is_named) {
            if volume.is_pool() {
                continue;
            }
            let request = Request {
                read_only: args.ro || inventory.is_only_read(volume),
                ..args.request()
            };
            checked.extend(one_of_many(inventory, volume, request));
        } else {
            let (verdict, _) = inventory.verdict(id, args.request());
            checked.push(Checked::named(verdict));
        }
    }
    checked
}

/// The faults of the chosen groups, and of volumes that LVM has lost. If all were chosen, also those of the node.
fn beside_volumes(inventory: &Inventory, choice: &Choice) -> Vec<Finding> {
    let node = NodeHealth::of_choice(inventory, choice);
    let groups = inventory.groups.iter();
    let groups = groups.filter(|group| choice.groups.contains(&group.name));
    let groups = groups.flat_map(|group| node.group(inventory, group).findings());
    let all = node.findings().into_iter().chain(groups);
    all.filter(Finding::is_unwell).collect()
}

/// The result for a volume that was not named itself. `None`: it is a pool.
fn one_of_many(inventory: &Inventory, volume: &Volume, request: Request) -> Option<Checked> {
    let (health, _) = Health::of(inventory, volume, Some(request));
    let (word, is_ours, is_ill) = (health.word(), health.is_ours, health.has_fault_or_refusal());
    let verdict = health.verdict?;
    let is_well = verdict.is_good() && !is_ill;
    let is_elsewhere = verdict.is_refused() && !verdict.would_not_mount();
    Some(Checked {
        counts: is_well || (is_ours && !is_elsewhere),
        health: Some(word),
        verdict,
    })
}

impl Check {
    /// The request for the look at each volume.
    fn request(&self) -> Request<'_> {
        Request {
            fs: self.fs,
            read_only: self.ro,
            patience: PATIENCE,
            tries: true,
            ..Request::default()
        }
    }

    /// The options of the mount that `-o` describes. A name VG/LV on the command line sets the options for group and
    /// volume.
    fn rehearsed(&self) -> Result<Options> {
        let mut options = Map::new();
        match self.names.as_slice() {
            [] => {}
            [name] => {
                if let Some((vg, lv)) = name.split_once('/') {
                    options.insert(GROUP.to_owned(), vg.into());
                    options.insert(VOLUME.to_owned(), lv.into());
                }
            }
            _ => bail!("with -o, name one volume, as VG/LV"),
        }
        for (key, value) in &self.options {
            options.insert(key.clone(), value.clone().into());
        }
        if let Some(fs) = self.fs {
            options.insert(FS_TYPE.to_owned(), fs.to_string().into());
        }
        if self.ro {
            options.insert(READ_WRITE.to_owned(), "ro".into());
        }
        Options::parse(&Value::from(options).to_string()).context("reading the volume's options")
    }
}

impl CheckReport {
    fn count(&mut self) {
        self.unwell = self.volumes.iter().filter(|one| one.is_unwell()).count();
        for one in &self.volumes {
            let number = match &one.verdict.outcome {
                _ if !one.counts => &mut self.not_counted,
                Outcome::Busy(_) => &mut self.busy,
                Outcome::Repair(_) => &mut self.to_repair,
                _ if one.verdict.is_good() => &mut self.would_mount,
                _ if one.verdict.is_inactive() => &mut self.not_active,
                _ => &mut self.would_be_refused,
            };
            *number = number.saturating_add(1);
        }
    }
}

fn in_steps(report: &CheckReport) -> String {
    let mut text = String::new();
    for Checked { verdict, .. } in &report.volumes {
        let _ = writeln!(text, "{}", verdict.id);
        for step in &verdict.steps {
            text.push_str(&indented(step, 2, width()));
        }
        let result = match verdict.message() {
            Some(message) if verdict.is_refused() => {
                format!("REFUSED: {message} [{}]", verdict.short())
            }
            Some(message) => format!("{}: {message}", verdict.word()),
            None => count(report),
        };
        text.push_str(&indented(&result, 2, width()));
    }
    for finding in &report.beside_volumes {
        text.push_str(&indented(
            &format!("unwell: {}", finding.finding),
            2,
            width(),
        ));
    }
    text
}

fn in_lines(report: &CheckReport) -> String {
    let rows = report.volumes.iter().map(|one| {
        let verdict = &one.verdict;
        let what = verdict.message().or_else(|| verdict.main_step());
        let health = one.health.as_ref().filter(|_| one.is_unwell());
        let what = health.cloned().or(what);
        let mut row = vec![verdict.id.to_string(), verdict.word().to_owned()];
        row.extend(what);
        row
    });
    let beside = report.beside_volumes.iter().map(|finding| {
        let about = finding.about.clone().unwrap_or_default();
        vec![about, "unwell".to_owned(), finding.finding.clone()]
    });
    let rows: Vec<Vec<String>> = rows.chain(beside).collect();
    format!("{}{}\n", columns_within(&rows, width()), count(report))
}

fn count(report: &CheckReport) -> String {
    let mut text = format!(
        "{} would mount, {} would be refused",
        report.would_mount, report.would_be_refused
    );
    for (number, what) in [
        (report.not_active, "not active, so not looked at"),
        (report.to_repair, "if `e2fsck -p` can repair it"),
        (report.busy, "busy"),
        (
            report.unwell.saturating_add(report.beside_volumes.len()),
            "not well",
        ),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    if report.not_counted > 0 {
        let _ = write!(text, "; not counted: {} of no pod here", report.not_counted);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use anyhow::Error;

    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::host::holders::Opener;
    use driver::mount::Table;
    use driver::names::Shown;
    use driver::volume::{Content, Decision, Facts, Reason};

    /// A report with hostile text in each place where others' text may be.
    fn report(hostile: &str) -> CheckReport {
        let id = LvId::parse("vg/data").unwrap();
        let mut row = Table::parse("36 1 254:1 / /a rw - ext4 /dev/x rw").rows()[0].clone();
        row.mount_point = hostile.into();
        let opener = Opener {
            pid: 7,
            command: hostile.shown(),
            writes: true,
        };
        let seen = |content, decision| {
            let mut facts = Facts::of(&id, 7);
            facts.content = Some(content);
            Verdict::of(&facts, decision)
        };
        let verdicts = [
            seen(Content::Other(hostile.shown()), Decision::Bind(row)),
            seen(
                Content::Failed(hostile.to_owned()),
                Decision::Refuse(Reason::Open(vec![opener])),
            ),
            Verdict::of_error(&id, &Error::msg(hostile.to_owned())),
        ];
        CheckReport {
            volumes: verdicts.map(Checked::named).into(),
            ..CheckReport::default()
        }
    }

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_check(hostile in hostile()) {
            let tame = report("x");
            let report = report(&hostile);
            for print in [in_steps, in_lines] {
                let text = print(&report);
                prop_assert!(has_lines(&text, print(&tame).lines().count()), "{text:?}");
            }
            let json = serde_json::to_string(&report).unwrap();
            prop_assert!(has_lines(&json, 1), "{json:?}");
        }
    }
}
