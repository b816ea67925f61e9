//! Counts what the volumes of a thin pool may come to need.

use std::num::NonZeroU64;

use anyhow::Result;
use serde::Deserialize;

use super::report::{Report, ask, bytes, number, read};
use super::volume::Volume;
use super::wait::answer;
use crate::host::Host;
use crate::names::{Bytes, LvName};

/// What a pool has promised to its volumes: the blocks that they have together once each of them is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promised {
    pub all: Bytes,
    /// The size of a block of the pool (`chunk_size`).
    pub block: NonZeroU64,
}

/// A row of lvs(8): a pool, or a volume of a pool. Such a volume has one segment, and so one row.
#[derive(Deserialize)]
struct Row {
    lv_name: String,
    pool_lv: String,
    #[serde(deserialize_with = "bytes")]
    lv_size: Bytes,
    #[serde(deserialize_with = "number")]
    chunk_size: u64,
}

/// Asks LVM what this pool has promised, if the pool is filled to `limit` percent. Snapshots count, and a snapshot that
/// LVM merges, too, which it lists only with `--all`.
pub fn see_promised(host: &Host, pool: &mut Volume, limit: u8) -> Result<()> {
    if !pool.is_pool() || pool.filled_to(limit).next().is_none() {
        return Ok(());
    }
    let vg = pool.id.vg();
    let fields = "lv_name,pool_lv,lv_size,chunk_size";
    let command = ask("lvs", fields, host.limits.query)
        .args(["--all"])
        .operand(vg.as_str());
    let promised = read(host, &command, |report| promised(report, pool.id.lv()));
    let what = format!("the volumes of {}", pool.id);
    pool.promised = answer(host, Some(vg), promised, what)?;
    Ok(())
}

fn promised(report: Report, pool: &LvName) -> Result<Option<Promised>, String> {
    let rows: Vec<Row> = report.rows("lv")?;
    let of_pool = rows.iter().find(|row| row.lv_name == pool.as_str());
    let Some(block) = of_pool.and_then(|row| NonZeroU64::new(row.chunk_size)) else {
        return Ok(None);
    };
    let mut its = rows.iter().filter(|row| row.pool_lv == pool.as_str());
    let sum = its.try_fold(0_u64, |sum, row| {
        sum.checked_add(row.lv_size.round_up(block)?.get())
    });
    Ok(sum.map(|sum| Promised {
        all: Bytes::new(sum),
        block,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_volume_of_the_pool_counts_in_whole_blocks() {
        const MIB: u64 = 1 << 20;
        let rows = [
            ("pool", "", 100 * MIB, 3 * MIB),
            ("one", "pool", 4 * MIB, 0),
            ("[snapshot]", "pool", 6 * MIB, 0),
            ("other", "pond", 50 * MIB, 0),
            ("plain", "", 50 * MIB, 0),
        ];
        let rows = rows.map(|(lv, pool, size, chunk)| {
            let row = [
                ("lv_name", lv.to_owned()),
                ("pool_lv", pool.to_owned()),
                ("lv_size", size.to_string()),
                ("chunk_size", chunk.to_string()),
            ];
            serde_json::Value::from_iter(row)
        });
        let report = serde_json::json!({"report": [{"lv": rows}]}).to_string();
        let of = |pool| {
            let report = Report::parse(report.as_bytes()).unwrap();
            promised(report, &LvName::parse(pool).unwrap()).unwrap()
        };
        let all = of("pool").map(|promised| promised.all.get());
        assert_eq!(all, Some((6 + 6) * MIB));
        assert_eq!(of("pond"), None, "not in the list");
        let mut pool = super::super::sample();
        pool.layout = "thin,pool".to_owned();
        (pool.data_percent, pool.metadata_percent) = (Some(100.0), Some(9.0));
        let mut is_short = |size: u64, more: u64| {
            pool.sized(Bytes::new(size * MIB));
            pool.promised = of("pool");
            pool.short_of(90, Bytes::new(more * MIB)).next().is_some()
        };
        assert!(!is_short(12, 0) && is_short(11, 0));
        assert!(is_short(12, 1) && is_short(14, 1) && !is_short(15, 1));
        pool.promised = None;
        assert!(pool.runs_out_at(90));
    }
}
