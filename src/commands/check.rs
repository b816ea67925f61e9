//! `flexvolume-lvm check`: what the next mount would do, and why. Changes nothing.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::survey::{Ask, Outcome, Verdict, Walk, tried};
use crate::config::Loaded;
use crate::host::Host;
use crate::lvm::Volume;
use crate::names::{FsType, LvId};
use crate::output::{Printed, columns, printed};

/// How long a call that works on a volume is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Check {
    /// Volumes, groups, pods or paths, as `status` takes them; none: all
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
    to_repair: usize,
    hosts_own: usize,
}

/// Checks the volumes and groups named; without a name, all. One that a call works on just now is neither
/// refused nor good. The exit code is 0 if every volume
/// would mount, for all that can be known without writing to it, and 1 if not. Volumes that the host itself uses count only if they are named.
pub fn run(host: &Host, config: &Loaded, asked: &Check) -> Result<Printed> {
    config.require()?;
    let walk = Walk::begin(host, config)?;
    let (choice, unknown) = walk.choose_known(&asked.names)?;
    let ask = Ask {
        fs: asked.fs,
        read_only: asked.ro,
        patience: PATIENCE,
        ..Ask::default()
    };
    let is_pool = |id: &&LvId| walk.volume(id).is_some_and(Volume::is_pool);
    let ids = choice.ids.iter();
    let ids = ids.filter(|id| choice.named.contains(id) || !is_pool(id));
    let verdict = |id| {
        walk.verdict(id, ask, Duration::MAX, |seen| {
            tried(host, walk.config, seen)
        })
    };
    let volumes: Vec<Verdict> = ids.map(verdict).collect();
    let is_hosts = |verdict: &&Verdict| verdict.is_hosts && !choice.named.contains(&verdict.id);
    let hosts_own = volumes.iter().filter(is_hosts).count();
    let would_mount = volumes.iter().filter(|verdict| verdict.is_good()).count();
    let not_active = volumes.iter().filter(|v| v.is_inactive()).count();
    let is_busy = |verdict: &&Verdict| matches!(verdict.outcome, Outcome::Busy(_));
    let busy = volumes.iter().filter(is_busy).count();
    let is_repair = |verdict: &&Verdict| matches!(verdict.outcome, Outcome::Repair(_));
    let to_repair = volumes.iter().filter(is_repair).count();
    let others = [hosts_own, would_mount, not_active, busy, to_repair];
    let others = others.iter().sum();
    let report = Report {
        would_mount,
        would_be_refused: volumes.len().saturating_sub(others),
        not_active,
        busy,
        to_repair,
        hosts_own,
        volumes,
    };
    let text = if choice.one().is_some() {
        in_steps(&report)
    } else {
        in_lines(&report)
    };
    let mut printed = printed(&report, text, asked.json)?;
    let others = [
        report.would_be_refused,
        report.not_active,
        report.busy,
        report.to_repair,
    ];
    printed.code = u8::from(!unknown.is_empty() || others.iter().any(|number| *number > 0));
    printed.stderr = unknown;
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
            Some(message) => writeln!(text, "  {}: {message}", verdict.word()),
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
        (report.to_repair, "if `e2fsck -p` can repair it"),
        (report.busy, "busy"),
        (report.hosts_own, "the host's own"),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    text
}
