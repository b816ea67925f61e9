//! `flexvolume-lvm check`: what the next mount would do, and why. Changes nothing.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};

use super::config::mistakes;
use super::idle;
use super::survey::{
    Choice, Finding, Health, Inventory, NodeHealth, OK, Outcome, Request, Verdict,
};
use crate::output::{Printed, USAGE, indented, printed, tell, width};
use driver::config::Loaded;
use driver::host::Host;
use driver::lvm::Volume;
use driver::names::{FsType, LvId, folded};
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
    /// The volume's health, as `status` prints it. `None`: LVM does not list the volume.
    health: Option<String>,
    /// Whether this volume counts for the exit code.
    counts: bool,
    /// The volume's faults, each once, without the refusal of the next mount.
    #[serde(skip)]
    faults: Vec<Finding>,
}

impl Checked {
    /// The result for a volume of which only the verdict is known.
    fn unlisted(verdict: Verdict) -> Self {
        Self {
            verdict,
            health: None,
            counts: true,
            faults: Vec::new(),
        }
    }

    /// The result for a volume that a person names. It counts, even if it is not the driver's.
    fn named(inventory: &Inventory, id: &LvId, request: Request) -> Self {
        let listed = inventory.volume(id);
        let of_many = listed.and_then(|volume| Self::of_many(inventory, volume, request));
        let unlisted = || Self::unlisted(inventory.verdict(id, request).0);
        Self {
            counts: true,
            ..of_many.unwrap_or_else(unlisted)
        }
    }

    /// The result for a volume of LVM's list. `None`: it is a pool.
    fn of_many(inventory: &Inventory, volume: &Volume, request: Request) -> Option<Self> {
        let (health, _) = Health::of(inventory, volume, Some(request));
        let (word, is_ours) = (health.word(), health.is_ours);
        let is_well = health.findings().is_empty();
        let mut faults = health.findings();
        faults.retain(|one| one.check != "next-mount");
        let verdict = health.verdict?;
        Some(Self {
            counts: verdict.is_good() && is_well || is_ours && !verdict.is_elsewhere(),
            health: Some(word),
            verdict,
            faults,
        })
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
        return match args.only_volume() {
            Ok(id) => idle::check(host, config, &id, args.json),
            Err(error) => Ok(usage(&error)),
        };
    }
    match (!args.options.is_empty()).then(|| args.rehearsed()) {
        Some(Ok(options)) => rehearse(host, config, args, &options),
        Some(Err(error)) => Ok(usage(&error)),
        None => volumes(host, config, args),
    }
}

/// The answer to a wrong command line.
fn usage(error: &Error) -> Printed {
    Printed::failure(format!("{}\n", folded(&format!("{error:#}"))), USAGE)
}

/// Says what a mount with these options would do. The volume need not be there.
fn rehearse(host: &Host, config: &Loaded, args: &Check, options: &Options) -> Result<Printed> {
    config.require()?;
    let inventory = Inventory::take(host, config)?;
    let request = Request {
        options: Some(options),
        ..args.request()
    };
    let (verdict, _) = inventory.verdict(&options.id, request);
    let mut report = CheckReport {
        volumes: vec![Checked::unlisted(verdict)],
        ..CheckReport::default()
    };
    report.count();
    let printed = printed(&report, in_steps(&report), args.json)?;
    Ok(Printed {
        code: report.code(),
        ..printed
    })
}

/// Checks the named volumes and groups, or all. The exit code is 0 if every volume is well and would mount, as far as a
/// look without writing can tell. Otherwise it is 1. It is also 1 if another call is at work on a volume. A volume that
/// is not the driver's (see [`Inventory::is_ours`]) counts only if it was named.
///
/// e2fsck may take long, so each line of a list is printed as soon as it is known.
fn volumes(host: &Host, config: &Loaded, args: &Check) -> Result<Printed> {
    config.require()?;
    let inventory = Inventory::take(host, config)?;
    let (choice, unknown) = inventory.choose(&args.names)?;
    let is_one = choice.one().is_some();
    let mut report = CheckReport::default();
    let widest = widest(&choice);
    for id in &choice.ids {
        if let Some(checked) = chosen(&inventory, &choice, args, id) {
            if !is_one && !args.json {
                tell(&line_of(&checked, widest));
            }
            report.volumes.push(checked);
        }
    }
    report.beside_volumes = beside_volumes(&inventory, &choice);
    report.count();
    let text = if is_one {
        in_steps(&report)
    } else {
        let beside = report.beside_volumes.iter();
        let beside = beside.map(|finding| line_beside(finding, widest));
        format!("{}{}\n", beside.collect::<String>(), count(&report))
    };
    let printed = printed(&report, text, args.json)?;
    Ok(Printed {
        code: report.code().max(u8::from(!unknown.is_empty())),
        stderr: format!("{}{unknown}", choice.notes),
        ..printed
    })
}

