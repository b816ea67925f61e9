//! The one log entry of each call, and how people read it.

use crate::people::{prints, says};
use crate::{DEVICE, JSON, Machine};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// The entry that this call leaves.
fn logged(args: &[&str]) -> Value {
    let machine = Machine::new();
    machine.call(args);
    let log = fs::read_to_string(machine.path("log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    serde_json::from_str(&log).unwrap()
}

fn of_pod() -> String {
    let pod = r#"{"kubernetes.io/pod.namespace":"shop","kubernetes.io/pod.name":"web-0","#;
    JSON.replacen('{', pod, 1)
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_call_names_its_volume_and_pod_though_it_is_refused() {
    let of_pod = of_pod();
    let with = |from: &str, to: &str| logged(&["mount", "/mnt/x", &of_pod.replace(from, to)]);
    let volume = Some("nosuch-vg/data-1");
    let (pod, name) = (Some("shop/web-0"), Some("data"));
    let cases = [
        ("a mistyped option", with("\"size\"", "\"Size\""), volume, pod, name),
        ("a number", with("\"64m\"", "64"), volume, pod, name),
        ("a filesystem", with("ext4", "ntfs"), volume, pod, name),
        ("no volume's name", with("data-1", "-x"), None, pod, name),
        ("no pod's name", with("web-0", r"p outcome=ok\n"), volume, None, name),
        ("no JSON", with("}", ""), None, None, None),
        ("a directory", logged(&["mount", "x", JSON]), volume, None, name),
        ("detach", logged(&["detach", "data", "node"]), None, None, name),
        ("a device", logged(&["detach", DEVICE, "node"]), volume, None, None),
        ("no name", logged(&["detach", "{", "node"]), None, None, None),
    ];
    for (what, entry, volume, pod, name) in cases {
        let fields = ["volume", "pod", "name"].map(|field| entry[field].as_str());
        assert_eq!(fields, [volume, pod, name], "{what}: {entry}");
        let time = humantime::parse_rfc3339(entry["time"].as_str().unwrap()).unwrap();
        assert!(time.elapsed().unwrap() < Duration::from_secs(600), "{entry}");
    }
}

#[test]
fn log_takes_the_names_that_it_has_and_says_if_it_finds_none() {
    let machine = Machine::new();
    machine.refuses(&["mount", "/mnt/x", &of_pod()], &["lvs"]);
    for name in [
        "nosuch-vg/data-1",
        DEVICE,
        "nosuch-vg",
        "data-1",
        "shop/web-0",
        "data",
    ] {
        prints(&machine, &["log", name], " nosuch-vg/data-1 ", 0);
    }
    let missing = "no such call about typo is in the log\n".to_owned();
    assert_eq!(says(&machine, &["log", "typo"]), (missing, 1));
    // What is no entry is passed over.
    let entry = json!({"time": "2023-11-14T22:13:20Z", "call": "mount", "volume": "gone/x", "took_ms": "1424",
        "outcome": "ok"});
    let line = format!("2023-11-14T22:13:20Z call=init outcome=ok\n{entry}\n{{\"time\":");
    fs::write(machine.path("log"), line).unwrap();
    for (args, words) in [
        (&["--since", "2023-11-14"][..], "22:13:20Z  mount  gone/x"),
        (&["--since", "2023-11-14 22:13"], "  1.4 s  ok\n"),
        (&["--since", "2023-11-14 22:14"], "no such call"),
    ] {
        prints(&machine, &[&["log"], args].concat(), words, 0);
    }
    prints(&machine, &["log", "--since", "noon"], "2026-11-21 10:00", 2);
}

#[test]
fn an_entry_that_a_full_disk_cut_hides_no_other() {
    let machine = Machine::new();
    let file = machine.path("log");
    // How many bytes are missing at the end of the second entry, and how many of three calls are read.
    for (cut, want) in [(0, 3), (1, 3), (2, 2), (40, 2), (1000, 2)] {
        machine.call(&["unmount", "/nonexistent/x"]);
        let first = fs::metadata(&file).unwrap().len();
        machine.refuses(&["mount", "/mnt/x", "{\"time\":\"ä"], &["JSON"]);
        let log = fs::File::options().write(true).open(&file).unwrap();
        let whole = log.metadata().unwrap().len();
        log.set_len(whole.saturating_sub(cut).max(first + 1))
            .unwrap();
        machine.call(&["init"]);
        let (said, _) = says(&machine, &["log", "--json"]);
        let calls: Vec<Value> = serde_json::from_str(&said).unwrap();
        let last = calls.last().map(|call| &call["call"]);
        assert!(
            calls.len() == want && last == Some(&json!("init")),
            "{cut}: {said}"
        );
        fs::remove_file(&file).unwrap();
    }
}

/// The driver writes to a FIFO only what somebody reads at once.
#[test]
fn a_log_that_is_no_file_keeps_nobody_waiting() {
    let machine = Machine::new();
    nix::unistd::mkfifo(&machine.path("log"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    machine.tool("lvs", "echo '{\"report\":[]}'");
    machine.tool("vgs", "echo '{\"report\":[]}'");
    machine.call(&["unmount", "/nonexistent/x"]);
    prints(&machine, &["log"], "it is not a regular file", 1);
    prints(&machine, &["metrics"], "flexvolume_lvm_log_readable{} 0", 0);
}

/// As of the journal: root may follow advice in an entry.
#[test]
fn a_log_file_that_is_a_link_or_that_others_may_write_is_not_read() {
    let machine = Machine::new();
    machine.call(&["unmount", "/nonexistent/x"]);
    let file = machine.path("log");
    prints(&machine, &["log"], "unmount", 0);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    prints(&machine, &["log"], "can be written by others than root", 1);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&file, machine.path("target")).unwrap();
    std::os::unix::fs::symlink("target", &file).unwrap();
    machine.call(&["unmount", "/nonexistent/y"]);
    prints(
        &machine,
        &["log"],
        "a symbolic link: name its target in `log`",
        1,
    );
}

#[test]
fn the_journal_is_asked_for_this_drivers_entries_alone() {
    let machine = Machine::new();
    let tools = machine.path("tools");
    let config = format!("tool_dirs = ['{}']\n", tools.display());
    fs::write(machine.path("config.toml"), config).unwrap();
    // The newest one first.
    let journal = r#"{"__REALTIME_TIMESTAMP":"1700000060000000","MESSAGE":[1,2],"FLEXVOLUME_CALL":"mount","FLEXVOLUME_VOLUME":"vg/x","FLEXVOLUME_POD":"shop/web-0","FLEXVOLUME_STEPS":"lvs:4ms,blkid!:1ms","FLEXVOLUME_TOOK_MS":"5","FLEXVOLUME_OUTCOME":"failed","FLEXVOLUME_MESSAGE":"no \"x\""}
{"__REALTIME_TIMESTAMP":"1700000000000000","FLEXVOLUME_CALL":"init","FLEXVOLUME_TOOK_MS":"1","FLEXVOLUME_OUTCOME":"ok"}
"#;
    fs::write(machine.path("journal"), journal).unwrap();
    machine.tool(
        "journalctl",
        "echo \"$*\" >> $TOP/asked; exec cat $TOP/journal",
    );
    let table = "\
TIME                  CALL   VOLUME  POD         TOOK  OUTCOME
2023-11-14T22:13:20Z  init   -       -           1 ms  ok
2023-11-14T22:14:20Z  mount  vg/x    shop/web-0  5 ms  failed
    no \"x\"
    steps: lvs:4ms, blkid!:1ms
";
    assert_eq!(says(&machine, &["log"]), (table.to_owned(), 0));
    let asked = fs::read_to_string(machine.path("asked")).unwrap();
    // Of root alone: anybody may write under that name.
    for word in ["--identifier=flexvolume-lvm", "_UID=0", "--reverse"] {
        assert!(asked.contains(word), "{asked}");
    }
    let (json, _) = says(&machine, &["log", "--failed", "--json"]);
    let calls: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(calls.as_array().unwrap().len(), 1, "{json}");
    assert_eq!(calls[0]["message"], "no \"x\"");
    assert_eq!(
        calls[0]["tools"][1],
        json!({"name": "blkid", "took_ms": 1, "outcome": "failed"})
    );
    prints(&machine, &["log", "--since", "1h"], "no such call", 0);
    let nothing = "tool_dirs = ['/nonexistent']\n";
    fs::write(machine.path("config.toml"), nothing).unwrap();
    prints(&machine, &["log"], "set `log` in config.toml to a file", 1);
}
