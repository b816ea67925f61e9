//! The disks that LVM cannot use as they are, what volumes have lost with them, and the disks on which LVM may extend
//! volumes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Deserializer};

use super::report::{Report, Volume, ask, bytes, is_set, read};
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
        // All that are missing look the same.
        if !disk.vg.is_empty() && !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    disks
}

/// A disk on which LVM may extend volumes.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct Extensible {
    #[serde(rename = "pv_name")]
    pub path: PathBuf,
    #[serde(rename = "pv_free", deserialize_with = "bytes")]
    pub free: Bytes,
    #[serde(deserialize_with = "is_set")]
    pv_allocatable: bool,
    #[serde(deserialize_with = "is_set")]
    pv_missing: bool,
}

/// The disks of a group with free space that LVM may give to volumes.
pub fn extensible(host: &Host, vg: &VgName) -> Result<Vec<Extensible>> {
    let fields = "pv_name,pv_free,pv_allocatable,pv_missing";
    let command = ask("vgs", fields, host.limits.query).operand(vg.as_str());
    let mut disks: Vec<Extensible> = read(host, &command, |report| report.rows("vg"))
        .map_err(|error| explain(host, Some(vg), error))
        .with_context(|| format!("asking LVM for the disks of {vg}"))?;
    disks.retain(|disk| disk.pv_allocatable && !disk.pv_missing && disk.free.get() > 0);
    Ok(disks)
}

/// More layers than LVM builds: a thin volume on a pool on RAID on images.
const MOST_LAYERS: u8 = 8;

/// Whether a volume that LVM calls partial has lost what it needs. LVM says "partial" of a volume as soon as any part
/// of any layer is.
pub fn is_lost(host: &Host, volume: &Volume) -> Result<bool> {
    const FIELDS: &str =
        "lv_name,lv_parent,pool_lv,origin,lv_layout,lv_health_status,parity_chunks,data_copies";
    let vg = volume.id.vg();
    let command = ask("lvs", FIELDS, host.limits.query)
        .args(["--all"])
        .operand(vg.as_str());
    read(host, &command, Parts::of)
        .map(|parts| parts.is_lost(volume.id.lv().as_str()))
        .map_err(|error| explain(host, Some(vg), error))
        .with_context(|| format!("asking LVM for the parts of {}", volume.id))
}

/// All volumes of a group, hidden ones among them.
struct Parts(Vec<Part>);

#[derive(Deserialize)]
struct Part {
    #[serde(deserialize_with = "name")]
    lv_name: String,
    #[serde(deserialize_with = "name")]
    lv_parent: String,
    #[serde(deserialize_with = "name")]
    pool_lv: String,
    #[serde(deserialize_with = "name")]
    origin: String,
    lv_layout: String,
    lv_health_status: String,
    /// How many images RAID can do without.
    parity_chunks: String,
    data_copies: String,
}

/// Hidden volumes are in brackets, also where another row names them.
fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    Ok(name.trim_matches(['[', ']']).to_owned())
}

impl Part {
    fn is_partial(&self) -> bool {
        self.lv_health_status.contains("partial")
    }

    /// Whether it is made of `other`.
    fn needs(&self, other: &Self) -> bool {
        // Not a snapshot of its origin: the snapshot's own health says nothing of that.
        let origin = Some(&self.origin).filter(|_| self.lv_layout.contains("cache"));
        other.lv_name == self.pool_lv
            || other.lv_parent == self.lv_name
            || origin == Some(&other.lv_name)
    }

    /// The number at the end of `…_rimage_1`, `…_rmeta_1` or `…_mimage_1`.
    fn image(&self) -> Option<usize> {
        let (kind, number) = self.lv_name.rsplit_once('_')?;
        let kinds = ["_rimage", "_rmeta", "_mimage"];
        let is_image = kinds.iter().any(|end| kind.ends_with(end));
        number.parse().ok().filter(|_| is_image)
    }
}

