//! Reads reports of LVM, and outputs of lvmlockd and sanlock.

use std::num::NonZeroU64;
use std::sync::LazyLock;

use super::group::Group;
use super::lockd::{LeaseState, state};
use super::report::*;
use super::sanlock::{Holder, node, owner};
use super::space::groups_in;
use super::volume::*;
use crate::names::{Bytes, LvId, LvName};

/// The report of lvs about an active linear volume of 64 MiB.
const ONE: &str = include_str!("sample.json");

/// Read once: the proof of `decide` asks for it millions of times.
pub(crate) fn sample() -> Volume {
    static SAMPLE: LazyLock<Volume> = LazyLock::new(|| with(&[]).unwrap());
    SAMPLE.clone()
}

/// The sample volume with other values in these fields.
pub fn with(fields: &[(&str, &str)]) -> Result<Volume, String> {
    let mut report: serde_json::Value = serde_json::from_str(ONE).unwrap();
    for (field, value) in fields {
        report["report"][0]["lv"][0][field] = (*value).into();
    }
    let report = Report::parse(report.to_string().as_bytes()).unwrap();
    report.volumes("lv").map(|mut volumes| volumes.remove(0))
}

#[test]
fn reads_what_lvs_prints() {
    let volume = sample();
    assert_eq!(volume.id.to_string(), "vg/data");
    assert_eq!(volume.size, Bytes::new(64 << 20));
    assert_eq!((volume.data_percent, volume.metadata_percent), (None, None));
    assert!(volume.is_active() && volume.writable == Some(true) && !volume.open);
    let other = |field, value| with(&[(field, value)]).unwrap();
    let tagged = other("lv_tags", "flexvolume.fs=ext4:u,other");
    assert_eq!(tagged.record.made.unwrap().uuid, "u");
    assert_eq!(other("data_percent", "12.50").data_percent, Some(12.5));
    let letters = [1, 5, 9, 11].map(|place| volume.letter(place));
    assert_eq!(letters, ["-", "a", "-", ""]);
    assert_eq!(other("lv_attr", "").writable, None);
    let changed = other("lv_attr", "-ri-a-----");
    assert!(changed.writable == Some(false) && !changed.overridden);
    assert!(other("lv_attr", "-Ri-a-----").overridden);
    assert!(other("lv_device_open", "unknown").open);
    let inactive = other("lv_kernel_major", "-1");
    assert!(!inactive.is_active() && inactive.writable.is_none());
    let origin = other("lv_role", "public,origin,thickorigin");
    assert!(origin.has_role("thickorigin") && !volume.has_role("thickorigin"));
    // A cached volume's hidden cache is no pool.
    assert_eq!(other("pool_lv", "[fast_cvol]").pool, None);
    assert_eq!(other("pool_lv", "pool").pool, LvName::parse("pool").ok());
    let origin = |name| other("origin", name).origin;
    assert_eq!(origin("[data_corig]"), None);
    assert_eq!(origin("shop"), LvName::parse("shop").ok());
}

#[test]
fn a_pool_is_found_with_its_volumes_and_its_fill() {
    let (mut volume, mut pool) = (sample(), sample());
    assert!(!volume.is_pool());
    volume.pool = LvName::parse("pool").ok();
    pool.id = LvId::parse("vg/pool").unwrap();
    pool.layout = "thin,pool".to_owned();
    let sorted = [volume.clone(), pool.clone()];
    assert_eq!(
        Volume::among(&sorted, &volume.pool_id().unwrap()),
        Some(&pool)
    );
    assert_eq!(pool.pool_id(), None);
    for other in ["vg/other", "other/pool"] {
        let id = LvId::parse(other).unwrap();
        assert_eq!(Volume::among(&sorted, &id), None);
    }

    pool.data_percent = Some(95.0);
    pool.metadata_percent = Some(94.9);
    assert_eq!(pool.filled_to(95).collect::<Vec<_>>(), [("data", 95.0)]);
    volume.data_percent = Some(95.0);
    let is_full = [&pool, &volume].map(|one| one.runs_out_at(95));
    assert_eq!(is_full, [true, false]);
    assert!(!pool.runs_out_at(96));
}

