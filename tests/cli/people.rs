//! The interface for people: help, usage errors, colours, completions, man pages, call-outs by hand.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::driver::driver;
use crate::support::machine::lvs_row;
use crate::support::{host_name, needs, schema};
use crate::{JSON, Machine};

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs the driver. Returns standard output and standard error as one text, and the exit code.
pub fn says(machine: &Machine, args: &[&str]) -> (String, i32) {
    let Output {
        stdout,
        stderr,
        status,
    } = machine.command(args).output().unwrap();
    schema::holds(args, &text(&stdout));
    (text(&stdout) + &text(&stderr), status.code().unwrap())
}

/// Checks that these words are printed, and that the exit code is `code`.
pub fn prints(machine: &Machine, args: &[&str], words: &str, code: i32) {
    let (said, is) = says(machine, args);
    assert!(said.contains(words) && is == code, "{args:?}: {is} {said}");
}

/// Runs a command line on a terminal with `columns` columns, with these environment variables. Returns the screen and
/// the exit code.
pub fn on_a_terminal(
    machine: &Machine,
    columns: usize,
    line: &str,
    variables: &str,
) -> (String, i32) {
    // The person who runs the tests may have set something about colours.
    let env = "env -u CI -u NO_COLOR -u CLICOLOR -u CLICOLOR_FORCE TERM=xterm";
    let size = format!("stty rows 24 cols {columns}");
    // The usage has the path as it was typed, and that of a clone may be long.
    let dir = driver().parent().unwrap().display();
    let line = format!("{size}; cd \"{dir}\"; {env} {variables} ./lvm {line}");
    let script = format!("exec script -qec '{line}' /dev/null");
    let mut command = machine.under(&["sh".as_ref(), "-c".as_ref(), script.as_ref()], &[""]);
    let output = command.output().unwrap();
    let screen = text(&output.stdout).replace('\r', "");
    (screen, output.status.code().unwrap())
}

fn says_on_a_terminal(machine: &Machine, line: &str, variables: &str) -> (String, i32) {
    on_a_terminal(machine, 200, line, variables)
}

/// A command line, and words of its help.
const HELP: &str = "\
--help | mountdevice | doctor | Exit codes: | FLEXVOLUME_LVM_CONFIG | Examples:
-h | Commands for people: | status | help call-outs
help call-outs | mountdevice <directory> | -o volumegroup=VG
status --help | --unwell | status [OPTIONS] [NAME]...
mount --help | mount <directory> <options>
init -h | --verbose tells each step
help mount | mount <directory> <options>
help status | --unwell";

#[test]
fn help_and_version_are_text_for_people() {
    let machine = Machine::new();
    let version = concat!("--version | flexvolume-lvm  | ", env!("CARGO_PKG_VERSION"));
    for row in HELP.lines().chain([version]) {
        let (line, words) = row.split_once(" | ").unwrap();
        let (said, code) = says(&machine, &line.split(' ').collect::<Vec<_>>());
        for words in words.split(" | ") {
            assert!(said.contains(words) && code == 0, "{line}: {words}: {said}");
        }
        assert!(!said.contains('\x1b'), "{line}: {said:?}");
    }
    let (said, code) = says_on_a_terminal(&machine, "mount --help", "");
    for words in [
        "mount <directory> <options>",
        "-o volumegroup=VG",
        "--verbose",
    ] {
        assert!(said.contains(words) && code == 0, "{words}: {said}");
    }
    let (said, _) = says_on_a_terminal(&machine, "--help", "COLUMNS=80 NO_COLOR=1");
    let is_narrow = |said: &str| {
        said.lines()
            .all(|line| line.trim_end().chars().count() <= 80)
    };
    assert!(is_narrow(&said), "{said}");
    let link = machine.path("flexvolume-lvm");
    symlink(driver(), &link).unwrap();
    for args in [
        &[][..],
        &["help", "call-outs"],
        &["expandfs", "--help"],
        &["mount", "--help"],
    ] {
        let output = std::process::Command::new(&link)
            .args(args)
            .output()
            .unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(is_narrow(&said) && said.lines().count() < 24, "{said}");
        let usage = format!("Usage: {} <COMMAND>", link.display());
        assert!(!args.is_empty() || said.contains(&usage), "{said}");
    }
    prints(&machine, &["status", "--frobnicate"], "--frobnicate", 2);
    for command in ["adopt", "allow-format"] {
        prints(&machine, &[command, "foo"], "it must be VG/LV", 2);
    }
    prints(
        &machine,
        &["check", "--fs", "ext5"],
        "it knows ext2, ext3",
        2,
    );
}

