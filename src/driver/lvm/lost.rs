//! Finds out whether a volume has lost data because disks are missing.

use super::report::{Report, ask, read};
use super::volume::Volume;
use super::wait::explain;
use crate::host::Host;
use anyhow::{Context, Result};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;

/// The most layers that are looked at. Even a thin volume on a pool on RAID on images has fewer.
const MOST_LAYERS: u8 = 8;

/// Whether a volume that LVM calls partial has lost data. LVM calls a volume partial if one part of one layer misses a
/// disk, even if the volume has another copy of the data.
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
    /// How many images a RAID may lose.
    parity_chunks: String,
    data_copies: String,
}

/// Reads a volume's name. LVM puts the names of hidden volumes in brackets, also in other volumes' rows.
fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    Ok(name.trim_matches(['[', ']']).to_owned())
}

impl Part {
    fn is_partial(&self) -> bool {
        self.lv_health_status.contains("partial")
    }

    /// Whether `other` is a part of this volume.
    fn needs(&self, other: &Self) -> bool {
        // The origin of a cached volume is a part of that volume. The origin of a snapshot is no part of the snapshot:
        // the snapshot's health does not include the origin's.
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

    /// Whether this volume has lost data. True also if LVM does not list the volume.
    fn is_lost(&self, volume: &str) -> bool {
        let part = self.0.iter().find(|part| part.lv_name == volume);
        part.is_none_or(|part| self.has_lost(part, MOST_LAYERS))
    }

    /// Whether this part has lost more than its redundancy can replace. `deepest`: how many layers to look at. If there
    /// are more, the part counts as lost.
    fn has_lost(&self, part: &Part, deepest: u8) -> bool {
        let below = || self.0.iter().filter(|one| part.needs(one));
        let Some(deeper) = deepest.checked_sub(1) else {
            return true;
        };
        if !part.is_partial() || !below().any(Part::is_partial) {
            // The missing disk is this part's own.
            return part.is_partial();
        }
        let mut lost = below().filter(|one| self.has_lost(one, deeper)).peekable();
        let is_any = lost.peek().is_some();
        // An image is lost if its metadata is lost. Both have the image's number, so the image counts once.
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

    /// A row made of the words "name parent pool origin layout spare copies", and of its health.
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