#[test]
fn reads_what_vgs_prints() {
    let report = || {
        let text = r#"{"report":[{"vg":[{"vg_name":"vg","vg_size":"9","vg_free":"7",
            "vg_extent_size":"4","vg_mda_free":"5","vg_mda_size":"120","vg_missing_pv_count":"1","vg_exported":"exported","vg_lock_type":"sanlock","vg_uuid":"a","pv_name":"/dev/sdb","pv_free":"7","pv_size":"9","pe_start":"0","dev_size":"9","pv_allocatable":"allocatable","pv_missing":""},{"vg_name":"b","vg_size":"9",
            "vg_free":"7","vg_extent_size":"4","vg_mda_free":"6","vg_mda_size":"120","vg_missing_pv_count":"0","vg_exported":"","vg_lock_type":"none","vg_uuid":"b","pv_name":"/dev/sdb","pv_free":"7","pv_size":"9","pe_start":"0","dev_size":"9","pv_allocatable":"allocatable","pv_missing":""}]}]}"#;
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
        shared: true,
        disks: Vec::new(),
    };
    let groups = groups_in(report()).unwrap();
    let disks = groups[0].disks.clone();
    assert_eq!(groups.first(), Some(&Group { disks, ..vg }));
    assert_eq!(groups.len(), 2);
    assert!(!groups[1].exported && !groups[1].shared);
}

#[test]
fn a_volume_of_a_shared_group_has_its_own_lock_or_that_of_its_pool() {
    let lock = |kind, args, pool| {
        let lock = [
            ("vg_lock_type", kind),
            ("lv_lockargs", args),
            ("pool_lv_uuid", pool),
        ];
        with(&lock).unwrap().lock.map(|lock| lock.of)
    };
    assert_eq!(lock("", "", "p"), None);
    assert_eq!(lock("sanlock", "", "p"), Some(Some("p".to_owned())));
    let own = Some(Some("a-b".to_owned()));
    assert_eq!(lock("sanlock", "1.0.0:70254592", "p"), own);
    assert_eq!(lock("sanlock", "", ""), Some(None));
}

#[test]
fn a_line_of_text_in_a_report_is_passed_over() {
    let text = "  {\n  \"report\": [\n  Retrying metadata scan.\n {\"lv\": [\n ]\n }\n ]\n }\n";
    let volumes = Report::parse(text.as_bytes()).unwrap().volumes("lv");
    assert_eq!(volumes, Ok(Vec::new()));
    assert!(Report::parse(b"Retrying metadata scan.\n").is_err());
}

