//! Reads the reports of lvs(8), vgs(8) and pvs(8), in JSON.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error, IntoDeserializer, value};
use serde::{Deserialize, Deserializer};

use super::record::Record;
use super::spread::Spread;
use super::volume::{GroupFacts, Lease, Volume, letter};
use crate::host::{Command, DeviceNumber, Host, ToolError};
use crate::names::{Bytes, LvId, LvName, LvUuid, VgName, is_printable};

#[derive(Debug, Deserialize)]
pub struct Report {
    report: Vec<BTreeMap<String, Vec<BTreeMap<String, String>>>>,
}

impl Report {
    /// Parses LVM's output. If the metadata on another disk is damaged or is being written, LVM 2.03.16 prints lines of
    /// text between those of the report ("Retrying metadata scan."). The lines of text are dropped: each line of the
    /// report begins with a bracket or a quote.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json).or_else(|error| {
            let lines = json.split(|byte| *byte == b'\n');
            let lines: Vec<&[u8]> = lines.filter(|line| is_of_report(line)).collect();
            serde_json::from_slice(&lines.concat()).map_err(|_| error)
        })
    }

    /// The rows of one kind (`lv`, `vg`). Anybody who can write to a disk can write LVM's metadata there. So each
    /// character that cannot be printed is replaced by `?`, which no name or tag contains.
    pub(super) fn rows<T: DeserializeOwned>(self, kind: &str) -> Result<Vec<T>, String> {
        let parts = self.report.into_iter();
        let found = parts.filter_map(|mut part| part.remove(kind)).flatten();
        let mut rows: Vec<_> = found.collect();
        for value in rows.iter_mut().flat_map(BTreeMap::values_mut) {
            if !value.chars().all(is_printable) {
                *value = value.replace(|c| !is_printable(c), "?");
            }
        }
        rows.into_iter()
            .map(|row| T::deserialize(row.into_deserializer()))
            .collect::<Result<_, value::Error>>()
            .map_err(|error| error.to_string())
    }

    /// The volumes in the rows of one kind, sorted by name. Leaves out a volume whose name this driver does not accept:
    /// an old volume may have a name that LVM has reserved since.
    pub fn volumes(self, kind: &str) -> Result<Vec<Volume>, String> {
        let rows = self.rows::<ReportRow>(kind)?.into_iter();
        let mut volumes: Vec<Volume> = rows.filter_map(ReportRow::volume).collect();
        // A volume has a row for each of its segments. The row with the most images is kept.
        volumes.sort_by(|a, b| {
            (&a.id, &a.uuid, b.spread.images).cmp(&(&b.id, &b.uuid, a.spread.images))
        });
        // The UUID alone is not enough: a group that vgimportclone(8) made has volumes with the UUIDs of the
        // original's.
        volumes.dedup_by(|again, one| again.target() == one.target());
        Ok(volumes)
    }
}

/// Whether a line of LVM's output is one of the report.
fn is_of_report(line: &[u8]) -> bool {
    let first = line.trim_ascii_start().first();
    first.is_some_and(|first| b"{}[]\"".contains(first))
}

/// Reads a number, which LVM prints as text.
pub(super) fn number<'de, T: FromStr, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    text.parse()
        .map_err(|_| Error::custom(format!("{text:?} is no number")))
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    number(from).map(Bytes::new)
}

/// Reads a field that says yes or no: an empty text is no, any other text is yes.
pub(super) fn is_set<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    String::deserialize(from).map(|text| !text.is_empty())
}

/// Reads the kind of a group's locks (`vg_lock_type`): whether nodes share the group.
pub(super) fn is_shared<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    String::deserialize(from).map(|kind| !["", "none"].contains(&&*kind))
}

/// A row with the fields [`LV_FIELDS`].
#[derive(Deserialize)]
struct ReportRow {
    vg_name: String,
    lv_name: String,
    lv_uuid: String,
    #[serde(deserialize_with = "bytes")]
    lv_size: Bytes,
    origin_size: String,
    lv_tags: String,
    lv_kernel_major: String,
    lv_kernel_minor: String,
    #[serde(deserialize_with = "is_set")]
    lv_device_open: bool,
    lv_attr: String,
    lv_health_status: String,
    lv_merge_failed: String,
    lv_layout: String,
    lv_role: String,
    pool_lv: String,
    origin: String,
    data_percent: String,
    metadata_percent: String,
    #[serde(deserialize_with = "number")]
    vg_extent_size: NonZeroU64,
    #[serde(deserialize_with = "bytes")]
    vg_free: Bytes,
    #[serde(deserialize_with = "bytes")]
    vg_mda_free: Bytes,
    #[serde(deserialize_with = "number")]
    vg_missing_pv_count: u64,
    #[serde(rename = "vg_lock_type", deserialize_with = "is_shared")]
    shared: bool,
    lv_lockargs: String,
    pool_lv_uuid: String,
    #[serde(deserialize_with = "number")]
    stripes: u64,
    #[serde(deserialize_with = "number")]
    data_stripes: u64,
}

