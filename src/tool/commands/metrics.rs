//! `flexvolume-lvm metrics`: the facts of `status` and `log`, and the findings of `doctor`, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use strum::{EnumMessage, IntoStaticStr};

use super::doctor::{LvmFacts, NodeFacts, findings};
use super::log;
use super::survey::{Health, Inventory, NodeHealth, OK, Request, Severity, Verdict, uids_of};
use crate::files;
use crate::output::Printed;
use driver::config::{Config, Loaded};
use driver::host::Host;
use driver::lvm::Volume;

/// The least time that is allowed for reading devices. Mounted volumes need no reading.
const SHORTEST: Duration = Duration::from_secs(1);
/// The period in which the log's call-outs are counted.
const CALLS: Duration = Duration::from_secs(3600);
/// The name of the file for `node_exporter`'s textfile collector.
const FILE: &str = "flexvolume-lvm.prom";

/// The metrics, all of them gauges. The comment of each is its HELP text in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumMessage, IntoStaticStr)]
#[cfg_attr(test, derive(strum::EnumIter))]
#[strum(serialize_all = "snake_case")]
enum Metric {
    /// 1, with the version of the driver that wrote the metrics.
    BuildInfo,
    /// Calls in the last hour.
    CallsLastHour,
    /// The time that the longest call of the last hour took, in seconds.
    CallsLastHourLongestSeconds,
    /// Size of the filesystem that a pod has mounted, in bytes.
    FilesystemSizeBytes,
    /// The used space of that filesystem, in bytes.
    FilesystemUsedBytes,
    /// How many findings doctor has, by its check. Severity: failed, warning or note.
    Findings,
    /// The free space of the volume group, in bytes.
    GroupFreeBytes,
    /// 1 if the health of the volume group is ok, as in status, else 0.
    GroupHealthy,
    /// Disks of the volume group that are missing.
    GroupMissingDisks,
    /// 1 if the log of calls could be read, else 0.
    LogReadable,
    /// 1 if the next mount of the volume would be refused, else 0. Verdict and reason are those of check.
    NextMountRefused,
    /// How full the data of the thin pool is: 1 is full.
    PoolDataRatio,
    /// How full the metadata of the thin pool is: 1 is full.
    PoolMetadataRatio,
    /// How full the snapshot is: at 1 the snapshot is lost. A thin snapshot has no such sample.
    SnapshotRatio,
    /// 1 if the health of the volume is ok, as in status, else 0.
    VolumeHealthy,
    /// Pods that have the volume.
    VolumePods,
}

impl Metric {
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::BuildInfo => &["version"],
            Self::CallsLastHour | Self::CallsLastHourLongestSeconds => &["call", "outcome"],
            Self::Findings => &["check", "severity"],
            Self::GroupFreeBytes | Self::GroupHealthy | Self::GroupMissingDisks => &["vg"],
            Self::LogReadable => &[],
            Self::NextMountRefused => &["vg", "lv", "verdict", "reason"],
            Self::FilesystemSizeBytes
            | Self::FilesystemUsedBytes
            | Self::PoolDataRatio
            | Self::PoolMetadataRatio
            | Self::SnapshotRatio
            | Self::VolumeHealthy
            | Self::VolumePods => &["vg", "lv"],
        }
    }
}

/// Samples by metric and labels, for the text format that Prometheus and `OpenMetrics` share. Two samples with the same
/// labels would make the text invalid. If two groups have one name, the map keeps the sample of one group only.
#[derive(Default)]
struct Metrics(BTreeMap<Metric, BTreeMap<String, f64>>);

impl Metrics {
    /// Adds a sample with these values of the metric's labels.
    fn add(&mut self, metric: Metric, labels: &[&str], value: f64) {
        // Source: Prometheus' exposition formats. A text from the log may contain any characters but a newline.
        debug_assert_eq!(metric.labels().len(), labels.len(), "{labels:?}");
        let pairs = metric.labels().iter().zip(labels).map(|(key, is)| {
            let escaped = is.replace('\\', r"\\").replace('"', "\\\"");
            format!("{key}=\"{escaped}\"")
        });
        let text = pairs.collect::<Vec<_>>().join(",");
        self.0.entry(metric).or_default().insert(text, value);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (metric, samples) in &self.0 {
            let name = format!("flexvolume_lvm_{}", <&str>::from(metric));
            let help = metric.get_documentation().unwrap_or_default();
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        }
        text.push_str("# EOF\n");
        text
    }
}