#[test]
fn a_mistyped_word_is_an_error_for_people_and_an_answer_for_kubelet() {
    let machine = Machine::new();
    for unknown in ["frobnicate", "getvolumename", "waitfordetach", "unmnt"] {
        assert_eq!(machine.call(&[unknown]).status, "Not supported");
    }
    // No call-out is nearly called so, and kubelet calls no link for people: through a pipe these are
    // mistakes, too.
    prints(&machine, &["stauts"], "did you mean `status`?", 2);
    let link = machine.path("flexvolume-lvm");
    symlink(driver(), &link).unwrap();
    let script = format!("exec {} grow vg/lv 1g", link.display());
    let mut command = machine.under(&["sh".as_ref(), "-c".as_ref(), script.as_ref()], &[""]);
    let output = command.output();
    let output = output.unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(2), String::new())
    );
    let said = text(&output.stderr);
    let words = "\"grow\" is neither a command nor a call-out";
    assert!(said.contains(words), "{said}");
    for (line, words) in [
        ("statsu", "did you mean `status`?"),
        ("unmnt", "did you mean `unmount`?"),
        ("frobnicate", "see `"),
        ("", "Usage:"),
    ] {
        let (said, code) = says_on_a_terminal(&machine, line, "");
        assert!(said.contains(words) && code == 2, "{line}: {code} {said}");
        assert!(!said.contains("{\"status\""), "{line}: {said}");
    }
    // A call-out is one on a terminal, too.
    let (said, code) = says_on_a_terminal(&machine, "unmount /nonexistent/x", "");
    assert_eq!((said.trim(), code), ("{\"status\":\"Success\"}", 0));
}

#[test]
fn colours_are_for_terminals_and_for_who_wants_them() {
    let machine = Machine::new();
    for (variable, coloured) in [("", true), ("NO_COLOR=1", false), ("TERM=dumb", false)] {
        let (said, _) = says_on_a_terminal(&machine, "--help", variable);
        assert_eq!(said.contains('\x1b'), coloured, "{variable}: {said:?}");
    }
}

#[test]
fn options_by_hand_are_kubelets_and_each_step_can_be_seen() {
    let machine = Machine::new();
    let host = host_name();
    let by_hand = "attach -o volumegroup=nosuch-vg -o volumeID=data-1 elsewhere";
    let reply = machine.call(&by_hand.split(' ').collect::<Vec<_>>());
    assert_eq!(reply, machine.call(&["attach", JSON, "elsewhere"]));
    let file = machine.path("options");
    fs::write(&file, format!("{JSON}\n")).unwrap();
    let file = format!("@{}", file.display());
    assert_eq!(machine.call(&["attach", &file, "elsewhere"]), reply);
    let piped = machine
        .command(&["attach", "-", "elsewhere"])
        .write_stdin(JSON)
        .output();
    assert!(text(&piped.unwrap().stdout).contains("nosuch--vg-data--1"));
    machine.refuses(&["attach", "-o", "volumegroup"], &["-o takes KEY=VALUE"]);
    prints(&machine, &["check", "-o", "size"], "-o takes KEY=VALUE", 2);
    let two = ["check", "vg/a", "vg/b", "-o", "size=1g"];
    prints(&machine, &two, "name one volume, as VG/LV", 2);
    machine.tool("lvs", "echo no >&2; exit 5");
    machine.tool("vgs", "echo no >&2; exit 5");
    let asked = ["isattached", JSON, &host, "--verbose"];
    let quiet = machine.command(&asked[..3]).output().unwrap();
    assert_eq!(text(&quiet.stderr), "");
    let loud = machine.command(&asked).output().unwrap();
    assert_eq!(loud.stdout, quiet.stdout);
    let steps = text(&loud.stderr);
    assert!(steps.contains("+ lvs -- nosuch-vg/data-1\n  "), "{steps}");
    assert!(steps.contains(" ms, failed: `lvs"), "{steps}");
}

