//! Whether a missing disk has taken a volume's data along, or redundancy makes up for it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::report::{Fields, Report, Volume, ask, read, text};
use super::wait::explain;
use crate::host::Host;
use crate::names::LvName;

/// More layers than LVM builds: a thin volume on a pool on RAID on images.
const DEEPEST: u8 = 8;

/// What a missing disk took away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    Data,
    /// Only the cache of `cached`, which is the volume, or its thin pool.
    Cache {
        cached: LvName,
        /// Whether the cache may hold what is nowhere else.
        is_ahead: bool,
        /// Whether it is a cache pool, and no volume of its own.
        is_pool: bool,
    },
}

/// What a volume that LVM calls partial has lost: whether a part without a disk is needed. LVM says "partial" of
/// a volume as soon as any part of any layer is.
pub fn lost(host: &Host, volume: &Volume) -> Result<Option<Lost>> {
    const FIELDS: &str = "lv_name,lv_parent,pool_lv,origin,lv_layout,lv_health_status,parity_chunks,data_copies,\
        cache_mode";
    let vg = volume.id.vg();
    let command = ask("lvs", FIELDS, host.limits.query)
        .args(["--all"])
        .operand(vg.as_str());
    let name = volume.id.lv();
    read(host, &command, |report| {
        let parts = Layers::of(report)?;
        if !parts.0.contains_key(name.as_str()) {
            return Err(format!("it does not list {name}"));
        }
        Ok(parts.lost(name.as_str(), name, DEEPEST))
    })
    .map_err(|error| explain(host, Some(vg), error))
    .with_context(|| format!("asking LVM for the parts of {}", volume.id))
}

/// All volumes of a group, hidden ones among them, by name.
struct Layers(BTreeMap<String, Part>);

struct Part {
    is_partial: bool,
    layout: String,
    /// The volumes that it is made of.
    needs: BTreeSet<String>,
    /// What is below its cache.
    cached: Option<String>,
    /// Whether each write goes below at once (`cache_mode`, which a writecache does not have).
    writes_through: bool,
    /// How many images RAID can do without (`parity_chunks`).
    spare: usize,
    copies: usize,
}

impl Layers {
    fn of(report: Report) -> Result<Self, String> {
        let rows = report.rows("lv")?;
        let mut parts = BTreeMap::new();
        for row in &rows {
            let name = |field| shown_name(row, field);
            let number = |field| Ok::<_, String>(text(row, field)?.parse().unwrap_or(0));
            let layout = text(row, "lv_layout")?.to_owned();
            let mut needs = BTreeSet::from([name("pool_lv")?]);
            // Not of a snapshot, whose own health says nothing of its origin.
            let cached = layout
                .contains("cache")
                .then(|| name("origin"))
                .transpose()?;
            needs.extend(cached.clone());
            let part = Part {
                is_partial: text(row, "lv_health_status")?.contains("partial"),
                layout,
                needs,
                cached: cached.filter(|origin| !origin.is_empty()),
                writes_through: ["writethrough", "passthrough"].contains(&text(row, "cache_mode")?),
                spare: number("parity_chunks")?,
                copies: number("data_copies")?,
            };
            parts.insert(name("lv_name")?, part);
        }
        for row in &rows {
            if let Some(parent) = parts.get_mut(&shown_name(row, "lv_parent")?) {
                parent.needs.insert(shown_name(row, "lv_name")?);
            }
        }
        Ok(Self(parts))
    }

    /// What the volume `name` has lost, which is `named` or hidden in it, with so many layers below.
    fn lost(&self, name: &str, named: &LvName, deepest: u8) -> Option<Lost> {
        let part = self.0.get(name).filter(|part| part.is_partial)?;
        let is_partial = |name: &&String| self.0.get(*name).is_some_and(|part| part.is_partial);
        let partial: Vec<&String> = part.needs.iter().filter(is_partial).collect();
        let Some(deeper) = deepest.checked_sub(1).filter(|_| !partial.is_empty()) else {
            // The disk that is missing is its own.
            return Some(Lost::Data);
        };
        // For a hidden volume LVM takes the name of the pool that it is in.
        let own = LvName::parse(name);
        let named = own.as_ref().unwrap_or(named);
        let lost = |name: &String| self.lost(name, named, deeper);
        if let Some(below) = &part.cached {
            let is_cache_lost = || partial.iter().any(|name| lost(name).is_some());
            let cache = || Lost::Cache {
                cached: named.clone(),
                is_ahead: !part.writes_through,
                is_pool: part.needs.iter().any(|name| self.is_pool(name)),
            };
            return lost(below).or_else(|| is_cache_lost().then(cache));
        }
        let lost: Vec<(&String, Lost)> = partial
            .into_iter()
            .filter_map(|name| Some((name, lost(name)?)))
            .collect();
        // An image is gone with its metadata, and both have the image's number.
        let images: BTreeSet<usize> = lost.iter().filter_map(|(name, _)| image(name)).collect();
        let is_lost = if part.layout.contains("raid10") && part.copies > 1 {
            let set = |image: &usize| image.checked_div(part.copies);
            images
                .iter()
                .map(set)
                .any(|one| images.iter().filter(|image| set(image) == one).count() >= part.copies)
        } else if part.layout.contains("raid") && !part.layout.contains("raid0") {
            images.len() > part.spare
        } else if part.layout.contains("mirror") {
            part.needs.iter().filter_map(|name| image(name)).count() <= images.len()
        } else {
            !lost.is_empty()
        };
        let mut lost = lost.into_iter().map(|(_, lost)| lost);
        let first = lost.next().filter(|_| is_lost)?;
        Some(lost.find(|one| *one == Lost::Data).unwrap_or(first))
    }

