//! The one line that each call leaves in the log, and how people read it.

use crate::people::{prints, says};
use crate::support::eventually;
use crate::support::machine::lvs_row;
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
    assert!(age < Duration::from_secs(600), "{line}");
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

#[test]
fn log_takes_the_names_of_status_and_says_if_it_finds_none() {
    let machine = Machine::new();
    let of_pod = JSON.replacen(
        '{',
        r#"{"kubernetes.io/pod.namespace":"shop","kubernetes.io/pod.name":"web-0","#,
        1,
    );
    machine.refuses(&["mount", "/mnt/x", &of_pod], &["lvs"]);
    // The log knows more than LVM, which is not even here.
    let known = [
        "nosuch-vg/data-1",
        DEVICE,
        "nosuch-vg",
        "data-1",
        "shop/web-0",
        "data",
    ];
    for name in known {
        prints(&machine, &["log", name], " nosuch-vg/data-1 ", 0);
    }
    prints(&machine, &["log", "typo"], "lvs is not installed", 1);
    let vg = r#"{"vg_name":"vg","vg_size":"64","vg_free":"8","vg_extent_size":"4194304","vg_missing_pv_count":"0"}"#;
    machine.tool("lvs", &format!("{} vg idle", lvs_row()));
    machine.tool("vgs", &format!("echo '{{\"report\":[{{\"vg\":[{vg}]}}]}}'"));
    for name in ["vg", "vg/idle", "idle", "/dev/mapper/vg-idle"] {
        prints(&machine, &["log", name], "no such call is in the log", 0);
    }
    for (name, words) in [
        ("typo", "\"typo\" is not on this node"),
        ("vg/none", "there is no logical volume vg/none"),
        ("/nonexistent/x", "/nonexistent/x"),
    ] {
        let (said, code) = says(&machine, &["log", name]);
        let first = format!("no call about {name} is in the log: ");
        assert!(
            said.starts_with(&first) && said.contains(words) && code == 1,
            "{code} {said}"
        );
    }
    // It is known, and was not called since.
    fs::write(
        machine.path("log"),
        "2023-11-14T22:13:20Z call=mount volume=gone/x outcome=ok\n",
    )
    .unwrap();
    let since = |when| says(&machine, &["log", "--since", when, "gone"]);
    assert!(since("2023-11-14").0.contains(" gone/x "));
    assert!(since("2023-11-14 22:13").0.contains(" gone/x "));
    for when in ["2023-11-14 22:14", "yesterday", "today"] {
        let none = ("no such call is in the log\n".to_owned(), 0);
        assert_eq!(since(when), none, "{when}");
    }
    prints(&machine, &["log", "--since", "noon"], "2026-11-21 10:00", 2);
}

#[test]
fn a_name_of_an_option_does_not_end_what_the_log_says_of_the_call() {
    let machine = Machine::new();
    let json = JSON.replacen('{', r#"{"x \\":"","#, 1);
    machine.refuses(&["mount", "/mnt/x", &json], &["lvs"]);
    prints(&machine, &["log", "--failed"], " nosuch-vg/data-1 ", 0);
}

/// Shell: journalctl, whose entries are lines of `$TOP/journal` with their cursors before them.
const JOURNALCTL: &str = r#"after= since= order=cat
for word; do
    case $word in
        --reverse) order=tac ;;
        --after-cursor=*) after=${word#*=} ;;
        --since=@*) since=${word#*@} ;;
    esac
done
if [ -n "$after" ] && [ -n "$since" ]; then
    echo 'Please specify only one of --since=, --cursor=, and --after-cursor=.' >&2
    exit 1
fi
shown=${after:+no}
while read -r cursor seconds message; do
    if [ -z "$shown" ] && [ "$seconds" -ge "${since:-0}" ]; then
        printf '{"__CURSOR":"%s","__REALTIME_TIMESTAMP":"%s000000","MESSAGE":"%s"}\n' \
            "$cursor" "$seconds" "$message"
    fi
    [ "$cursor" != "$after" ] || shown=
done < $TOP/journal | $order"#;

#[test]
fn the_journal_is_followed() {
    let machine = Machine::new();
    let config = format!("tool_dirs = ['{}']\n", machine.path("tools").display());
    fs::write(machine.path("config.toml"), config).unwrap();
    machine.tool("journalctl", JOURNALCTL);
    let journal = machine.path("journal");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let entry = |number: u64, age: u64, call: &str| {
        let entry = format!("at-{number} {} call={call} outcome=ok\n", now - age);
        let mut file = fs::File::options()
            .append(true)
            .create(true)
            .open(&journal)
            .unwrap();
        std::io::Write::write_all(&mut file, entry.as_bytes()).unwrap();
    };
    let follow = |name: &str, args: &[&str]| {
        let printed = machine.path(name);
        let mut following = machine.under(&[], &[&["log", "-f"], args].concat());
        following.stdout(fs::File::create(&printed).unwrap());
        let seen = move || fs::read_to_string(&printed).unwrap();
        (following.spawn().unwrap(), seen)
    };
    entry(1, 7200, "init");
    let (mut all, seen_by_all) = follow("all", &[]);
    let (mut late, seen_by_late) = follow("late", &["--since", "1h"]);
    let (mut json, seen_as_json) = follow("json", &["--json"]);
    eventually("the first call", || seen_by_all().contains(" init "));
    eventually("the titles", || seen_by_late().contains("TIME"));
    for (number, call) in [(2, "mount"), (3, "unmount")] {
        entry(number, 0, call);
        let call = format!(" {call} ");
        eventually(&call, || {
            let number = seen_as_json().lines().count();
            let all_of_json = number == if call == " mount " { 2 } else { 3 };
            seen_by_all().contains(&call) && seen_by_late().contains(&call) && all_of_json
        });
    }
    for following in [&mut all, &mut late, &mut json] {
        let pid = nix::unistd::Pid::from_raw(following.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        assert!(following.wait().unwrap().success());
    }
    assert_eq!(seen_by_all().lines().count(), 4, "{}", seen_by_all());
    let seen = seen_as_json();
    let calls = seen.lines().map(|line| serde_json::from_str(line).unwrap());
    let calls: Vec<String> = calls
        .map(|call: serde_json::Value| call["call"].to_string())
        .collect();
    assert_eq!(calls, [r#""init""#, r#""mount""#, r#""unmount""#]);
    assert_eq!(seen_by_late().lines().count(), 3, "{}", seen_by_late());
}
