//! `flexvolume-lvm metrics`: what `status` and `log` know, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::log;
use super::status::Line;
use super::survey::{Inventory, OK, Verdict};
use crate::files;
use crate::output::Printed;
use driver::config::Loaded;
use driver::host::Host;

/// How long devices are read at least. Mounted volumes need no reading.
const SHORTEST: Duration = Duration::from_secs(1);
/// The call-outs that are counted, from the log.
const CALLS: Duration = Duration::from_secs(3600);
/// The name of the file for `node_exporter`'s textfile collector.
const FILE: &str = "flexvolume-lvm.prom";

/// Each metric: its name without `flexvolume_lvm_`, its labels, and what it says. All are gauges.
const ALL: [(&str, &str, &str); 18] = [
    (
        "build_info",
        "version",
        "1, with the version of the driver that wrote the metrics.",
    ),
    (
        "calls_last_hour",
        "call, outcome",
        "Calls in the last hour.",
    ),
    (
        "calls_last_hour_longest_seconds",
        "call, outcome",
        "How long the longest took, in seconds.",
    ),
    (
        "calls_last_hour_seconds",
        "call, outcome",
        "How long they took in all, in seconds.",
    ),
    (
        "filesystem_size_bytes",
        "vg, lv",
        "Size of the mounted filesystem, in bytes.",
    ),
    (
        "filesystem_used_bytes",
        "vg, lv",
        "What is used of the mounted filesystem, in bytes.",
    ),
    (
        "group_free_bytes",
        "vg",
        "What is free in the volume group, in bytes.",
    ),
    (
        "group_missing_disks",
        "vg",
        "Disks of the volume group that are missing.",
    ),
    (
        "group_size_bytes",
        "vg",
        "Size of the volume group, in bytes.",
    ),
    (
        "log_readable",
        "",
        "1 if the log of calls could be read, else 0.",
    ),
    (
        "next_mount_refused",
        "vg, lv, verdict, reason",
        "1 if the next mount of the volume would be refused, else 0. Verdict and reason are those of check.",
    ),
    (
        "pool_data_ratio",
        "vg, lv",
        "How full the data of the thin pool is: 1 is full.",
    ),
    (
        "pool_metadata_ratio",
        "vg, lv",
        "How full the metadata of the thin pool is: 1 is full.",
    ),
    (
        "snapshot_ratio",
        "vg, lv",
        "How full the snapshot is: at 1 it is lost. A thin snapshot has none.",
    ),
    (
        "volume_active",
        "vg, lv",
        "1 if the volume is active, else 0.",
    ),
    (
        "volume_healthy",
        "vg, lv",
        "1 if the health of the volume is ok, as in status, else 0.",
    ),
    ("volume_pods", "vg, lv", "Pods that have the volume."),
    (
        "volume_size_bytes",
        "vg, lv",
        "Size of the volume, in bytes.",
    ),
];

/// Samples by their metric and labels, in the text format that Prometheus and `OpenMetrics` share.
/// Neither reads a text with the same labels twice, as groups with one name would have them.
#[derive(Default)]
struct Metrics(BTreeMap<&'static str, BTreeMap<String, f64>>);

impl Metrics {
    /// Adds a sample of a gauge of [`ALL`].
    fn add(&mut self, name: &'static str, labels: &[(&str, &str)], value: f64) {
        debug_assert!(
            ALL.iter().any(|(one, names, _)| *one == name
                && *names
                    == labels
                        .iter()
                        .map(|(key, _)| *key)
                        .collect::<Vec<_>>()
                        .join(", ")),
            "{name} {labels:?}"
        );
        let samples = self.0.entry(name).or_default();
        // Source: Prometheus' exposition formats. The log may hold any text, though on one line.
        let escaped = |is: &str| is.replace('\\', r"\\").replace('"', "\\\"");
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, is)| format!("{key}=\"{}\"", escaped(is)))
            .collect();
        samples.insert(labels.join(","), value);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, _, help) in ALL {
            let Some(samples) = self.0.get(name) else {
                continue;
            };
            let name = format!("flexvolume_lvm_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        }
        text.push_str("# EOF\n");
        text
    }
}

/// `flexvolume-lvm metrics`: prints them, or puts them into a file in `dir`, whole at any time.
pub fn run(host: &Host, config: &Loaded, dir: Option<&Path>) -> Result<Printed> {
    let inventory = Inventory::take(host, config)?;
    let mut metrics = Metrics::default();
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    metrics.add("build_info", &version, 1.0);
    add_groups(&mut metrics, &inventory);
    add_volumes(&mut metrics, &inventory);
    add_calls(&mut metrics, &inventory);
    let text = metrics.text();
    let Some(dir) = dir else {
        return Ok(Printed::text(text));
    };
    let staged = dir.join(format!(".{FILE}.new"));
    files::write(&staged, text.as_bytes(), 0o644)?;
    files::rename(&staged, &dir.join(FILE))?;
    Ok(Printed::default())
}

