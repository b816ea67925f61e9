//! `lvm check`: what the next mount would do, and why. Changes nothing.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::survey::{Ask, Outcome, Verdict, Walk};
use crate::config::Loaded;
use crate::host::Host;
use crate::lvm::Volume;
use crate::names::{FsType, LvId};
use crate::output::{Printed, columns, printed};

/// How long to wait for a call that works on a volume.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Check {
    /// Volumes, groups, pods or paths, as `status` takes them [default: all]
    names: Vec<String>,
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

#[derive(Serialize)]
struct Report {
    volumes: Vec<Verdict>,
    would_mount: usize,
    would_be_refused: usize,
    not_active: usize,
    busy: usize,
    hosts_own: usize,
}

/// Checks the volumes and groups that are named, or all. The exit code is 0 if every volume would mount,
/// else 1. A volume that a call works on just now counts neither way; one that the host itself uses
/// counts only if it is named.
pub fn run(host: &Host, config: &Loaded, asked: &Check) -> Result<Printed> {
    config.require()?;
    let walk = Walk::begin(host, config)?;
    let choice = walk.choose(&asked.names)?;
    let ask = Ask {
        fs: asked.fs,
        read_only: asked.ro,
        patience: PATIENCE,
        ..Ask::default()
    };
    let is_pool = |id: &&LvId| walk.volume(id).is_some_and(Volume::is_pool);
    let ids = choice.ids.iter();
    let ids = ids.filter(|id| choice.named.contains(id) || !is_pool(id));
    let verdicts = ids.map(|id| walk.verdict(id, ask, Duration::MAX));
    let volumes: Vec<Verdict> = verdicts.collect();
    let is_hosts = |verdict: &&Verdict| verdict.is_hosts && !choice.named.contains(&verdict.id);
    let hosts_own = volumes.iter().filter(is_hosts).count();
    let would_mount = volumes.iter().filter(|verdict| verdict.is_good()).count();
    let not_active = volumes.iter().filter(|v| v.is_inactive()).count();
    let is_busy = |verdict: &&Verdict| matches!(verdict.outcome, Outcome::Busy(_));
    let busy = volumes.iter().filter(is_busy).count();
    let others = [hosts_own, would_mount, not_active, busy].iter().sum();
    let report = Report {
        would_mount,
        would_be_refused: volumes.len().saturating_sub(others),
        not_active,
        busy,
        hosts_own,
        volumes,
    };
    let text = if choice.one().is_some() {
        in_steps(&report)
    } else {
        in_lines(&report)
    };
    let mut printed = printed(&report, text, asked.json)?;
    let others = [report.would_be_refused, report.not_active, report.busy];
    printed.code = u8::from(others.iter().any(|number| *number > 0));
    Ok(printed)
}

fn in_steps(report: &Report) -> String {
    let mut text = String::new();
    for verdict in &report.volumes {
        let _ = writeln!(text, "{}", verdict.id);
        for step in &verdict.steps {
            let _ = writeln!(text, "  {step}");
        }
        let _ = match verdict.message() {
            Some(message) if verdict.is_refused() => writeln!(text, "  REFUSED: {message}"),
            Some(message) => writeln!(text, "  busy: {message}"),
            None => writeln!(text, "  {}", count(report)),
        };
    }
    text
}

fn in_lines(report: &Report) -> String {
    let rows = report.volumes.iter().map(|verdict| {
        let what = verdict.message().or_else(|| verdict.main_step());
        vec![
            verdict.id.to_string(),
            verdict.word().to_owned(),
            what.unwrap_or_default(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    format!("{}{}\n", columns(&rows), count(report))
}

fn count(report: &Report) -> String {
    let mut text = format!(
        "{} would mount, {} would be refused",
        report.would_mount, report.would_be_refused
    );
    for (number, what) in [
        (report.not_active, "not active, so not looked at"),
        (report.busy, "busy"),
        (report.hosts_own, "the host's own"),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    text
}