    fn is_pool(&self, name: &str) -> bool {
        let part = self.0.get(name);
        part.is_some_and(|part| part.layout.contains("pool"))
    }
}

/// Hidden volumes are in brackets, also where another row names them.
fn shown_name(row: &Fields, field: &str) -> Result<String, String> {
    Ok(text(row, field)?.trim_matches(['[', ']']).to_owned())
}

/// The number at the end of `…_rimage_1`, `…_rmeta_1` or `…_mimage_1`.
fn image(name: &str) -> Option<usize> {
    let (kind, number) = name.rsplit_once('_')?;
    let is_image = ["_rimage", "_rmeta", "_mimage"]
        .iter()
        .any(|end| kind.ends_with(end));
    number.parse().ok().filter(|_| is_image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row from "name parent pool origin layout spare copies mode", and its health.
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
            "parity_chunks":"{}","data_copies":"{}","cache_mode":"{}","lv_health_status":"{health}"}}"#,
            words[0],
            words[1],
            words[2],
            words[3],
            words[4],
            words[5],
            words[6],
            words.get(7).unwrap_or(&"")
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
        let cache = |mode: &str| format!("lv - [fast_cvol] [lv_corig] cache - 1 {mode}|[fast_cvol] - - - cache,cachevol - 1|[lv_corig] - - - linear - 1");
        let (through, back) = (cache("writethrough"), cache("writeback"));
        let by_pool = "lv - [fast_cpool] [lv_corig] cache - 1 writethrough|[lv_corig] - - - linear - 1|[fast_cpool] - - - cache,pool - 1 writethrough\
            |[fast_cpool_cdata] [fast_cpool] - - linear - 1|[fast_cpool_cmeta] [fast_cpool] - - linear - 1";
        let write = "lv - [fast_cvol] [lv_wcorig] writecache - 1|[fast_cvol] - - - writecache,cachevol - 1|[lv_wcorig] - - - linear - 1";
        let cached_pool = "thin - pool - thin,sparse - 0|pool - - - thin,pool - 1|[pool_tdata] pool [fast_cvol] [pool_tdata_corig] cache - 1 writethrough\
            |[fast_cvol] - - - cache,cachevol - 1|[pool_tdata_corig] [pool_tdata] - - linear - 1";
        let lost = |cached, is_ahead, is_pool| Some(Lost::Cache { cached: LvName::parse(cached).unwrap(), is_ahead, is_pool });
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
            ("thin, its pool is lost", thin, "thin", "thin pool pool_tdata pool_tdata_rimage_0 pool_tdata_rimage_1", true),
        ];
        let cases = cases.map(|(name, rows, lv, partial, is_lost)| (name, rows, lv, partial, is_lost.then_some(Lost::Data)));
        let caches = [
            ("a cache", through.as_str(), "lv", "lv fast_cvol", lost("lv", false, false)),
            ("a cache that is ahead", &back, "lv", "lv fast_cvol", lost("lv", true, false)),
            ("a writecache", write, "lv", "lv fast_cvol", lost("lv", true, false)),
            ("a cache pool", by_pool, "lv", "lv fast_cpool fast_cpool_cdata", lost("lv", false, true)),
            ("what is below a cache", &through, "lv", "lv lv_corig", Some(Lost::Data)),
            ("both", &through, "lv", "lv lv_corig fast_cvol", Some(Lost::Data)),
            ("the cache of a thin pool", cached_pool, "thin", "thin pool pool_tdata fast_cvol", lost("pool", false, false)),
            ("what is below the cache of a thin pool", cached_pool, "thin", "thin pool pool_tdata pool_tdata_corig", Some(Lost::Data)),
        ];
        for (name, rows, lv, partial, want) in cases.into_iter().chain(caches) {
            let rows: Vec<String> = rows.split('|').map(|words| row(words, partial)).collect();
            let json = format!(r#"{{"report":[{{"lv":[{}]}}]}}"#, rows.join(","));
            let parts = Layers::of(Report::parse(json.as_bytes()).unwrap()).unwrap();
            assert_eq!(parts.lost(lv, &LvName::parse(lv).unwrap(), DEEPEST), want, "{name}");
        }
    }
}