#[allow(clippy::cast_precision_loss)] // every sample is a float
fn add_groups(metrics: &mut Metrics, inventory: &Inventory) {
    for group in &inventory.groups {
        let labels = [("vg", &*group.name)];
        for (name, value) in [
            ("group_size_bytes", group.size.get()),
            ("group_free_bytes", group.free.get()),
            ("group_missing_disks", group.missing),
        ] {
            metrics.add(name, &labels, value as f64);
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn add_volumes(metrics: &mut Metrics, inventory: &Inventory) {
    let longest = Some(inventory.patience(SHORTEST));
    for volume in &inventory.volumes {
        let (line, _) = Line::of(inventory, volume, longest);
        let labels = [
            ("vg", volume.id.vg().as_str()),
            ("lv", volume.id.lv().as_str()),
        ];
        let flag = |yes| f64::from(u8::from(yes));
        metrics.add("volume_size_bytes", &labels, line.size_bytes as f64);
        // What is nobody's is neither well nor unwell: no alert tells of it.
        let is_ok = line.health == OK;
        if line.unwell || is_ok && !is_refused(&line) {
            metrics.add("volume_healthy", &labels, flag(is_ok));
        }
        if volume.is_pool() {
            let percents = [
                ("pool_data_ratio", line.data_percent),
                ("pool_metadata_ratio", line.metadata_percent),
            ];
            for (name, percent) in percents {
                if let Some(percent) = percent {
                    metrics.add(name, &labels, percent / 100.0);
                }
            }
        }
        if let Some(percent) = line.data_percent.filter(|_| volume.is_thick_snapshot()) {
            metrics.add("snapshot_ratio", &labels, percent / 100.0);
        }
        let Some(verdict) = &line.next_mount else {
            continue;
        };
        metrics.add("volume_active", &labels, flag(line.active));
        metrics.add("volume_pods", &labels, line.pods.len() as f64);
        if line.unwell || !is_refused(&line) {
            let [vg, lv] = labels;
            let verdict_is = ("verdict", verdict.word());
            let reason = ("reason", verdict.why().unwrap_or_default());
            let value = flag(is_refused(&line));
            metrics.add("next_mount_refused", &[vg, lv, verdict_is, reason], value);
        }
        for (name, bytes) in [
            ("filesystem_size_bytes", line.fs_bytes),
            ("filesystem_used_bytes", line.fs_used_bytes),
        ] {
            if let Some(bytes) = bytes {
                metrics.add(name, &labels, bytes as f64);
            }
        }
    }
}

fn is_refused(line: &Line) -> bool {
    line.next_mount
        .as_ref()
        .is_some_and(Verdict::would_not_mount)
}

/// Gauges of the last hour, not counters, since the log forgets.
#[allow(clippy::cast_precision_loss)]
fn add_calls(metrics: &mut Metrics, inventory: &Inventory) {
    let calls = log::since(inventory.host, inventory.config, CALLS);
    metrics.add("log_readable", &[], f64::from(u8::from(calls.is_ok())));
    let mut by_outcome: BTreeMap<(String, &str), Vec<u64>> = BTreeMap::new();
    for call in calls.unwrap_or_default() {
        let outcome = call.outcome();
        by_outcome
            .entry((call.call, outcome))
            .or_default()
            .push(call.took_ms);
    }
    for ((call, outcome), took) in &by_outcome {
        let labels = [("call", &**call), ("outcome", *outcome)];
        let longest = took.iter().max().copied().unwrap_or_default() as f64;
        let all = took.iter().sum::<u64>() as f64;
        for (name, value) in [
            ("calls_last_hour", took.len() as f64),
            ("calls_last_hour_seconds", all / 1000.0),
            ("calls_last_hour_longest_seconds", longest / 1000.0),
        ] {
            metrics.add(name, &labels, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::names::folded;

    /// The value of a label, as a reader of the format has it, and what follows it.
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
        let row = |(name, labels, help): (&str, &str, &str)| {
            let labels = if labels.is_empty() { "-" } else { labels };
            format!("| `flexvolume_lvm_{name}` | {labels} | {help} |")
        };
        assert_eq!(table, ALL.map(row).join("\n"));
    }

    proptest! {
        #[test]
        fn a_label_is_read_as_it_was_written(hostile in hostile()) {
            let mut metrics = Metrics::default();
            let label = folded(&hostile);
            metrics.add("calls_last_hour", &[("call", &label), ("outcome", "ok")], 1.0);
            let text = metrics.text();
            prop_assert!(has_lines(&text, 4), "{text:?}");
            let sample = text.lines().nth(2).unwrap();
            let sample = sample.strip_prefix("flexvolume_lvm_calls_last_hour{call=").unwrap();
            prop_assert_eq!(value(sample), Some((label, ",outcome=\"ok\"} 1")));
        }
    }
}
