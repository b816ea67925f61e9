//! The form of the output of `status`. The facts about real volumes in it are tested in `tests/guest/`.

use std::fs;

use serde_json::{Value, json};

use crate::Machine;
use crate::people::{self, prints, says};
use crate::support::machine::lvs_row;

/// A group `vg` with a thin pool `data`, which is filled to `percent`.
fn with_pool(percent: &str) -> Machine {
    with(&[
        (r#"lv_layout":"linear"#, r#"lv_layout":"thin,pool"#),
        (
            r#""data_percent":""#,
            &format!(r#""data_percent":"{percent}"#),
        ),
    ])
}

/// A group `vg` with a volume `data`. In LVM's report of the volume, the first text of each pair is replaced by the
/// second.
fn with(fields: &[(&str, &str)]) -> Machine {
    named("vg", "data", fields)
}

fn named(vg: &str, lv: &str, fields: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    let lvs = fields
        .iter()
        .fold(lvs_row(), |row, (is, becomes)| row.replace(is, becomes));
    machine.tool("lvs", &format!("{lvs} {vg} {lv}"));
    let group = r#""vg_size":"67108864","vg_free":"4194304","vg_extent_size":"4194304","vg_mda_free":"9","vg_mda_size":"9","vg_missing_pv_count":"0","vg_exported":"","vg_lock_type":"","vg_uuid":"a","pv_name":"/dev/sdb","pv_free":"4194304","pv_size":"67108864","pe_start":"0","dev_size":"67108864","pv_allocatable":"allocatable","pv_missing":"""#;
    let vgs = format!(r#"echo '{{"report":[{{"vg":[{{"vg_name":"{vg}",{group}}}]}}]}}'"#);
    machine.tool("vgs", &vgs);
    machine.tool("pvs", r#"echo '{"report":[{"pv":[]}]}'"#);
    machine
}

/// The screen of a terminal with `columns` columns, without colours.
fn on_a_terminal(machine: &Machine, columns: usize, line: &str) -> String {
    people::on_a_terminal(machine, columns, line, "NO_COLOR=1").0
}

#[test]
fn a_list_is_as_wide_as_the_terminal_and_whole_through_a_pipe() {
    let machine = with_pool("97.5");
    let (piped, _) = says(&machine, &["status"]);
    let longest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest(&piped) > 60, "{piped}");
    let narrow = on_a_terminal(&machine, 40, "status");
    let ends = narrow.lines().filter(|line| line.ends_with('…')).count();
    assert_eq!((longest(&narrow), ends), (40, 3), "{narrow}");
    assert!(narrow.contains("  full  "), "{narrow}");
    // A terminal has bars, too.
    let words = |text: &str| {
        let all = text
            .split_whitespace()
            .filter(|word| !word.contains(['█', '░']));
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let wide = on_a_terminal(&machine, 200, "status");
    assert_eq!(words(&wide), words(&piped));
    for bar in ["97 % filled    pool", "93 % allotted  group"] {
        assert!(wide.contains(&format!("  █████ {bar}")), "{wide}");
    }
    let is_plain = piped.contains("  97 % filled    pool") && !piped.contains('█');
    assert!(is_plain, "{piped}");
}

#[test]
fn a_snapshot_says_of_what_it_is_one_and_how_full_it_is() {
    let machine = with(&[
        (
            r#"lv_role":"public"#,
            r#"lv_role":"public,snapshot,thicksnapshot"#,
        ),
        (r#""origin":""#, r#""origin":"shop-db-data"#),
        (r#""data_percent":""#, r#""data_percent":"86.5"#),
    ]);
    let list = on_a_terminal(&machine, 80, "status");
    let words = "  nearly full, snapshot of vg/shop-db-data  activate    ████░ 86 % ";
    assert!(list.contains(words), "{list}");
    prints(
        &machine,
        &["status", "vg/data"],
        ", snapshot of vg/shop-db-data, data 86.5 % filled, nearly full",
        0,
    );
    prints(
        &machine,
        &["status", "--json"],
        r#""snapshot_of": "vg/shop-db-data""#,
        0,
    );
}

#[test]
fn a_long_name_has_a_line_of_its_own_and_cuts_no_health() {
    let letters = |number| "v".repeat(number);
    // LVM allows 124 letters for both names together.
    for (vg, lv, apart) in [
        (4, 30, 0),
        (4, 60, 1),
        (4, 120, 1),
        (120, 4, 2),
        (62, 62, 2),
    ] {
        let (vg, lv, origin) = (letters(vg), letters(lv), letters(120));
        let fields = [
            (
                r#"lv_role":"public"#,
                r#"lv_role":"public,snapshot,thicksnapshot"#,
            ),
            (r#""data_percent":""#, r#""data_percent":"97.5"#),
            (r#""origin":""#, &format!(r#""origin":"{origin}"#)),
        ];
        let machine = named(&vg, &lv, &fields);
        for flag in ["", "-x"] {
            let screen = on_a_terminal(&machine, 80, &format!("status {flag}"));
            let lines: Vec<&str> = screen.lines().collect();
            let mut rows = lines.iter().filter(|line| line.chars().count() <= 80);
            assert!(rows.next().unwrap().contains("  HEALTH  "), "{screen}");
            let health = "  nearly full, snapshot of v";
            assert!(rows.any(|line| line.contains(health)), "{screen}");
            assert!(screen.contains(&format!("{vg}/{lv}")), "{screen}");
            assert!(!flag.is_empty() || lines.len() == 3 + apart, "{screen}");
        }
    }
}

#[test]
fn a_list_of_what_is_unwell_has_no_well_group_and_lines_that_tools_can_sort() {
    let machine = with_pool("97.5");
    // A group is well as long as its disks are there.
    let (json, code) = says(&machine, &["status", "-x", "--json"]);
    assert!(json.contains(r#""groups": []"#) && code == 1, "{json}");
    let (rows, code) = says(&machine, &["status", "-x"]);
    assert!(rows.contains("  full  ") && code == 1, "{rows}");
    assert_eq!(rows.lines().count(), 2, "{rows}");
    prints(&with_pool("50.0"), &["status", "-x"], "all is well\n", 0);
}

#[test]
fn a_pod_is_found_by_its_calls_and_a_word_for_two_things_says_which_was_taken() {
    let machine = with(&[]);
    let entry = |pod, name, volume| {
        let call = json!({"time": "2026-11-21T10:00:00Z", "call": "mount", "pod": pod, "name": name, "volume": volume,
            "outcome": "failed", "message": "no"});
        format!("{call}\n")
    };
    let log = [
        // A mistake in the manifest, which was corrected.
        entry("shop/web-0", "data", "vg/typo"),
        entry("shop/web-0", "data", "vg/data"),
        entry("vg/web-1", "data", "vg/data"),
        entry("vg/data", "disk", "vg/other"),
        entry("shop/db-0", "pv-1", "vg/data"),
        entry("shop/db-0", "pv-2", "vg/gone"),
    ];
    fs::write(machine.path("log"), log.concat()).unwrap();
    for (word, words, code) in [
        ("shop/web-0", "volume vg/data: ", 0),
        ("pv-1", "volume vg/data: ", 0),
        ("vg/web-1", "volume vg/data: ", 0),
        (
            "vg/web-1",
            "vg/web-1 was taken for the pod; the volume group vg has no volume web-1\n",
            0,
        ),
        ("vg/data", "volume vg/data: ", 0),
        (
            "vg/data",
            "vg/data was taken for the volume; the pod of this name has vg/other\n",
            0,
        ),
        ("shop/db-0", "there is no logical volume vg/gone", 1),
        ("shop/none", "no volume group shop, but these: vg", 1),
        (
            "shop/none",
            "If shop/none is a pod: no pod of this name has",
            1,
        ),
    ] {
        prints(&machine, &["status", word], words, code);
    }
    // The list has the other volume of the pod.
    prints(&machine, &["status", "shop/db-0"], "vg/data ", 1);
    for (word, words) in [
        ("shop/web-0", "vg/data\n"),
        ("vg/web-1", "vg/web-1 was taken for the pod"),
        (
            "shop/none",
            "shop/none was taken for a volume: no pod of this name has",
        ),
    ] {
        prints(&machine, &["check", word], words, 1);
    }
}

/// A program tells a failure from an answer by standard output alone: the exit code of both may be 1.
#[test]
fn json_is_whole_or_the_command_failed_and_printed_none() {
    let machine = with_pool("97.5");
    fs::write(machine.path("bad"), "attach = 1\n").unwrap();
    let config = |file| format!("check --config {}", machine.path(file).display());
    let [good, bad, missing] = ["config.toml", "bad", "missing"].map(config);
    for (line, code, fails) in [
        ("status nosuch", 1, true),
        ("status vg nosuch", 1, false),
        ("status -x", 1, false),
        ("status --frobnicate", 2, true),
        ("check nosuch", 1, true),
        ("check vg nosuch", 1, false),
        ("check vg/data", 1, false),
        ("check --idle vg", 2, true),
        ("check --idle", 2, true),
        ("check vg/a vg/b -o size=1g", 2, true),
        ("check vg/a -o size=much", 2, true),
        ("check --idle vg/data", 1, false),
        (&good, 0, false),
        (&bad, 1, false),
        (&missing, 1, true),
        ("doctor -q", 1, false),
        ("log", 0, false),
        ("log typo", 1, false),
    ] {
        is_whole_or_empty(&machine, line, code, fails);
    }
    fs::create_dir(machine.path("log")).unwrap();
    is_whole_or_empty(&machine, "log", 1, true);
    machine.tool("lvs", "echo no >&2; exit 5");
    is_whole_or_empty(&machine, "status", 1, true);
}

#[track_caller]
fn is_whole_or_empty(machine: &Machine, line: &str, code: i32, fails: bool) {
    let args = format!("{line} --json");
    let args: Vec<&str> = args.split(' ').collect();
    let output = machine.command(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
    let json: Result<Value, _> = serde_json::from_slice(&output.stdout);
    let is_as_promised = if fails {
        output.stdout.is_empty() && !output.stderr.is_empty()
    } else {
        json.is_ok()
    };
    assert!(is_as_promised, "{line}: {output:?}");
}
