//! What `doctor` makes of each answer of LVM's, also of those that one LVM alone does not give.

use serde_json::{Value, json};

use crate::Machine;

const LVS: &str =
    r#"case "$*" in *seg_monitor*) exec cat $TOP/monitors;; *) exec cat $TOP/rows;; esac"#;

fn row(lv: &str, layout: &str, role: &str, pool: &str, mib: u64) -> Value {
    json!({"vg_name": "vg", "lv_name": lv, "lv_uuid": lv, "lv_size": (mib << 20).to_string(),
        "lv_time": "1", "lv_tags": "", "lv_active": "", "lv_skip_activation": "",
        "lv_permissions": "unknown", "lv_health_status": "", "lv_device_open": "",
        "lv_layout": layout, "lv_role": role, "pool_lv": pool, "data_percent": "",
        "metadata_percent": "", "vg_extent_size": "4194304", "vg_free": "0", "vg_lock_type": "",
        "lv_lockargs": "", "pool_lv_uuid": ""})
}

/// What doctor says of autoextend, with this state of the pool and these lines of lvm.conf.
fn says(machine: &Machine, watched: &str, conf: &str) -> Vec<[String; 3]> {
    let put = |name: &str, rows: Value| {
        let report = json!({"report": [{"lv": rows}]});
        std::fs::write(machine.path(name), report.to_string()).unwrap();
    };
    put(
        "rows",
        json!([
            row("pool", "thin,pool", "private", "", 64),
            row("snap", "linear", "public,snapshot,thicksnapshot", "", 64),
            row("thin", "thin,sparse", "public", "pool", 256),
        ]),
    );
    let monitor = |lv, is| json!({"vg_name": "vg", "lv_name": lv, "seg_monitor": is, "lv_profile": "", "vg_profile": "slow"});
    put(
        "monitors",
        json!([
            monitor("pool", watched),
            monitor("snap", "monitored"),
            monitor("thin", "")
        ]),
    );
    machine.tool("lvs", LVS);
    machine.tool("vgs", r#"echo '{"report":[{"vg":[]}]}'"#);
    machine.tool(
        "lvmconfig",
        &format!("echo \"$*\" >> $TOP/asked; printf '{conf}'"),
    );
    let output = machine.command(&["doctor", "--json"]).output().unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    all.iter()
        .filter(|one| one["check"] == "autoextend")
        .map(|one| ["about", "finding", "command"].map(|key| text(one, key)))
        .collect()
}

#[test]
#[rustfmt::skip] // a row is a line
fn what_nothing_extends_is_named_with_the_cause() {
    let machine = Machine::new();
    let conf = |monitoring: u8, executable: &str, threshold: u8| {
        format!(
            "monitoring={monitoring}\\nexecutable=\"{executable}\"\\n\
             thin_pool_autoextend_threshold={threshold}\\nsnapshot_autoextend_threshold=70\\n"
        )
    };
    let watch = "lvchange --monitor y vg/pool";
    for (watched, conf, finding, command) in [
        ("not monitored", conf(1, "/bin/sh", 70), "at 70 %, but dmeventd does not", watch),
        ("not monitored", conf(0, "/bin/sh", 70), "dmeventd", "set monitoring = 1"),
        ("not monitored", conf(1, "/nonexistent", 70), "dmeventd", "install dmeventd"),
        ("monitored", conf(1, "/bin/sh", 100), "can take 256 MiB", "lvextend --size 268435456b vg/pool, or"),
        ("monitored", conf(1, "/bin/sh", 70), "nothing is free in vg", "vgextend vg DISK"),
    ] {
        let said = says(&machine, watched, &conf);
        let [[about, found, helps]] = said.as_slice() else {
            panic!("{conf}: {said:?}")
        };
        assert_eq!(about, "vg/pool");
        assert!(found.contains(finding), "{conf}: {found}");
        assert!(helps.contains(command), "{conf}: {helps}");
    }
    let asked = std::fs::read_to_string(machine.path("asked")).unwrap();
    assert!(asked.contains("--metadataprofile slow"), "{asked}");
}