impl Parts {
    fn of(report: Report) -> Result<Self, String> {
        let mut parts: Vec<Part> = report.rows("lv")?;
        // A volume has a row for each segment.
        parts.dedup_by(|again, one| again.lv_name == one.lv_name);
        Ok(Self(parts))
    }

    /// A volume that is not listed is lost, too.
    fn is_lost(&self, volume: &str) -> bool {
        let part = self.0.iter().find(|part| part.lv_name == volume);
        part.is_none_or(|part| self.has_lost(part, MOST_LAYERS))
    }

    /// Whether this part, with so many layers below, has lost more than redundancy makes up for.
    fn has_lost(&self, part: &Part, deepest: u8) -> bool {
        let below = || self.0.iter().filter(|one| part.needs(one));
        let Some(deeper) = deepest.checked_sub(1) else {
            return true;
        };
        if !part.is_partial() || !below().any(Part::is_partial) {
            // The disk that is missing is its own.
            return part.is_partial();
        }
        let mut lost = below().filter(|one| self.has_lost(one, deeper)).peekable();
        let is_any = lost.peek().is_some();
        // An image is gone with its metadata, and both have the image's number.
        let images: BTreeSet<usize> = lost.filter_map(Part::image).collect();
        let spare = part.parity_chunks.parse().unwrap_or(0);
        let copies = part.data_copies.parse().unwrap_or(0);
        let is_set_lost = |first: &usize| {
            let mut set = *first..first.saturating_add(copies);
            first.is_multiple_of(copies) && set.all(|image| images.contains(&image))
        };
        match &*part.lv_layout {
            layout if layout.contains("raid10") && copies > 1 => images.iter().any(is_set_lost),
            layout if layout.contains("raid") && !layout.contains("raid0") => images.len() > spare,
            layout if layout.contains("mirror") => {
                below().filter_map(Part::image).count() <= images.len()
            }
            _ => is_any,
        }
    }
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
            let rows = Report::parse(json.as_bytes()).unwrap().rows("pv");
            let found = faulty(rows.unwrap());
            let disk = |fault| Disk { vg: vg.to_owned(), path: path.into(), fault };
            assert_eq!(found, want.map(disk).into_iter().collect::<Vec<_>>(), "{name}");
        }
    }

    /// A row from "name parent pool origin layout spare copies", and its health.
    fn row(words: &str, partial: &str) -> String {
        let words: Vec<&str> = words
            .split(' ')
            .map(|word| word.trim_matches('-'))
            .collect();
        let health = if partial
            .split(' ')
            .any(|name| name == words[0].trim_matches(['[', ']']))
        {
            "partial"
        } else {
            ""
        };
        format!(
            r#"{{"lv_name":"{}","lv_parent":"{}","pool_lv":"{}","origin":"{}","lv_layout":"{}",
            "parity_chunks":"{}","data_copies":"{}","lv_health_status":"{health}"}}"#,
            words[0], words[1], words[2], words[3], words[4], words[5], words[6]
        )
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn what_redundancy_makes_up_for_is_not_lost() {
        let linear = "lv - - - linear - 1";
        let raid = |layout: &str, spare: &str, copies: &str, images: usize| {
            let mut rows = vec![format!("lv - - - raid,{layout} {spare} {copies}")];
            for image in 0..images {
                rows.push(format!("[lv_rimage_{image}] lv - - linear - 1"));
                rows.push(format!("[lv_rmeta_{image}] lv - - linear - 1"));
            }
            rows.join("|")
        };
        let (raid1, raid5, raid0) = (raid("raid1", "1", "2", 2), raid("raid5,raid5_ls", "1", "2", 3), raid("raid0", "-", "1", 2));
        let (two_spare, in_pairs) = (raid("raid6,raid6_zr", "2", "3", 5), raid("raid10", "1", "2", 4));
        let thin = "thin - pool - thin,sparse - 0|pool - - - thin,pool - 1|[pool_tdata] pool - - raid,raid1 1 2\
            |[pool_tdata_rimage_0] [pool_tdata] - - linear - 1|[pool_tdata_rimage_1] [pool_tdata] - - linear - 1";
        let cache = "lv - [fast_cvol] [lv_corig] cache - 1|[fast_cvol] - - - cache,cachevol - 1|[lv_corig] - - - linear - 1";
        let by_pool = "lv - [fast_cpool] [lv_corig] cache - 1|[lv_corig] - - - linear - 1|[fast_cpool] - - - cache,pool - 1\
            |[fast_cpool_cdata] [fast_cpool] - - linear - 1|[fast_cpool_cmeta] [fast_cpool] - - linear - 1";
        let write = "lv - [fast_cvol] [lv_wcorig] writecache - 1|[fast_cvol] - - - writecache,cachevol - 1|[lv_wcorig] - - - linear - 1";
        let cached_pool = "thin - pool - thin,sparse - 0|pool - - - thin,pool - 1|[pool_tdata] pool [fast_cvol] [pool_tdata_corig] cache - 1\
            |[fast_cvol] - - - cache,cachevol - 1|[pool_tdata_corig] [pool_tdata] - - linear - 1";
        let mirror = "lv - - - mirror - 1|[lv_mimage_0] lv - - linear - 1|[lv_mimage_1] lv - - linear - 1";
        let cases = [
            ("linear", linear, "lv", "lv", true),
            ("linear, and well", linear, "lv", "other", false),
            ("one image of two", &raid1, "lv", "lv lv_rimage_0 lv_rmeta_0", false),
            ("both images", &raid1, "lv", "lv lv_rimage_0 lv_rimage_1", true),
            ("one image, and the metadata of the other", &raid1, "lv", "lv lv_rimage_0 lv_rmeta_1", true),
            ("one of three, of raid5", &raid5, "lv", "lv lv_rimage_2 lv_rmeta_2", false),
            ("two of three, of raid5", &raid5, "lv", "lv lv_rimage_2 lv_rimage_0", true),
            ("two of five, of raid6", &two_spare, "lv", "lv lv_rimage_2 lv_rimage_0", false),
            ("three of five, of raid6", &two_spare, "lv", "lv lv_rimage_2 lv_rimage_0 lv_rimage_3", true),
            ("one of each pair, of raid10", &in_pairs, "lv", "lv lv_rimage_0 lv_rimage_3", false),
            ("a pair, of raid10", &in_pairs, "lv", "lv lv_rimage_2 lv_rimage_3", true),
            ("one of raid0", &raid0, "lv", "lv lv_rimage_1 lv_rmeta_1", true),
            ("one side of a mirror", mirror, "lv", "lv lv_mimage_1", false),
            ("a whole mirror", mirror, "lv", "lv lv_mimage_0 lv_mimage_1", true),
            ("thin, on a pool on raid1", thin, "thin", "thin pool pool_tdata pool_tdata_rimage_0", false),
            ("a cache", cache, "lv", "lv fast_cvol", true),
            ("a writecache", write, "lv", "lv fast_cvol", true),
            ("a cache pool", by_pool, "lv", "lv fast_cpool fast_cpool_cdata", true),
            ("what is below a cache", cache, "lv", "lv lv_corig", true),
            ("the cache of a thin pool", cached_pool, "thin", "thin pool pool_tdata fast_cvol", true),
            ("what is below the cache of a thin pool", cached_pool, "thin", "thin pool pool_tdata pool_tdata_corig", true),
            ("thin, its pool is lost", thin, "thin", "thin pool pool_tdata pool_tdata_rimage_0 pool_tdata_rimage_1", true),
        ];
        for (name, rows, lv, partial, want) in cases {
            let rows: Vec<String> = rows.split('|').map(|words| row(words, partial)).collect();
            let json = format!(r#"{{"report":[{{"lv":[{}]}}]}}"#, rows.join(","));
            let parts = Parts::of(Report::parse(json.as_bytes()).unwrap()).unwrap();
            assert_eq!(parts.is_lost(lv), want, "{name}");
        }
    }
}