#[test]
fn metrics_and_alert_rules_are_what_prometheus_reads() {
    let machine = Machine::new();
    let lvs = lvs_row().replace(r#""lv_layout":"linear""#, r#""lv_layout":"thin,pool""#);
    let lvs = lvs.replace(r#""data_percent":"""#, r#""data_percent":"97.5""#);
    machine.tool("lvs", &format!("{lvs} vg data"));
    let group = r#"{"vg_uuid":"a","vg_name":"vg","vg_size":"64","vg_free":"8","vg_extent_size":"4194304","vg_mda_free":"9","vg_mda_size":"9","vg_missing_pv_count":"0","vg_exported":"","vg_lock_type":"","pv_name":"/dev/sdb","pv_free":"8","pv_size":"64","pe_start":"0","dev_size":"64","pv_allocatable":"allocatable","pv_missing":""}"#;
    machine.tool(
        "vgs",
        // Two groups of one name, of which Prometheus would read nothing.
        &format!(
            "echo '{{\"report\":[{{\"vg\":[{group},{}]}}]}}'",
            group.replace("\"a\"", "\"b\"")
        ),
    );
    machine.call(&["unmount", "/nonexistent/x"]);
    machine.call(&["mount", "/nonexistent/x", "{}"]);
    let (metrics, code) = says(&machine, &["metrics"]);
    assert_eq!(code, 0, "{metrics}");
    for sample in [
        r#"flexvolume_lvm_pool_data_ratio{vg="vg",lv="data"} 0.975"#,
        r#"flexvolume_lvm_group_free_bytes{vg="vg"} 8"#,
        r#"flexvolume_lvm_volume_healthy{vg="vg",lv="data"} 0"#,
        r#"flexvolume_lvm_findings{check="tools",severity="failed"} "#,
        r#"flexvolume_lvm_findings{check="duplicate-groups",severity="failed"} 2"#,
        r#"flexvolume_lvm_calls_last_hour{call="mount",outcome="failed"} 1"#,
        r#"flexvolume_lvm_calls_last_hour{call="unmount",outcome="ok"} 1"#,
    ] {
        assert!(metrics.contains(sample), "{sample}: {metrics}");
    }
    assert_eq!(metrics.matches("group_free_bytes{").count(), 1);
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let dir = machine.path("");
    let (said, code) = says(&machine, &["metrics", "--textfile", dir.to_str().unwrap()]);
    assert_eq!((&*said, code), ("", 0));
    assert_eq!(
        fs::read_to_string(dir.join("flexvolume-lvm.prom")).unwrap(),
        metrics
    );
    // On a node whose config is broken, an alert has something to go by.
    let without = Machine::new();
    without.configure("attach = 1");
    let (findings, code) = says(&without, &["metrics"]);
    let sample = r#"flexvolume_lvm_findings{check="config",severity="failed"} 1"#;
    assert!(findings.contains(sample) && code == 0, "{findings}");
    // A parser that is not ours.
    needs!("prometheus", "promtool");
    let promtool = |args: &[&str]| {
        assert_cmd::Command::new("promtool")
            .args(args)
            .write_stdin(&*metrics)
            .output()
    };
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/monitoring/alerts.yaml"
    );
    // promtool does not check dashboards, but it checks their queries if they are written as rules.
    let dashboard = include_str!("../../examples/monitoring/dashboard.json");
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    assert!(dashboard["schemaVersion"].is_u64());
    assert_eq!(dashboard["templating"]["list"][0]["name"], "datasource");
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            queries.push(json!({"record": format!("q{}", queries.len()), "expr": target["expr"]}));
        }
    }
    let file = machine.path("queries");
    let group = json!({"groups": [{"name": "dashboard", "rules": queries}]});
    fs::write(&file, group.to_string()).unwrap();
    let alerts = machine.path("alerts.yaml");
    fs::write(&alerts, include_str!("alerts.yaml").replace("RULES", rules)).unwrap();
    for args in [
        ["check", "metrics"].as_slice(),
        &["test", "rules", alerts.to_str().unwrap()],
        &["check", "rules", rules],
        &["check", "rules", file.to_str().unwrap()],
    ] {
        if let Ok(checked) = promtool(args) {
            assert!(checked.status.success(), "{checked:?}");
        }
    }
}

#[test]
fn every_metric_of_the_rules_and_the_dashboard_is_one_that_is_made() {
    let page = include_str!("../../docs/reference.md");
    for file in ["alerts.yaml", "dashboard.json"] {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/monitoring/");
        let text = fs::read_to_string(format!("{path}{file}")).unwrap();
        let word = |c: char| !(c.is_ascii_lowercase() || c == '_');
        let names: Vec<&str> = text
            .split("flexvolume_lvm_")
            .skip(1)
            .map(|rest| rest.split(word).next().unwrap())
            .filter(|name| *name != "pool_")
            .collect();
        assert!(names.len() > 4, "{file}");
        for name in names {
            let row = format!("| `flexvolume_lvm_{name}` |");
            assert!(page.contains(&row), "{file}: {name}");
        }
    }
}
