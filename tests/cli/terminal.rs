//! Text that others wrote, in the driver's output. Such text begins no line, moves nothing on the terminal, and means
//! nothing to a program that reads the output. Names of processes and directories are in
//! `tests/guest/people/terminal.rs`.

use std::fs;

use serde_json::{Value, json};

use crate::Machine;
use crate::people::text;

const HOSTILE: [&str; 4] = [
    "\x1b[2J\nvg/data  64 MiB  ok\r\u{202e}\u{9b}31m\0",
    "\"} 1\\\n# TYPE x gauge\u{2028}---\nkind: Secret",
    ": #{{`$(x)`' \u{85}- \u{feff}\x1b]0;title\x07",
    "long\n",
];

/// A machine whose LVM and log have this text in each place that can have a text.
fn machine(word: &str) -> Machine {
    let machine = Machine::new();
    let row = |vg: &str, lv: &str| {
        let sample = include_str!("../../src/driver/lvm/sample.json");
        let mut report: Value = serde_json::from_str(sample).unwrap();
        let mut row = report["report"][0]["lv"][0].take();
        let tags =
            ["fs=ext4:", "volume=", "mayformat="].map(|tag| format!("flexvolume.{tag}{word}"));
        row["lv_tags"] = format!("{}:1", tags.join(",")).into();
        row["lv_layout"] = format!("linear,{word}").into();
        for (field, value) in [("vg_name", vg), ("lv_name", lv), ("lv_kernel_major", "-1")] {
            row[field] = value.into();
        }
        for field in ["lv_uuid", "lv_health_status", "lv_role", "data_percent"] {
            row[field] = word.into();
        }
        row
    };
    let group = |name: &str, owner: &str| {
        json!({"vg_name": name, "vg_size": "67108864", "vg_free": "0", "vg_extent_size": "4194304", "vg_mda_free": "9", "vg_mda_size": "9", "vg_missing_pv_count": "1",
            "vg_systemid": owner, "vg_lock_type": "", "vg_exported": word, "vg_uuid": name, "pv_name": "/dev/sdb", "pv_free": "0",
            "pv_size": "1", "pe_start": "1", "dev_size": "2", "pv_allocatable": "allocatable", "pv_missing": ""})
    };
    let disk = json!({"pv_name": format!("/dev/{word}"), "vg_name": "vg", "vg_systemid": "", "vg_lock_type": "",
        "pv_duplicate": word, "pv_missing": "", "dev_size": "1", "pv_size": "1", "pe_start": "1"});
    for (tool, kind, rows) in [
        ("lvs", "lv", vec![row("vg", "data"), row(word, word)]),
        ("vgs", "vg", vec![group("vg", ""), group(word, word)]),
        ("pvs", "pv", vec![disk]),
    ] {
        let report = json!({"report": [{kind: rows}]}).to_string();
        fs::write(machine.path(kind), report).unwrap();
        machine.tool(tool, &format!("cat $TOP/{kind}"));
    }
    fs::write(machine.path("word"), word).unwrap();
    for tool in ["dmsetup", "lvmconfig", "modprobe"] {
        machine.tool(tool, "cat $TOP/word >&2; exit 3");
    }
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
    let call = |call: &str, outcome: &str| {
        json!({"time": now.to_string(), "call": call, "volume": "vg/data", "pod": word, "name": "x",
               "mountoptions": word, "steps": word, "took_ms": "1", "outcome": outcome, "message": word})
    };
    let raw = word.replace('\n', " ");
    let log = format!(
        "{}\n{}\nraw {raw}\n",
        call("mount", "ok"),
        call(word, "failed")
    );
    fs::write(machine.path("log"), log).unwrap();
    machine
}

/// The output without the driver's own colours.
fn seen(machine: &Machine, args: &[&str]) -> String {
    let output = machine.command(args).env("CLICOLOR_FORCE", "1").output();
    let output = output.unwrap();
    let mut said = text(&output.stdout) + &text(&output.stderr);
    for colour in ["0", "1", "4", "31", "32", "33"].map(|code| format!("\x1b[{code}m")) {
        said = said.replace(&colour, "");
    }
    said
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n') || "\u{2028}\u{202e}\u{feff}".contains(c)
}

#[test]
fn hostile_text_adds_no_line_to_a_list() {
    for word in HOSTILE {
        let word = word.replace("long", &"ä".repeat(9000));
        let (tame, hostile) = (machine("a tame word"), machine(&word));
        for args in [
            &["check"][..],
            &["check", "vg/data"],
            &["check", "-o", "volumeID=x", "-o", &format!("{word}=x")],
            &["status"],
            &["status", "vg/data"],
            &["status", &format!("no {word}")],
            &["log"],
            &["log", &format!("no {word}")],
            &["doctor"],
            &["metrics"],
            &["check", "--idle", "vg/data"],
            &["adopt", "vg/data"],
        ] {
            if args.iter().any(|arg| arg.contains('\0')) {
                continue; // No argument can hold it.
            }
            let [tame, seen] = [&tame, &hostile].map(|machine| seen(machine, args));
            assert!(!seen.contains(is_hidden), "{args:?}: {seen:?}");
            let lines = [&tame, &seen].map(|said| said.lines().count());
            assert_eq!(lines[0], lines[1], "{args:?}: {tame}\n{seen}");
        }
        // clap's errors quote a word that a script took from a manifest.
        for args in [
            &["adopt", &word][..],
            &["check", "--fs", &word],
            &["check", "-o", &word],
            &["log", "--since", &word],
            &["install", "--vendor", &word],
            &["status", &format!("--{word}")],
            &["help", &word],
        ] {
            if word.contains('\0') {
                continue; // No argument can hold it.
            }
            let seen = seen(&hostile, args);
            assert!(!seen.contains(is_hidden), "{args:?}: {seen:?}");
        }
        for command in ["check", "status", "log", "doctor"] {
            let args = &[command, "--json"];
            let seen = seen(&hostile, args);
            assert!(!seen.contains(is_hidden), "{args:?}: {seen:?}");
            let parsed = serde_json::from_str::<Value>(&seen);
            assert!(parsed.is_ok(), "{args:?}: {seen}");
        }
    }
}