/// Looks at a chosen volume. `None`: it is a pool that was not named itself.
fn chosen(inventory: &Inventory, choice: &Choice, args: &Check, id: &LvId) -> Option<Checked> {
    match inventory.volume(id) {
        Some(volume) if !choice.named.contains(id) => {
            let request = Request {
                read_only: args.ro || inventory.is_only_read(volume),
                ..args.request()
            };
            Checked::of_many(inventory, volume, request)
        }
        Some(_) | None => Some(Checked::named(inventory, id, args.request())),
    }
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

impl Check {
    /// The one volume that is named.
    fn only_volume(&self) -> Result<LvId> {
        let [volume] = self.names.as_slice() else {
            bail!("--idle takes one volume, as VG/LV");
        };
        LvId::from_device(volume).map_or_else(|| LvId::parse(volume), Ok)
    }

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
    fn code(&self) -> u8 {
        let others = [
            self.would_be_refused,
            self.not_active,
            self.busy,
            self.to_repair,
            self.unwell,
            self.beside_volumes.len(),
        ];
        u8::from(others.iter().any(|number| *number > 0))
    }

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
        if let Some(see) = verdict.see() {
            text.push_str(&indented(&format!("see: `{see}`"), 2, width()));
        }
    }
    let faults = report.volumes.iter().flat_map(|one| &one.faults);
    for finding in faults.chain(&report.beside_volumes) {
        let command = finding.command.iter();
        let command = command.map(|command| format!("; run `{command}`"));
        let line = format!("unwell: {}{}", finding.finding, command.collect::<String>());
        text.push_str(&indented(&line, 2, width()));
    }
    text
}

/// How wide the column of names is.
fn widest(choice: &Choice) -> usize {
    let ids = choice.ids.iter().map(|id| id.to_string().len());
    ids.chain(choice.groups.iter().map(String::len))
        .max()
        .unwrap_or_default()
}

/// A volume's line in a list.
fn line_of(one: &Checked, widest: usize) -> String {
    let verdict = &one.verdict;
    let what = verdict.message().or_else(|| verdict.main_step());
    let health = one.health.as_ref().filter(|_| one.is_unwell());
    let what = health.cloned().or(what).unwrap_or_default();
    in_line(&verdict.id.to_string(), verdict.word(), &what, widest)
}

/// The line of a fault beside the volumes.
fn line_beside(finding: &Finding, widest: usize) -> String {
    let about = finding.about.as_deref().unwrap_or_default();
    in_line(about, "unwell", &finding.finding, widest)
}

fn in_line(name: &str, word: &str, what: &str, widest: usize) -> String {
    /// As wide as `activate`, the longest word.
    const WORD: usize = 8;
    let before = format!("{name:widest$}  {word:WORD$}  ");
    let by = before.chars().count();
    let line = format!("{before}{}", indented(what, by, width()).trim_start());
    format!("{}\n", line.trim_end())
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
            volumes: verdicts.map(Checked::unlisted).into(),
            ..CheckReport::default()
        }
    }

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_check(hostile in hostile()) {
            let tame = report("x");
            let report = report(&hostile);
            let in_lines = |report: &CheckReport| {
                let lines = report.volumes.iter().map(|one| line_of(one, 7));
                lines.collect::<String>()
            };
            for print in [&in_steps as &dyn Fn(&CheckReport) -> String, &in_lines] {
                let text = print(&report);
                prop_assert!(has_lines(&text, print(&tame).lines().count()), "{text:?}");
            }
            let json = serde_json::to_string(&report).unwrap();
            prop_assert!(has_lines(&json, 1), "{json:?}");
        }
    }
}
