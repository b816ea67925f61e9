//! Finds disks with which something is wrong: duplicate, missing or returned ones.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::report::{ask, is_set, read};
use crate::host::Host;

/// A disk with which something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub vg: String,
    /// The device, or `[unknown]`.
    pub path: PathBuf,
    pub fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A copy: LVM uses another device that has the same UUID (`pv_duplicate`).
    Duplicate,
    /// No device holds this disk.
    Missing,
    /// The disk is back. LVM does not use it, since the group was changed without it.
    Returned,
}

/// The disks with a fault, of all groups. A copy of a group's disk is such a disk, even if the group's own disk is
/// well.
pub fn disks(host: &Host) -> Result<Vec<Disk>> {
    let fields = "pv_name,vg_name,pv_duplicate,pv_missing,dev_size";
    // Without --all, LVM does not list duplicates.
    let command = ask("pvs", fields, host.limits.query).args(["--all"]);
    read(host, &command, |report| Ok(faulty(report.rows("pv")?)))
        .context("asking LVM for its disks")
}

#[derive(Deserialize)]
struct DiskRow {
    pv_name: PathBuf,
    vg_name: String,
    #[serde(deserialize_with = "is_set")]
    pv_duplicate: bool,
    #[serde(deserialize_with = "is_set")]
    pv_missing: bool,
    dev_size: String,
}

fn faulty(rows: Vec<DiskRow>) -> Vec<Disk> {
    let mut disks = Vec::new();
    for row in rows {
        let fault = if row.pv_duplicate {
            Fault::Duplicate
        } else if row.dev_size == "0" {
            Fault::Missing
        } else if row.pv_missing {
            Fault::Returned
        } else {
            continue;
        };
        let disk = Disk {
            vg: row.vg_name,
            path: row.pv_name,
            fault,
        };
        // All missing disks of a group have the same row.
        if !disk.vg.is_empty() && !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    disks
}

#[cfg(test)]
mod tests {
    use super::super::report::Report;
    use super::*;

    #[test]
    #[rustfmt::skip] // a row is a line
    fn a_disk_that_lvm_cannot_use_has_a_fault() {
        let cases = [
            ("well", "/dev/sda", "vg", "", "", 9_437_184, None),
            ("a copy", "/dev/sdb", "vg", "duplicate", "", 9_437_184, Some(Fault::Duplicate)),
            ("gone", "[unknown]", "vg", "", "missing", 0, Some(Fault::Missing)),
            ("gone just now", "[unknown]", "vg", "", "", 0, Some(Fault::Missing)),
            ("back again", "/dev/sdd", "vg", "", "missing", 9_437_184, Some(Fault::Returned)),
            ("no disk of LVM's", "/dev/sdf", "", "", "", 9_437_184, None),
        ];
        for (name, path, vg, duplicate, missing, device, want) in cases {
            let row = format!(
                r#"{{"pv_name":"{path}","vg_name":"{vg}","pv_duplicate":"{duplicate}","pv_missing":"{missing}","dev_size":"{device}"}}"#
            );
            let json = format!(r#"{{"report":[{{"pv":[{row},{row}]}}]}}"#);
            let rows = Report::parse(json.as_bytes()).unwrap().rows("pv");
            let found = faulty(rows.unwrap());
            let disk = |fault| Disk { vg: vg.to_owned(), path: path.into(), fault };
            assert_eq!(found, want.map(disk).into_iter().collect::<Vec<_>>(), "{name}");
        }
    }
}