#[test]
fn a_volume_of_several_segments_is_one_and_as_wide_as_its_widest() {
    let row = |name: &str, stripes: &str| {
        let start = ONE.find("{\n").unwrap();
        let row = ONE[start..].trim_end().strip_suffix("]}]}").unwrap();
        let row = row.replace(r#""data""#, &format!("{name:?}"));
        let row = row.replace("a-b", name).replace("linear", "linear,striped");
        row.replace(r#""stripes":"1""#, &format!(r#""stripes":"{stripes}""#))
    };
    let rows = [row("z", "1"), row("a", "1"), row("z", "3"), row("z", "2")];
    // A volume with a name that LVM reserves does not hide the others.
    let strange = row("x_cvol", "1");
    let text = format!(r#"{{"report":[{{"lv":[{strange},{}]}}]}}"#, rows.join(","));
    let volumes = Report::parse(text.as_bytes())
        .unwrap()
        .volumes("lv")
        .unwrap();
    let seen = volumes
        .iter()
        .map(|one| (one.id.lv().as_str(), one.spread.images));
    assert_eq!(seen.collect::<Vec<_>>(), [("a", 1), ("z", 3)]);
}

#[test]
fn a_report_that_lacks_something_is_refused_with_what_it_lacks() {
    let lacking = ONE.replace("lv_size", "x");
    let lacking = Report::parse(lacking.as_bytes()).unwrap().volumes("lv");
    assert_eq!(lacking.unwrap_err(), "missing field `lv_size`");
    let error = |field, value| with(&[(field, value)]).unwrap_err();
    assert_eq!(error("lv_size", "64m"), "\"64m\" is no number");
    assert_eq!(error("vg_extent_size", "0"), "\"0\" is no number");
}

const DUMP: &str = "info=structs unused_action_count=31 unused_client_count=31
info=ls ls_name=lvm_other vg_name=other create_fail=0 create_done=1 thread_stop=0 kill_vg=0 drop_vg=0
info=r name=a-b type=lv mode=sh sh_count=1 version=0
info=ls ls_name=lvm_vg vg_name=vg create_fail=0 create_done=1 thread_stop=0 kill_vg=0 drop_vg=0
info=r name=VGLK type=vg mode=un sh_count=0 version=12
info=r name=a-b type=lv mode=ex sh_count=0 version=0
info=lk mode=ex version=0 flags=0x1 client_id=0
info=r name=c-d type=lv mode=un sh_count=0 version=0\n";

#[test]
fn lvmlockd_says_who_has_a_volume() {
    let cases = [
        ("held", "vg", "a-b", "", "", LeaseState::Held),
        ("shared", "other", "a-b", "", "", LeaseState::Shared),
        (
            "not held any more",
            "vg",
            "c-d",
            "",
            "",
            LeaseState::NotHeld,
        ),
        ("never held", "vg", "e-f", "", "", LeaseState::NotHeld),
        (
            "of another group",
            "third",
            "a-b",
            "",
            "",
            LeaseState::NotStarted,
        ),
        (
            "starting",
            "vg",
            "a-b",
            "done=1",
            "done=0",
            LeaseState::Starting,
        ),
        (
            "failed to start",
            "vg",
            "a-b",
            "fail=0",
            "fail=1",
            LeaseState::NotStarted,
        ),
        (
            "stopping",
            "vg",
            "a-b",
            "stop=0",
            "stop=1",
            LeaseState::NotStarted,
        ),
        (
            "lost",
            "vg",
            "a-b",
            "kill_vg=0",
            "kill_vg=1",
            LeaseState::Lost,
        ),
        ("nothing", "vg", "a-b", "info=", "", LeaseState::NotStarted),
    ];
    for (name, vg, lock, from, to, want) in cases {
        let dump = if from.is_empty() {
            DUMP.to_owned()
        } else {
            DUMP.replace(from, to)
        };
        assert_eq!(state(&dump, vg, Some(lock)), want, "{name}");
    }
    assert_eq!(state(DUMP, "vg", None), LeaseState::NotHeld);
}

#[test]
fn sanlock_says_which_node_and_how_long_it_has_been_silent() {
    let leader = "read_leader done 0\nowner_id 2\nowner_generation 1\ntimestamp 173\n";
    assert_eq!(owner(leader), Some(2));
    assert_eq!(owner(&leader.replace("173", "0")), None, "free");
    assert_eq!(owner("read_leader done -2\n"), None);
    let status = "lockspace lvm_vg\n1 timestamp 197\n    last_check=199\n    last_live=199
    io_timeout=10\n    owner_name=node-a\n2 timestamp 100\n    last_check=199\n    last_live=150
    last_req=0\n    io_timeout=10\n    owner_name=node-b\n";
    let want = Holder {
        host: 2,
        name: "node-b".to_owned(),
        silent: 49,
    };
    assert_eq!(node(status, 2), Some(want));
    assert_eq!(node(status, 3), None);
    assert_eq!(node(status, 1).unwrap().silent, 0);
}