/// `flexvolume-lvm metrics`: prints the metrics, or writes them into a file in `dir`. The file is replaced in one step,
/// so that a reader always sees all metrics. If LVM does not answer, a finding says so, and the metrics of volumes and
/// groups are missing.
pub fn run(host: &Host, config: &Loaded, dir: Option<&Path>) -> Result<Printed> {
    let inventory = Inventory::take(host, config);
    let mut metrics = Metrics::default();
    metrics.add(Metric::BuildInfo, &[env!("CARGO_PKG_VERSION")], 1.0);
    let facts = NodeFacts::ask(host, config, |is_mountable| {
        let inventory = inventory.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        let longest = Some(inventory.patience(SHORTEST));
        let request = |volume: &Volume| Request {
            longest,
            ..inventory.request(volume)
        };
        Ok(LvmFacts::of(inventory, |volume| {
            is_mountable.then(|| request(volume))
        }))
    });
    if let (Ok(inventory), Ok(lvm)) = (&inventory, &facts.lvm) {
        add_groups(&mut metrics, inventory, &lvm.node);
        for health in &lvm.volumes {
            add_volume(&mut metrics, inventory, health);
        }
        add_lost(&mut metrics, inventory, &lvm.node);
    }
    add_findings(&mut metrics, &facts);
    add_calls(&mut metrics, host, &config.config);
    let text = metrics.text();
    let Some(dir) = dir else {
        return Ok(Printed::text(text));
    };
    let staged = dir.join(format!(".{FILE}.new"));
    files::write(&staged, text.as_bytes(), 0o644)?;
    files::rename(&staged, &dir.join(FILE))?;
    Ok(Printed::default())
}

