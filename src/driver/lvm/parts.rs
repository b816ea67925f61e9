//! Whether a missing disk has taken a volume's data along, or redundancy makes up for it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::report::{Fields, Report, Volume, ask, read, text};
use super::wait::explain;
use crate::host::Host;

/// More layers than LVM builds: a thin volume on a pool on RAID on images.
const DEEPEST: u8 = 8;

/// Whether a volume that LVM calls partial has lost what it needs. LVM says "partial" of a volume as soon as any part
/// of any layer is.
pub fn is_lost(host: &Host, volume: &Volume) -> Result<bool> {
    const FIELDS: &str =
        "lv_name,lv_parent,pool_lv,origin,lv_layout,lv_health_status,parity_chunks,data_copies";
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
        Ok(parts.is_lost(name.as_str(), DEEPEST))
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
            if layout.contains("cache") {
                needs.insert(name("origin")?);
            }
            let part = Part {
                is_partial: text(row, "lv_health_status")?.contains("partial"),
                layout,
                needs,
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

    /// Whether the volume `name`, with so many layers below, has lost more than redundancy makes up for.
    fn is_lost(&self, name: &str, deepest: u8) -> bool {
        let is_partial = |part: &&Part| part.is_partial;
        let Some(part) = self.0.get(name).filter(is_partial) else {
            return false;
        };
        let is_partial = |name: &&String| self.0.get(*name).is_some_and(|part| part.is_partial);
        let mut partial = part.needs.iter().filter(is_partial).peekable();
        let Some(deeper) = deepest.checked_sub(1).filter(|_| partial.peek().is_some()) else {
            // The disk that is missing is its own.
            return true;
        };
        let lost: Vec<&String> = partial.filter(|name| self.is_lost(name, deeper)).collect();
        // An image is gone with its metadata, and both have the image's number.
        let images: BTreeSet<usize> = lost.iter().filter_map(|name| image(name)).collect();
        if part.layout.contains("raid10") && part.copies > 1 {
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
        }
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
            let parts = Layers::of(Report::parse(json.as_bytes()).unwrap()).unwrap();
            assert_eq!(parts.is_lost(lv, DEEPEST), want, "{name}");
        }
    }
}
