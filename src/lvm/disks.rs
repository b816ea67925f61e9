//! Disks that are not what LVM's metadata says of them.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::report::{Report, ask, read, text};
use crate::host::Host;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It says that it is a disk which LVM has on another device (`pv_duplicate`).
    Duplicate,
    /// The device ends before the last extent.
    Short,
}

/// The disks with a fault: group, device and fault.
pub fn faulty_disks(host: &Host) -> Result<Vec<(String, PathBuf, Fault)>> {
    let fields = "pv_name,vg_name,pv_duplicate,dev_size,pv_size,pe_start";
    // Without --all it leaves out the duplicates.
    let command = ask("pvs", fields, host.limits.query).args(["--all"]);
    read(host, &command, faults).context("asking LVM for its disks")
}

fn faults(report: Report) -> Result<Vec<(String, PathBuf, Fault)>, String> {
    let mut faulty = Vec::new();
    for row in report.rows("pv")? {
        let bytes = |field| text(&row, field).map(|size| size.parse().unwrap_or(0_u64));
        let needs = bytes("pe_start")?.saturating_add(bytes("pv_size")?);
        let fault = if !text(&row, "pv_duplicate")?.is_empty() {
            Fault::Duplicate
        } else if needs > bytes("dev_size")? {
            Fault::Short
        } else {
            continue;
        };
        let vg = text(&row, "vg_name")?.to_owned();
        faulty.push((vg, text(&row, "pv_name")?.into(), fault));
    }
    Ok(faulty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_and_a_disk_that_is_too_short_have_a_fault() {
        let row = |name, duplicate, device, size| {
            format!(
                r#"{{"pv_name":"{name}","vg_name":"vg","pv_duplicate":"{duplicate}","dev_size":"{device}","pv_size":"{size}","pe_start":"1048576"}}"#
            )
        };
        let rows = [
            row("/dev/sda", "", 9_437_184, 8_388_608),
            row("/dev/sdb", "duplicate", 9_437_184, 0),
            row("/dev/sdc", "", 9_437_183, 8_388_608),
        ];
        let json = format!(r#"{{"report":[{{"pv":[{}]}}]}}"#, rows.join(","));
        let found = faults(Report::parse(json.as_bytes()).unwrap()).unwrap();
        let of = |path: &str, fault| ("vg".to_owned(), path.into(), fault);
        let want = [
            of("/dev/sdb", Fault::Duplicate),
            of("/dev/sdc", Fault::Short),
        ];
        assert_eq!(found, want);
    }
}