impl ReportRow {
    fn volume(self) -> Option<Volume> {
        let (vg, lv) = (VgName::parse(&self.vg_name), LvName::parse(&self.lv_name));
        // -1 means no device: the volume is not active. Source: lvm2 lib/report/report.c, `_lvkmaj_disp`.
        let number = format!("{}:{}", self.lv_kernel_major, self.lv_kernel_minor);
        let number: Option<DeviceNumber> = number.parse().ok();
        Some(Volume {
            id: LvId::new(vg.ok()?, lv.ok()?),
            uuid: LvUuid::of(&self.lv_uuid),
            size: self.lv_size,
            origin_size: self.origin_size.parse().ok().map(Bytes::new),
            record: Record::parse(self.lv_tags.split(',')),
            number,
            open: self.lv_device_open,
            writable: match letter(&self.lv_attr, 2) {
                "w" => number.map(|_| true),
                "r" | "R" => Some(false),
                _ => None,
            },
            overridden: letter(&self.lv_attr, 2) == "R",
            spread: Spread::of_report(&self.lv_layout, self.stripes, self.data_stripes),
            lock: self.lock(),
            attr: self.lv_attr,
            health: self.lv_health_status,
            merge_failed: self.lv_merge_failed,
            tags: self.lv_tags,
            layout: self.lv_layout,
            role: self.lv_role,
            // The name of a hidden volume is in brackets, which no valid name contains. So a cached volume's cache,
            // which is hidden, does not count as a pool that could fill up.
            pool: LvName::parse(&self.pool_lv).ok(),
            origin: LvName::parse(&self.origin).ok(),
            data_percent: self.data_percent.parse().ok(),
            metadata_percent: self.metadata_percent.parse().ok(),
            group: GroupFacts {
                extent: self.vg_extent_size,
                free: self.vg_free,
                metadata_free: self.vg_mda_free,
                missing: self.vg_missing_pv_count,
            },
            warned: false,
            promised: None,
        })
    }

    fn lock(&self) -> Option<Lease> {
        if !self.shared {
            return None;
        }
        let of = match &*self.lv_lockargs {
            "" => &self.pool_lv_uuid,
            _ => &self.lv_uuid,
        };
        Some(Lease {
            of: Some(of.clone()).filter(|uuid| !uuid.is_empty()),
            args: self.lv_lockargs.clone(),
        })
    }
}

pub(super) const LV_FIELDS: &str = "vg_name,lv_name,lv_uuid,lv_size,origin_size,lv_tags,\
    lv_kernel_major,lv_kernel_minor,lv_device_open,lv_attr,lv_health_status,lv_merge_failed,lv_layout,lv_role,pool_lv,origin,data_percent,\
    metadata_percent,vg_extent_size,vg_free,vg_mda_free,vg_missing_pv_count,vg_lock_type,lv_lockargs,pool_lv_uuid,stripes,data_stripes";

/// Settings of the report's format. An administrator may have changed them in lvm.conf(5), and then, for example, one
/// tag could not be told from the next. Unless `report_command_log` is 0, LVM 2.03.31 also writes its messages into the
/// JSON.
const FORMAT: &str = "report/time_format=\"%s\" report/list_item_separator=\",\" \
    report/binary_values_as_numeric=0 report/compact_output=0 report/compact_output_cols=\"\" report/prefixes=0 \
    log/report_command_log=0 log/command_names=0 log/prefix=\"\"";

pub(super) fn ask(tool: &'static str, fields: &str, limit: Duration) -> Command {
    let json = ["--reportformat", "json", "--units", "b", "--nosuffix"];
    let options = [&json[..], &["--config", FORMAT, "--options", fields]].concat();
    Command::reads(tool, limit).unseen(options)
}

pub(super) fn read<T>(
    host: &Host,
    command: &Command,
    parse: impl FnOnce(Report) -> Result<T, String>,
) -> Result<T, ToolError> {
    read_with_warnings(host, command, parse).map(|(read, _)| read)
}

/// Like [`read`]. Also returns whether LVM printed a warning.
pub(super) fn read_with_warnings<T>(
    host: &Host,
    command: &Command,
    parse: impl FnOnce(Report) -> Result<T, String>,
) -> Result<(T, bool), ToolError> {
    let output = host.run(command)?;
    let warned = !output.stderr.is_empty();
    let read = Report::parse(&output.stdout)
        .map_err(|e| e.to_string())
        .and_then(parse)
        .map_err(|reason| {
            let said = output.stderr;
            let comma = if said.is_empty() { "" } else { "; " };
            ToolError::Unintelligible {
                line: command.whole_line(),
                reason: format!("{reason}{comma}{said}"),
            }
        })?;
    Ok((read, warned))
}
