//! Counts the free space of a volume group. Only space that a disk really has counts.

use std::path::PathBuf;

use anyhow::Result;
use serde::Deserialize;

use super::group::{Group, GroupDisk, PV_FIELDS, VG_FIELDS};
use super::report::{Report, ask, read};
use super::wait::answer;
use crate::host::Host;
use crate::names::{Bytes, VgName};

/// The free space on these disks that LVM may allocate to volumes. Creation, `status` and the metrics use this number.
/// Growth goes by LVM's own `vg_free`, which it has without another question.
pub fn usable(disks: &[GroupDisk]) -> Bytes {
    let all = disks.iter().map(|disk| disk.usable().get());
    Bytes::new(all.fold(0, u64::saturating_add))
}

/// The disks on which an LVM command may take space, if one of the group's disks is smaller than LVM's metadata says:
/// LVM would also take space on that disk. Empty: LVM may use any disk.
pub fn allowed(disks: &[GroupDisk]) -> Vec<PathBuf> {
    if !disks.iter().any(GroupDisk::is_short) {
        return Vec::new();
    }
    let usable = disks.iter().filter(|disk| disk.usable().get() > 0);
    usable.map(|disk| disk.path.clone()).collect()
}

/// The disks of a group.
pub fn disks_of(host: &Host, vg: &VgName) -> Result<Vec<GroupDisk>> {
    let command = ask("vgs", PV_FIELDS, host.limits.query).operand(vg.as_str());
    let disks = read(host, &command, |report| report.rows("vg"));
    answer(host, Some(vg), disks, format_args!("the disks of {vg}"))
}

/// A row of vgs(8). A group has one row for each disk.
#[derive(Deserialize)]
struct GroupRow {
    vg_uuid: String,
    #[serde(flatten)]
    group: Group,
    #[serde(flatten)]
    disk: GroupDisk,
}

/// The fields of vgs(8) that [`groups_in`] needs.
pub(super) fn group_fields() -> String {
    format!("vg_uuid,{VG_FIELDS},{PV_FIELDS}")
}

/// The groups in a report of vgs(8). Two groups may have the same name.
pub(super) fn groups_in(report: Report) -> Result<Vec<Group>, String> {
    let mut groups: Vec<(String, Group)> = Vec::new();
    for row in report.rows::<GroupRow>("vg")? {
        if let Some((_, group)) = groups.iter_mut().find(|(uuid, _)| *uuid == row.vg_uuid) {
            group.disks.push(row.disk);
        } else {
            let disks = vec![row.disk];
            groups.push((row.vg_uuid, Group { disks, ..row.group }));
        }
    }
    let counted = groups.into_iter().map(|(_, group)| Group {
        free: usable(&group.disks),
        ..group
    });
    Ok(counted.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip] // a row is a line
    fn only_space_that_a_disk_has_is_free() {
        // A disk whose 90 bytes of extents begin at byte 10, with 50 free. Columns: the size of its device, whether it
        // is allocatable, whether it is missing, what counts as free, whether it is short.
        let cases = [
            ("whole", 100, "allocatable", "", 50, false),
            ("larger", 900, "allocatable", "", 50, false),
            ("a byte too small", 99, "allocatable", "", 0, true),
            ("not for volumes", 100, "", "", 0, false),
            ("gone", 0, "allocatable", "missing", 0, false),
            ("gone just now", 0, "allocatable", "", 0, false),
            ("back", 100, "allocatable", "missing", 0, false),
        ];
        for (name, size, allocatable, missing, free, is_short) in cases {
            let disk = format!(r#""pv_name":"/dev/b","pv_free":"50","pv_size":"90","pe_start":"10","dev_size":"{size}",
                "pv_allocatable":"{allocatable}","pv_missing":"{missing}""#);
            let good = disk.replace("/dev/b", "/dev/a").replace(&format!(r#""{size}""#), r#""100""#);
            let good = good.replace(r#""pv_allocatable":"""#, r#""pv_allocatable":"allocatable""#).replace(r#""missing"}"#, r#""""#);
            let good = good.replace(r#""pv_missing":"missing""#, r#""pv_missing":"""#);
            let vg = r#""vg_name":"vg","vg_size":"180","vg_free":"100","vg_extent_size":"1","vg_mda_free":"9","vg_mda_size":"9",
                "vg_missing_pv_count":"0","vg_exported":"","vg_lock_type":"""#;
            let json = format!(r#"{{"report":[{{"vg":[{{"vg_uuid":"u",{vg},{disk}}},{{"vg_uuid":"v",{vg},{good}}},{{"vg_uuid":"u",{vg},{good}}}]}}]}}"#);
            let groups = groups_in(Report::parse(json.as_bytes()).unwrap()).unwrap();
            let frees: Vec<u64> = groups.iter().map(|group| group.free.get()).collect();
            assert_eq!(frees, [free + 50, 50], "{name}");
            assert_eq!(groups[0].disks[0].is_short(), is_short, "{name}");
            let allowed: &[PathBuf] = if is_short { &["/dev/a".into()] } else { &[] };
            assert_eq!(super::allowed(&groups[0].disks), allowed, "{name}");
        }
    }
}
