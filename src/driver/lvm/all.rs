//! All volumes and groups of this node, asked of LVM at once.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::find::{all_groups, all_volumes};
use super::report::{
    Fields, Group, LV_FIELDS, Report, VG_FIELDS, Volume, ask_in_full, group, read, text, volumes,
};
use super::wait::explain;
use crate::host::{Host, ToolError};

/// The fields of [`LV_FIELDS`] that a report in full has of segments alone.
const OF_SEGMENTS: &str = ",stripes,data_stripes";

pub struct All {
    /// Sorted by name.
    pub volumes: Vec<Volume>,
    pub groups: Vec<Group>,
    pub owners: Owners,
}

/// LVM's answer about the groups' owners, for [`kept_away`](super::kept_away). `None`: LVM is still to be
/// asked.
pub struct Owners(pub(super) Option<Vec<Fields>>);

impl All {
    /// One process, unless some group has an owner: then LVM has to say which groups it uses on this node.
    pub fn ask(host: &Host) -> Result<Self> {
        match Self::at_once(host) {
            Ok(all) => Ok(all),
            // It would not answer to another question either.
            Err(error @ (ToolError::TimedOut { .. } | ToolError::Stopped { .. })) => {
                Err(explain(host, None, error)).context("asking LVM for all volumes")
            }
            Err(_) => Ok(Self {
                volumes: all_volumes(host)?,
                groups: all_groups(host)?,
                owners: Owners(None),
            }),
        }
    }

    fn at_once(host: &Host) -> Result<Self, ToolError> {
        let of_volumes = LV_FIELDS.trim_end_matches(OF_SEGMENTS);
        let of_segments = format!("lv_uuid{OF_SEGMENTS}");
        let of_groups = format!("{VG_FIELDS},vg_systemid,vg_lock_type");
        // A report of disks and one of their segments cannot be left out: the second is made empty.
        let reports = [
            ("vg", &*of_groups),
            ("lv", of_volumes),
            ("seg", &*of_segments),
            ("pv", "pv_name"),
            ("pvseg", "pvseg_size"),
        ];
        let more = ["--select", "pvseg_size=0", "--foreign", "--shared"];
        let command = ask_in_full(&reports, host.limits.query, &more);
        read(host, &command, Self::parse)
    }

    fn parse(mut report: Report) -> Result<Self, String> {
        let groups = report.take("vg")?;
        let is_free = |row: &Fields| -> Result<bool, String> {
            let manager = text(row, "vg_lock_type")?;
            Ok(text(row, "vg_systemid")?.is_empty() && ["", "none"].contains(&manager))
        };
        for row in &groups {
            if !is_free(row)? {
                return Err("a group has an owner".to_owned());
            }
        }
        let mut by_uuid = BTreeMap::new();
        for row in report.take("lv")? {
            by_uuid.insert(text(&row, "lv_uuid")?.to_owned(), row);
        }
        // As lvs(8) has it: a row for each segment.
        let mut rows = Vec::new();
        for segment in report.take("seg")? {
            if let Some(row) = by_uuid.get(text(&segment, "lv_uuid")?) {
                let mut row = row.clone();
                row.extend(segment);
                rows.push(row);
            }
        }
        Ok(Self {
            volumes: volumes(rows)?,
            groups: groups.iter().map(group).collect::<Result<_, _>>()?,
            owners: Owners(Some(groups)),
        })
    }
}
