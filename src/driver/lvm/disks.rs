//! The disks that LVM sees, and those that are not what its metadata says of them.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::report::{Report, ask, ask_with, read, text};
use super::wait::explain;
use crate::host::Host;
use crate::names::{Bytes, VgName};

#[derive(Debug, PartialEq, Eq)]
pub struct Disk {
    pub vg: String,
    /// The device, or `[unknown]`.
    pub path: PathBuf,
    /// Neither a lock manager nor a system ID keeps other hosts from its group.
    pub is_open: bool,
    /// False: LVM makes and extends no volume on it (`pvchange -xn`).
    pub is_allocatable: bool,
    pub fault: Option<Fault>,
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

/// Which disks LVM is asked for.
#[derive(Clone, Copy)]
pub enum Sight {
    /// Those that it uses, and copies of them.
    Used,
    /// Also those that the devices file does not list.
    Unlisted,
    /// Also those that a filter leaves out; but not what is inside open encrypted volumes: where one is suspended,
    /// LVM would wait.
    All,
}

/// The disks that belong to a group, and with [`Sight::Used`] also each other device that LVM reads.
pub fn disks(host: &Host, sight: Sight) -> Result<(Vec<Disk>, Vec<PathBuf>)> {
    let fields = "pv_name,vg_name,vg_systemid,vg_lock_type,pv_allocatable,pv_duplicate,pv_missing,dev_size,\
                  pv_size,pe_start";
    // Without --all it leaves out the duplicates and what is no disk of LVM's.
    let (more, all) = match sight {
        Sight::Used => ("", Some("--all")),
        Sight::Unlisted => (" devices/use_devicesfile=0", None),
        Sight::All => (
            concat!(
                r#" devices/use_devicesfile=0 devices/filter=["a|.*|"]"#,
                r#" devices/global_filter=["r|^/dev/mapper/flexvolume[.]|","a|.*|"]"#
            ),
            None,
        ),
    };
    let command = ask_with("pvs", fields, host.limits.query, more).args(all);
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

fn parse(report: Report) -> Result<(Vec<Disk>, Vec<PathBuf>), String> {
    let (mut disks, mut others) = (Vec::new(), Vec::new());
    for row in report.rows("pv")? {
        let (vg, path) = (text(&row, "vg_name")?, text(&row, "pv_name")?.into());
        if vg.is_empty() {
            // The size of such a disk is that of the whole device.
            others.push(path);
            continue;
        }
        let bytes = |field| text(&row, field).map(|size| size.parse().unwrap_or(0_u64));
        let needs = bytes("pe_start")?.saturating_add(bytes("pv_size")?);
        let size = bytes("dev_size")?;
        let fault = if !text(&row, "pv_duplicate")?.is_empty() {
            Some(Fault::Duplicate)
        } else if size == 0 {
            Some(Fault::Missing)
        } else if !text(&row, "pv_missing")?.is_empty() {
            Some(Fault::Returned)
        } else if needs > size {
            Some(Fault::Short)
        } else {
            None
        };
        let is_local = ["", "none"].contains(&text(&row, "vg_lock_type")?);
        let disk = Disk {
            vg: vg.to_owned(),
            path,
            is_open: text(&row, "vg_systemid")?.is_empty() && is_local,
            is_allocatable: text(&row, "pv_allocatable")? == "allocatable",
            fault,
        };
        // All that are missing look the same.
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    Ok((disks, others))
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
                r#"{{"pv_name":"{path}","vg_name":"{vg}","vg_systemid":"","vg_lock_type":"","pv_allocatable":"allocatable","pv_duplicate":"{duplicate}","pv_missing":"{missing}","dev_size":"{device}","pv_size":"{size}","pe_start":"1048576"}}"#
            );
            let json = format!(r#"{{"report":[{{"pv":[{row},{row}]}}]}}"#);
            let (found, others) = parse(Report::parse(json.as_bytes()).unwrap()).unwrap();
            assert_eq!(others.is_empty(), !vg.is_empty(), "{name}");
            let disk = Disk { vg: vg.to_owned(), path: path.into(), is_open: true, is_allocatable: true, fault: want };
            let want: Vec<_> = Some(disk).filter(|_| !vg.is_empty()).into_iter().collect();
            assert_eq!(found, want, "{name}");
        }
    }
}
