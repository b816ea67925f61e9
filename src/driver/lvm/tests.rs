//! Reports of LVM, and the values read from them.

use std::num::NonZeroU64;

use super::report::*;
use crate::names::{Bytes, LvId, LvName};

pub const ONE: &str = r#"{"report":[{"lv":[{"vg_name":"vg","lv_name":"data-1",
    "lv_uuid":"a-b","lv_size":"67108864","lv_time":"1700000000",
    "lv_tags":"flexvolume.fs=ext4:u,other","lv_active":"active","lv_device_open":"",
    "lv_permissions":"writeable","lv_health_status":"","lv_snapshot_invalid":"unknown",
    "lv_layout":"thin,sparse","lv_role":"public","pool_lv":"pool","data_percent":"12.50",
    "metadata_percent":"","vg_extent_size":"4194304","vg_free":"0",
    "vg_lock_type":"","lv_lockargs":"","pool_lv_uuid":"p","stripes":"1","data_stripes":"1"}]}]}"#;

#[test]
fn reads_what_lvs_prints() {
    let volumes = Report::parse(ONE.as_bytes()).unwrap().volumes().unwrap();
    let [volume] = volumes.as_slice() else {
        panic!("{volumes:?}")
    };
    assert_eq!(volume.id.to_string(), "vg/data-1");
    assert_eq!(volume.size, Bytes::new(64 << 20));
    assert_eq!(volume.created, 1_700_000_000);
    assert_eq!(volume.record.made.as_ref().unwrap().uuid, "u");
    assert_eq!(volume.pool.as_ref().unwrap().as_str(), "pool");
    assert_eq!(volume.data_percent, Some(12.5));
    assert_eq!(volume.metadata_percent, None);
    assert!(volume.active && volume.writable == Some(true));
    let other = |from: &str, to: &str| {
        let text = ONE.replace(from, to);
        let volumes = Report::parse(text.as_bytes()).unwrap().volumes();
        volumes.unwrap().remove(0)
    };
    for none in ["unknown", ""] {
        assert_eq!(other("writeable", none).writable, None, "{none}");
    }
    let full = other("_invalid\":\"unknown", "_invalid\":\"snapshot invalid");
    assert!(full.has_overflowed() && !volume.has_overflowed());
    let changed = other("writeable", "read-only");
    assert_eq!((changed.writable, changed.open), (Some(false), false));
    assert!(other("writeable", "read-only-override").overridden && !changed.overridden);
    assert!(other("_open\":\"", "_open\":\"unknown").open);
    assert!(!other("\"active\"", "\"\"").active);
    let origin = other("public", "public,origin,thickorigin");
    assert!(origin.is_thick_origin() && !volume.is_thick_origin());
}

#[test]
fn a_pool_is_found_with_its_volumes_and_its_fill() {
    let (mut volume, mut pool) = (sample(), sample());
    assert!(!volume.is_pool());
    volume.pool = LvName::parse("pool").ok();
    pool.id = LvId::parse("vg/pool").unwrap();
    pool.layout = "thin,pool".to_owned();
    let sorted = [volume.clone(), pool.clone()];
    assert_eq!(volume.pool_among(&sorted), Some(&pool));
    assert_eq!(pool.pool_among(&sorted), None);
    assert!(volume.is_in(&pool) && !pool.is_in(&volume));
    for other in ["vg/other", "other/pool"] {
        let id = LvId::parse(other).unwrap();
        assert_eq!(Volume::among(&sorted, &id), None);
        let another = Volume { id, ..pool.clone() };
        assert!(!volume.is_in(&another), "{other}");
    }

    pool.data_percent = Some(95.0);
    pool.metadata_percent = Some(94.9);
    assert_eq!(pool.filled_to(95).collect::<Vec<_>>(), [("data", 95.0)]);
    volume.data_percent = Some(95.0);
    let is_full = [&pool, &volume].map(|one| one.is_pool_filled_to(95));
    assert_eq!(is_full, [true, false]);
    assert!(!pool.is_pool_filled_to(96));
}