fn flag(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[allow(clippy::cast_precision_loss)] // every sample is a float
fn add_groups(metrics: &mut Metrics, inventory: &Inventory, node: &NodeHealth) {
    for vg in node.silent.keys() {
        metrics.add(Metric::GroupHealthy, &[vg.as_str()], 0.0);
    }
    for group in &inventory.groups {
        let is_well = node.group(inventory, group).word() == OK;
        metrics.add(Metric::GroupHealthy, &[&group.name], flag(is_well));
        for (name, value) in [
            (Metric::GroupFreeBytes, group.free.get()),
            (Metric::GroupMissingDisks, group.missing),
        ] {
            metrics.add(name, &[&group.name], value as f64);
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn add_volume(metrics: &mut Metrics, inventory: &Inventory, health: &Health) {
    let volume = &health.volume;
    let labels = [volume.id.vg().as_str(), volume.id.lv().as_str()];
    if health.is_in_metrics() {
        metrics.add(Metric::VolumeHealthy, &labels, flag(health.word() == OK));
    }
    let percents = [
        (Metric::PoolDataRatio, volume.data_percent, volume.is_pool()),
        (
            Metric::PoolMetadataRatio,
            volume.metadata_percent,
            volume.is_pool(),
        ),
        (
            Metric::SnapshotRatio,
            volume.data_percent,
            volume.is_thick_snapshot(),
        ),
    ];
    for (name, percent, is_its) in percents {
        if let Some(percent) = percent.filter(|_| is_its) {
            metrics.add(name, &labels, percent / 100.0);
        }
    }
    if let Some(verdict) = health.verdict.as_ref().filter(|_| health.is_in_metrics()) {
        add_verdict(metrics, verdict);
    }
    if volume.is_pool() {
        return;
    }
    let device = inventory.device(volume);
    let mounts = device.map(|device| inventory.mounts(device));
    let pods = uids_of(&mounts.unwrap_or_default()).len();
    metrics.add(Metric::VolumePods, &labels, pods as f64);
    let readable = device.filter(|_| health.suspended.is_none());
    if let Some(space) = readable.and_then(|device| inventory.space(device)) {
        metrics.add(Metric::FilesystemSizeBytes, &labels, space.bytes as f64);
        metrics.add(Metric::FilesystemUsedBytes, &labels, space.used as f64);
    }
}

fn add_verdict(metrics: &mut Metrics, verdict: &Verdict) {
    let [vg, lv] = [verdict.id.vg().as_str(), verdict.id.lv().as_str()];
    let labels = [vg, lv, verdict.word(), verdict.why().unwrap_or_default()];
    let is_refused = flag(verdict.would_not_mount());
    metrics.add(Metric::NextMountRefused, &labels, is_refused);
}

/// Adds the volumes of pods that LVM does not list any more, with the metrics that alerts use.
#[allow(clippy::cast_precision_loss)]
fn add_lost(metrics: &mut Metrics, inventory: &Inventory, node: &NodeHealth) {
    for id in &node.lost {
        let labels = [id.vg().as_str(), id.lv().as_str()];
        let pods = inventory.pods_of(id).len();
        metrics.add(Metric::VolumeHealthy, &labels, 0.0);
        metrics.add(Metric::VolumePods, &labels, pods as f64);
        add_verdict(metrics, &inventory.verdict(id, Request::default()).0);
    }
}

fn add_findings(metrics: &mut Metrics, facts: &NodeFacts) {
    let mut counts: BTreeMap<(&str, Severity), f64> = BTreeMap::new();
    let findings = findings(facts);
    for one in findings.iter().filter(|one| one.severity != Severity::Ok) {
        // Doctor's finding that it did not read all volumes is none of these metrics, which read for a second only.
        if one.check != "volumes" {
            *counts.entry((one.check, one.severity)).or_default() += 1.0;
        }
    }
    for ((check, severity), count) in counts {
        metrics.add(Metric::Findings, &[check, severity.into()], count);
    }
}

/// Adds the calls of the last hour. They are gauges, not counters, since old entries vanish from the log.
#[allow(clippy::cast_precision_loss)]
fn add_calls(metrics: &mut Metrics, host: &Host, config: &Config) {
    let calls = log::since(host, config, CALLS);
    metrics.add(Metric::LogReadable, &[], flag(calls.is_ok()));
    let mut by_outcome: BTreeMap<(String, &str), Vec<u64>> = BTreeMap::new();
    for call in calls.unwrap_or_default() {
        let outcome = call.outcome();
        by_outcome
            .entry((call.call, outcome))
            .or_default()
            .push(call.took_ms);
    }
    for ((call, outcome), took) in &by_outcome {
        let longest = took.iter().max().copied().unwrap_or_default() as f64;
        for (name, value) in [
            (Metric::CallsLastHour, took.len() as f64),
            (Metric::CallsLastHourLongestSeconds, longest / 1000.0),
        ] {
            metrics.add(name, &[call, outcome], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use strum::IntoEnumIterator;

    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::names::folded;

    /// Parses a label's value as a reader of the format does. Returns the value and the rest of the text.
    fn value(text: &str) -> Option<(String, &str)> {
        let mut chars = text.strip_prefix('"')?.chars();
        let mut value = String::new();
        loop {
            match chars.next()? {
                '"' => return Some((value, chars.as_str())),
                '\\' => value.push(chars.next().filter(|c| "\\\"".contains(*c))?),
                c => value.push(c),
            }
        }
    }

    #[test]
    fn each_metric_is_on_the_page_for_programs() {
        let page = include_str!("../../../docs/reference.md");
        let (_, table) = page
            .split_once("| metric | labels | what |\n|---|---|---|\n")
            .unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        let row = |metric: Metric| {
            let (name, labels) = (<&str>::from(metric), metric.labels().join(", "));
            let labels = if labels.is_empty() { "-" } else { &labels };
            let help = metric.get_documentation().unwrap();
            format!("| `flexvolume_lvm_{name}` | {labels} | {help} |")
        };
        let rows: Vec<String> = Metric::iter().map(row).collect();
        assert_eq!(table, rows.join("\n"));
    }

    proptest! {
        #[test]
        fn a_label_is_read_as_it_was_written(hostile in hostile()) {
            let mut metrics = Metrics::default();
            let label = folded(&hostile);
            metrics.add(Metric::CallsLastHour, &[&label, "ok"], 1.0);
            let text = metrics.text();
            prop_assert!(has_lines(&text, 4), "{text:?}");
            let sample = text.lines().nth(2).unwrap();
            let sample = sample.strip_prefix("flexvolume_lvm_calls_last_hour{call=").unwrap();
            prop_assert_eq!(value(sample), Some((label, ",outcome=\"ok\"} 1")));
        }
    }
}
