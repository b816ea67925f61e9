//! `flexvolume-lvm metrics`: what `status` and `log` know, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::log;
use super::status::{Health, of_volume};
use super::survey::Inventory;
use crate::files;
use crate::output::Printed;
use driver::config::Loaded;
use driver::host::Host;

/// How long devices are read. Mounted volumes need no reading.
const LONGEST: Duration = Duration::from_secs(5);
/// The call-outs that are counted, from the log.
const CALLS: Duration = Duration::from_secs(3600);
/// The name of the file for `node_exporter`'s textfile collector.
const FILE: &str = "flexvolume-lvm.prom";

/// Samples by their metric and labels, in the text format that Prometheus and `OpenMetrics` share.
/// Neither reads a text with the same labels twice, as groups with one name would have them.
#[derive(Default)]
struct Metrics(BTreeMap<&'static str, (&'static str, BTreeMap<String, f64>)>);

impl Metrics {
    /// Adds a sample of a gauge.
    fn add(&mut self, name: &'static str, help: &'static str, labels: &[(&str, &str)], value: f64) {
        let (_, samples) = self
            .0
            .entry(name)
            .or_insert_with(|| (help, BTreeMap::new()));
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
        for (name, (help, samples)) in &self.0 {
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
        for (name, help, value) in [
            (
                "group_size_bytes",
                "Size of the volume group.",
                group.size.get(),
            ),
            (
                "group_free_bytes",
                "What is free in the volume group.",
                group.free.get(),
            ),
            (
                "group_missing_disks",
                "Disks of the volume group that are missing.",
                group.missing,
            ),
        ] {
            metrics.add(name, help, &labels, value as f64);
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn add_volumes(metrics: &mut Metrics, inventory: &Inventory) {
    inventory.look_ahead(inventory.volumes.iter(), LONGEST, |_| false);
    for volume in &inventory.volumes {
        let (line, _) = of_volume(inventory, volume, LONGEST);
        let labels = [
            ("vg", volume.id.vg().as_str()),
            ("lv", volume.id.lv().as_str()),
        ];
        let flag = |yes| f64::from(u8::from(yes));
        let percents = [
            (
                "pool_data_ratio",
                "How full the data of the thin pool is, 1 is full.",
                line.data_percent,
            ),
            (
                "pool_metadata_ratio",
                "How full the metadata of the thin pool is, 1 is full.",
                line.metadata_percent,
            ),
        ];
        for (name, help, percent) in percents {
            if let Some(percent) = percent.filter(|_| volume.is_pool()) {
                metrics.add(name, help, &labels, percent / 100.0);
            }
        }
        metrics.add(
            "volume_healthy",
            "Whether nothing is wrong with the volume.",
            &labels,
            flag(line.health == Health::Ok),
        );
        metrics.add(
            "volume_size_bytes",
            "Size of the volume.",
            &labels,
            line.size_bytes as f64,
        );
        let Some(verdict) = &line.next_mount else {
            continue;
        };
        metrics.add(
            "volume_active",
            "Whether the volume is active.",
            &labels,
            flag(line.active),
        );
        metrics.add(
            "volume_pods",
            "Pods that have the volume.",
            &labels,
            line.pods.len() as f64,
        );
        if !verdict.is_hosts {
            let [vg, lv] = labels;
            metrics.add(
                "next_mount_refused",
                "Whether the next mount of the volume would be refused, and why.",
                &[vg, lv, ("verdict", verdict.short())],
                // The next writer would be refused, and that is as the pods that read want it.
                flag(verdict.is_refused() && !inventory.is_only_read(volume)),
            );
        }
        for (name, help, bytes) in [
            (
                "filesystem_size_bytes",
                "Size of the mounted filesystem.",
                line.fs_bytes,
            ),
            (
                "filesystem_used_bytes",
                "What is used of the mounted filesystem.",
                line.fs_used_bytes,
            ),
        ] {
            if let Some(bytes) = bytes {
                metrics.add(name, help, &labels, bytes as f64);
            }
        }
    }
}

/// Gauges of the last hour, not counters, since the log forgets.
#[allow(clippy::cast_precision_loss)]
fn add_calls(metrics: &mut Metrics, inventory: &Inventory) {
    let calls = log::since(inventory.host, inventory.config, CALLS);
    let can_read = f64::from(u8::from(calls.is_ok()));
    metrics.add(
        "log_readable",
        "Whether the log of calls could be read.",
        &[],
        can_read,
    );
    let mut by_outcome: BTreeMap<(String, &str), Vec<u64>> = BTreeMap::new();
    for call in calls.unwrap_or_default() {
        let outcome = if call.failed { "failed" } else { "ok" };
        by_outcome
            .entry((call.call, outcome))
            .or_default()
            .push(call.took_ms);
    }
    for ((call, outcome), took) in &by_outcome {
        let labels = [("call", &**call), ("outcome", *outcome)];
        let longest = took.iter().max().copied().unwrap_or_default();
        let all: u64 = took.iter().sum();
        for (name, help, value) in [
            (
                "calls_last_hour",
                "Calls in the last hour.",
                took.len() as f64,
            ),
            (
                "calls_last_hour_seconds",
                "How long they took in all.",
                all as f64 / 1000.0,
            ),
            (
                "calls_last_hour_longest_seconds",
                "How long the longest took.",
                longest as f64 / 1000.0,
            ),
        ] {
            metrics.add(name, help, &labels, value);
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

    proptest! {
        #[test]
        fn a_label_is_read_as_it_was_written(hostile in hostile()) {
            let mut metrics = Metrics::default();
            let label = folded(&hostile);
            metrics.add("calls", "Calls.", &[("call", &label), ("outcome", "ok")], 1.0);
            let text = metrics.text();
            prop_assert!(has_lines(&text, 4), "{text:?}");
            let sample = text.lines().nth(2).unwrap();
            let sample = sample.strip_prefix("flexvolume_lvm_calls{call=").unwrap();
            prop_assert_eq!(value(sample), Some((label, ",outcome=\"ok\"} 1")));
        }
    }
}
