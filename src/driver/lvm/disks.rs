//! The disks that LVM sees, and those that are not what its metadata says of them.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::report::{Report, ask, ask_with, read, text};
use crate::host::Host;

pub struct Disk {
    pub vg: String,
    pub path: PathBuf,
    /// Neither a lock manager nor a system ID keeps other hosts from its group.
    pub is_open: bool,
    /// False: LVM makes and extends no volume on it (`pvchange -xn`).
    pub is_allocatable: bool,
}

/// Which disks LVM is asked for.
#[derive(Clone, Copy)]
pub enum Sight {
    /// Those that it uses.
    Used,
    /// Also those that the devices file does not list.
    Unlisted,
    /// Also those that a filter leaves out.
    All,
}

pub fn disks(host: &Host, sight: Sight) -> Result<Vec<Disk>> {
    let fields = "pv_name,vg_name,vg_systemid,vg_lock_type,pv_allocatable";
    let more = match sight {
        Sight::Used => "",
        Sight::Unlisted => " devices/use_devicesfile=0",
        Sight::All => {
            r#" devices/use_devicesfile=0 devices/filter=["a|.*|"] devices/global_filter=["a|.*|"]"#
        }
    };
    let command = ask_with("pvs", fields, host.limits.query, more);
    let parse = |report: Report| {
        let mut disks = Vec::new();
        for row in report.rows("pv")? {
            let (vg, owner) = (text(&row, "vg_name")?, text(&row, "vg_systemid")?);
            let is_local = ["", "none"].contains(&text(&row, "vg_lock_type")?);
            if !vg.is_empty() {
                disks.push(Disk {
                    vg: vg.to_owned(),
                    path: text(&row, "pv_name")?.into(),
                    is_open: owner.is_empty() && is_local,
                    is_allocatable: text(&row, "pv_allocatable")? == "allocatable",
                });
            }
        }
        Ok(disks)
    };
    read(host, &command, parse).context("asking LVM for its disks")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It says that it is a disk which LVM has on another device (`pv_duplicate`).
    Duplicate,
    /// The device ends before the last extent.
    Short,
    /// No device has it.
    Missing,
    /// It is back, and LVM does not use it, since the group was changed without it.
    Returned,
}

#[derive(Debug, PartialEq, Eq)]
pub struct FaultyDisk {
    pub vg: String,
    /// The device, or `[unknown]`.
    pub path: PathBuf,
    pub fault: Fault,
}

/// The disks with a fault. A disk without a group is nobody's.
pub fn faulty_disks(host: &Host) -> Result<Vec<FaultyDisk>> {
    let fields = "pv_name,vg_name,pv_duplicate,pv_missing,dev_size,pv_size,pe_start";
    // Without --all it leaves out the duplicates.
    let command = ask("pvs", fields, host.limits.query).args(["--all"]);
    read(host, &command, faults).context("asking LVM for its disks")
}

fn faults(report: Report) -> Result<Vec<FaultyDisk>, String> {
    let mut faulty = Vec::new();
    for row in report.rows("pv")? {
        let bytes = |field| text(&row, field).map(|size| size.parse().unwrap_or(0_u64));
        let needs = bytes("pe_start")?.saturating_add(bytes("pv_size")?);
        let size = bytes("dev_size")?;
        let vg = text(&row, "vg_name")?.to_owned();
        let fault = if vg.is_empty() {
            // Its size is that of the whole device then.
            continue;
        } else if !text(&row, "pv_duplicate")?.is_empty() {
            Fault::Duplicate
        } else if size == 0 {
            Fault::Missing
        } else if !text(&row, "pv_missing")?.is_empty() {
            Fault::Returned
        } else if needs > size {
            Fault::Short
        } else {
            continue;
        };
        let path = text(&row, "pv_name")?.into();
        let disk = FaultyDisk { vg, path, fault };
        // All that are missing look the same.
        if !faulty.contains(&disk) {
            faulty.push(disk);
        }
    }
    Ok(faulty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip] // a row is a line
    fn a_disk_that_is_not_what_lvm_knows_has_a_fault() {
        let cases = [
            ("well", "/dev/sda", "vg", "", "", 9_437_184, 8_388_608, None),
            ("a copy", "/dev/sdb", "vg", "duplicate", "", 9_437_184, 0, Some(Fault::Duplicate)),
            ("too short", "/dev/sdc", "vg", "", "", 9_437_183, 8_388_608, Some(Fault::Short)),
            ("gone", "[unknown]", "vg", "", "missing", 0, 8_388_608, Some(Fault::Missing)),
            ("gone just now", "[unknown]", "vg", "", "", 0, 8_388_608, Some(Fault::Missing)),
            ("back again", "/dev/sdd", "vg", "", "missing", 9_437_184, 8_388_608, Some(Fault::Returned)),
            ("made just now", "/dev/sde", "", "", "", 9_437_184, 9_437_184, None),
            ("no disk of LVM's", "/dev/sdf", "", "", "", 9_437_184, 0, None),
        ];
        for (name, path, vg, duplicate, missing, device, size, want) in cases {
            let row = format!(
                r#"{{"pv_name":"{path}","vg_name":"{vg}","pv_duplicate":"{duplicate}","pv_missing":"{missing}","dev_size":"{device}","pv_size":"{size}","pe_start":"1048576"}}"#
            );
            let json = format!(r#"{{"report":[{{"pv":[{row}]}}]}}"#);
            let found = faults(Report::parse(json.as_bytes()).unwrap()).unwrap();
            let disk = |fault| FaultyDisk { vg: "vg".to_owned(), path: path.into(), fault };
            let want: Vec<_> = want.map(disk).into_iter().collect();
            assert_eq!(found, want, "{name}");
        }
    }
}