#[test]
fn reads_what_vgs_prints() {
    let report = || {
        let text = r#"{"report":[{"vg":[{"vg_name":"vg","vg_size":"9","vg_free":"7",
            "vg_extent_size":"4","vg_mda_free":"5","vg_mda_size":"120","vg_missing_pv_count":"1","vg_exported":"exported"},{"vg_name":"b","vg_size":"9",
            "vg_free":"7","vg_extent_size":"4","vg_missing_pv_count":"0","vg_exported":""}]}]}"#;
        Report::parse(text.as_bytes()).unwrap()
    };
    let vg = Group {
        name: "vg".to_owned(),
        size: Bytes::new(9),
        free: Bytes::new(7),
        metadata_free: Bytes::new(5),
        metadata_size: Bytes::new(120),
        extent: NonZeroU64::new(4).unwrap(),
        missing: 1,
        exported: true,
    };
    let groups = report().groups().unwrap();
    assert_eq!(groups.first(), Some(&vg));
    assert_eq!(groups.len(), 2);
    assert!(!groups[1].exported);
    assert_eq!(
        (vg.is_metadata_filling(), groups[1].is_metadata_filling()),
        (true, false)
    );
    for (name, want) in [("b", true), ("c", false)] {
        assert_eq!(report().has("vg", "vg_name", name), Ok(want));
    }
}

#[test]
fn a_volume_of_a_shared_group_has_its_own_lock_or_that_of_its_pool() {
    let lock = |text: &str| {
        let volumes = Report::parse(text.as_bytes()).unwrap().volumes().unwrap();
        volumes[0].lock.clone()
    };
    assert_eq!(lock(ONE), None);
    let shared = ONE.replace("_type\":\"", "_type\":\"sanlock");
    assert_eq!(lock(&shared).unwrap().of.as_deref(), Some("p"));
    let own = shared.replace("args\":\"", "args\":\"1.0.0:70254592");
    assert_eq!(lock(&own).unwrap().of.as_deref(), Some("a-b"));
    let of_origin = shared.replace("\"p\"", "\"\"");
    assert_eq!(lock(&of_origin).unwrap().of, None);
}

#[test]
fn a_line_of_text_in_a_report_is_passed_over() {
    let text = "  {\n  \"report\": [\n  Retrying metadata scan.\n {\"lv\": [\n ]\n }\n ]\n }\n";
    let volumes = Report::parse(text.as_bytes()).unwrap().volumes();
    assert_eq!(volumes, Ok(Vec::new()));
    assert!(Report::parse(b"Retrying metadata scan.\n").is_err());
}

#[test]
fn a_volume_of_several_segments_is_one_and_as_wide_as_its_widest() {
    let row = |name: &str, uuid: &str, stripes: &str| {
        let row = ONE.split_once("[{\"vg_name").unwrap().1;
        let row = format!("{{\"vg_name{}", row.strip_suffix("]}]}").unwrap());
        let row = row.replace("data-1", name).replace("a-b", uuid);
        let row = row.replace("thin,sparse", "linear,striped");
        row.replace("stripes\":\"1", &format!("stripes\":\"{stripes}"))
    };
    let rows = [
        row("z", "u-z", "1"),
        row("a", "u-a", "1"),
        row("z", "u-z", "3"),
        row("z", "u-z", "2"),
    ];
    let text = format!("{{\"report\":[{{\"lv\":[{}]}}]}}", rows.join(","));
    let volumes = Report::parse(text.as_bytes()).unwrap().volumes().unwrap();
    let seen = volumes
        .iter()
        .map(|one| (one.id.lv().as_str(), one.spread.images));
    assert_eq!(seen.collect::<Vec<_>>(), [("a", 1), ("z", 3)]);
}

#[test]
fn one_strange_volume_does_not_hide_the_others() {
    let two = ONE.replace(
        "\"lv\":[",
        "\"lv\":[{\"vg_name\":\"vg\",\"lv_name\":\"x_cvol\"},",
    );
    let volumes = Report::parse(two.as_bytes()).unwrap().volumes().unwrap();
    assert_eq!(volumes.len(), 1);
    let cached = ONE.replace("\"pool\"", "\"[fast_cvol]\"");
    let volumes = Report::parse(cached.as_bytes()).unwrap().volumes().unwrap();
    assert_eq!(volumes[0].pool, None);
}

#[test]
fn a_report_that_lacks_something_is_refused_with_what_it_lacks() {
    let cases = [
        ("size", ONE.replace("lv_size", "x"), "no field lv_size"),
        (
            "number",
            ONE.replace("67108864", "64m"),
            "lv_size is \"64m\", no number",
        ),
        ("extent", ONE.replace("4194304", "0"), "an extent size of 0"),
    ];
    for (name, json, want) in cases {
        let error = Report::parse(json.as_bytes()).unwrap().volumes();
        assert_eq!(error.unwrap_err(), want, "{name}");
    }
}
