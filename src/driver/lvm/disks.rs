//! The disks that LVM cannot use as they are, and those on which it may extend volumes.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::report::{Report, ask, read, text};
use super::wait::explain;
use crate::host::Host;
use crate::names::{Bytes, VgName};

/// A disk that LVM cannot use as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub vg: String,
    /// The device, or `[unknown]`.
    pub path: PathBuf,
    pub fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It says that it is a disk which LVM has on another device (`pv_duplicate`).
    Duplicate,
    /// No device has it.
    Missing,
    /// It is back, and LVM does not use it, since the group was changed without it.
    Returned,
}

/// The disks that belong to a group, and copies of them.
pub fn disks(host: &Host) -> Result<Vec<Disk>> {
    let fields = "pv_name,vg_name,pv_duplicate,pv_missing,dev_size";
    // Without --all LVM leaves out the duplicates.
    let command = ask("pvs", fields, host.limits.query).args(["--all"]);
    read(host, &command, parse).context("asking LVM for its disks")
}

/// A disk on which LVM may extend volumes.
#[derive(Debug, PartialEq, Eq)]
pub struct Extensible {
    pub path: PathBuf,
    pub free: Bytes,
}

/// The disks of a group with free space that LVM may give to volumes.
pub fn extensible(host: &Host, vg: &VgName) -> Result<Vec<Extensible>> {
    let fields = "pv_name,pv_free,pv_allocatable,pv_missing";
    let command = ask("vgs", fields, host.limits.query).operand(vg.as_str());
    let parse = |report: Report| {
        let mut disks = Vec::new();
        for row in report.rows("vg")? {
            let free = text(&row, "pv_free")?.parse().unwrap_or(0);
            let is_usable = text(&row, "pv_allocatable")? == "allocatable";
            if is_usable && text(&row, "pv_missing")?.is_empty() && free > 0 {
                disks.push(Extensible {
                    path: text(&row, "pv_name")?.into(),
                    free: Bytes::new(free),
                });
            }
        }
        Ok(disks)
    };
    read(host, &command, parse)
        .map_err(|error| explain(host, Some(vg), error))
        .with_context(|| format!("asking LVM for the disks of {vg}"))
}

fn parse(report: Report) -> Result<Vec<Disk>, String> {
    let mut disks = Vec::new();
    for row in report.rows("pv")? {
        let vg = text(&row, "vg_name")?.to_owned();
        if vg.is_empty() {
            continue;
        }
        let fault = if !text(&row, "pv_duplicate")?.is_empty() {
            Fault::Duplicate
        } else if text(&row, "dev_size")?.parse() == Ok(0) {
            Fault::Missing
        } else if !text(&row, "pv_missing")?.is_empty() {
            Fault::Returned
        } else {
            continue;
        };
        let path = text(&row, "pv_name")?.into();
        let disk = Disk { vg, path, fault };
        // All that are missing look the same.
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    Ok(disks)
}

#[cfg(test)]
mod tests {
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
            let found = parse(Report::parse(json.as_bytes()).unwrap()).unwrap();
            let disk = |fault| Disk { vg: vg.to_owned(), path: path.into(), fault };
            assert_eq!(found, want.map(disk).into_iter().collect::<Vec<_>>(), "{name}");
        }
    }
}
