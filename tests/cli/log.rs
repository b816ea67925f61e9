//! The one line that each call leaves in the log.

use crate::{DEVICE, JSON, Machine};
use std::fs;
use std::time::{Duration, SystemTime};

/// The line that this call leaves.
fn logged(args: &[&str]) -> String {
    let machine = Machine::new();
    machine.call(args);
    let log = fs::read_to_string(machine.path("log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    log
}

#[test]
fn a_line_of_a_log_file_begins_with_its_date_in_utc() {
    let line = logged(&["init"]);
    let (date, _) = line.split_once(" call=init ").unwrap();
    let date = humantime::parse_rfc3339(date).unwrap();
    let age = SystemTime::now().duration_since(date).unwrap();
    assert!(age < Duration::from_secs(60), "{line}");
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_call_names_its_volume_and_pod_though_it_is_refused() {
    let of_pod = JSON.replacen(
        '{',
        r#"{"kubernetes.io/pod.namespace":"shop","kubernetes.io/pod.name":"web-0","#,
        1,
    );
    let with = |from: &str, to: &str| logged(&["mount", "/mnt/x", &of_pod.replace(from, to)]);
    let volume = " volume=nosuch-vg/data-1";
    let (rest, name, took) = (" pod=shop/web-0 name=data ", " name=data ", " took=");
    let (mount, detach) = ("call=mount", "call=detach");
    let of_dir = logged(&["mount", "x", JSON]);
    let cases = [
        ("a mistyped option", with("\"size\"", "\"Size\""), volume, rest),
        ("a number", with("\"64m\"", "64"), volume, rest),
        ("a filesystem", with("ext4", "ntfs"), volume, rest),
        ("no volume's name", with("data-1", "-x"), mount, rest),
        ("no pod's name", with("web-0", r"p outcome=ok\n"), volume, name),
        ("no JSON", with("}", ""), mount, took),
        ("a directory", of_dir, volume, name),
        ("detach", logged(&["detach", "data", "node"]), detach, name),
        ("a device", logged(&["detach", DEVICE, "node"]), volume, took),
        ("no name", logged(&["detach", "{", "node"]), detach, took),
    ];
    for (name, line, first, then) in cases {
        assert!(line.contains(&format!("{first}{then}")), "{name}: {line}");
    }
}
