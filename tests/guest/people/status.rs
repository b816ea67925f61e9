//! The output of `status` and `log`.

use std::fs;

use crate::prelude::*;
use crate::signatures::put;

/// A node that logs into a file of its own.
fn logging(name: &str, lines: &str) -> Node {
    let file = format!("/run/{name}.log");
    let _ = fs::remove_file(&file);
    Node::with_config(Mode::MountOnly, &format!("log = '{file}'\n{lines}"))
}

/// Has kubelet's directory of logs for a pod, which tells its name.
fn named_pod(name: &str, uid: &str) {
    fs::create_dir_all(format!("/var/log/pods/shop_{name}_{uid}")).unwrap();
}

/// The row of a list that begins with this word.
fn row<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let rows = list.lines().map(|line| line.split("  ").map(str::trim));
    let mut rows = rows.map(|row| row.filter(|cell| !cell.is_empty()).collect::<Vec<_>>());
    rows.find(|row| row.first() == Some(&name))
        .unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[test]
fn the_list_tells_who_uses_each_volume_and_how_full_it_is() {
    let group = Group::new("listed");
    group.pool();
    for lv in ["one", "two", "raw"] {
        group.linear(lv, "32m");
    }
    let thin = group.thin("thin", "1g");
    group.linear("off", "32m");
    group.lv("lvchange", &["-an"], "off");
    let tools = Tools::new().counting("lvs").counting("vgs");
    let node = logging("listed", &tools.config());
    named_pod("web-0", "uid-1");
    for (pod, lv) in [("uid-1", "one"), ("uid-1", "two"), ("uid-2", "two")] {
        node.up(pod, &Volume::new(&group, lv));
    }
    node.up("uid-2", &thin);
    put("/dev/listed/raw", 0, b"raw");
    let runs = || ["lvs", "vgs"].map(|tool| tools.runs(tool).len());
    let before = runs();
    let (list, code) = node.says(&["status", "listed"]);
    assert_eq!(code, 0, "{list}");
    let [lvs, vgs] = before;
    let once = [lvs + 1, vgs + 1];
    assert_eq!(runs(), once, "one question for all volumes");
    let head = [
        "VOLUME",
        "HEALTH",
        "NEXT MOUNT",
        "USE%",
        "FS",
        "SIZE",
        "USED BY",
    ];
    assert_eq!(row(&list, "VOLUME"), head);
    let of_group = row(&list, "listed");
    let picked = |row: &[&str]| [2, 4, 6].map(|n| row[n].to_owned());
    assert_eq!(picked(&of_group), ["-", "group", "5 volumes"], "{list}");
    assert!(
        of_group[1].ends_with(" free") && of_group[3].ends_with(" % allotted"),
        "{list}"
    );
    let pool = row(&list, "listed/pool");
    assert_eq!(picked(&pool), ["-", "pool", "1 volume"], "{list}");
    assert!(
        pool[3].ends_with(" % filled") && pool[1].contains("ok, metadata "),
        "{list}"
    );
    for (lv, cells) in [
        ("one", ["bind", "ext4", "shop/web-0"]),
        ("two", ["bind", "ext4", "2 pods"]),
        ("thin", ["bind", "ext4", "uid-2"]),
        ("off", ["activate", "-", "-"]),
        ("raw", ["signs-of-data", "-", "-"]),
    ] {
        let row = row(&list, &group.path(lv));
        assert!(picked(&row) == cells && row[1] == "ok", "{lv}: {list}");
    }
    assert!(row(&list, "listed/one")[3].ends_with(" % filled"), "{list}");
    let (two, _) = node.says(&["status", "listed/one", "listed/raw"]);
    assert!(!two.contains(" free"), "the group was not asked for: {two}");
    run("dmsetup", &["suspend", "listed-one"]);
    let (list, _) = node.says(&["status", "listed"]);
    run("dmsetup", &["resume", "listed-one"]);
    assert_eq!(row(&list, "listed/one")[1], "suspended", "{list}");
    let (json, _) = node.says(&["status", "--json", "listed"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["groups"][0]["group"], "listed");
    assert_eq!(report["volumes"].as_array().unwrap().len(), 6);
}

#[test]
fn check_asks_e2fsck_as_the_mount_does() {
    let (group, volume) = Group::with_data("asked");
    let node = logging("asked", "");
    node.up("pod", &volume);
    node.down("pod", &volume);
    let says = |verdict: &str| {
        let (json, code) = node.says(&["check", "--json", "asked/data"]);
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["volumes"][0]["verdict"], verdict, "{json}");
        assert_eq!(code == 0, verdict == "mount", "{json}");
    };
    says("mount");
    run(
        "debugfs",
        &["-w", "-R", "set_super_value state 2", &volume.device()],
    );
    says("mount"); // Nothing is wrong with it.
    run("debugfs", &["-w", "-R", "clri <2>", &volume.device()]);
    says("repair");
    node.prints(
        &["check", "nosuch", "asked/data"],
        "repair: e2fsck finds errors",
        1,
    );
    node.prints(
        &["check", "nosuch", "asked/data"],
        "\"nosuch\" is not on this node",
        1,
    );
    assert_eq!(node.mount("pod", &volume).status, "Failure");
    drop(group);
}

#[test]
fn a_suspended_volume_is_for_no_second_pod() {
    let (_group, volume) = Group::with_data("waiting");
    let node = logging("waiting", "");
    node.up("one", &volume);
    run("dmsetup", &["suspend", "waiting-data"]);
    let resumed = Finally("dmsetup resume waiting-data".to_owned());
    node.refuses_mount(&volume, &["is suspended", "`dmsetup resume waiting-data`"]);
    node.prints(&["check", "waiting/data"], "REFUSED", 1);
    drop(resumed);
    node.up("two", &volume);
    // A volume that a killed lvextend left suspended is resumed.
    let left =
        "dmsetup table waiting-data | dmsetup load waiting-data; dmsetup suspend waiting-data";
    run("sh", &["-c", left]);
    node.up("three", &volume);
}

#[test]
fn one_volume_is_a_story_whatever_it_is_called() {
    let (group, volume) = Group::with_data("told-of");
    let node = logging("told-of", "");
    named_pod("db-0", "uid-db");
    let dir = node.up("uid-db", &volume);
    let kernel_name = fs::canonicalize(volume.device()).unwrap();
    let kernel_name = kernel_name.file_name().unwrap().to_str().unwrap();
    let names = [
        "told-of/data",
        "data",
        "/dev/told-of/data",
        &format!("/dev/{kernel_name}"),
        text(&dir),
        "uid-db",
        "shop/db-0",
        &volume.name,
    ];
    for name in names {
        let (story, code) = node.says(&["status", name]);
        let words = ["volume told-of/data: 32 MiB", "pod shop/db-0", "└─ ext4: "];
        for words in words {
            assert!(
                story.contains(words) && code == 0,
                "{name}: {words}: {story}"
            );
        }
        for words in ["disk loop", "group told-of: ", "Next mount:", "Last calls"] {
            assert!(story.contains(words), "{name}: {words}: {story}");
        }
        assert!(story.contains("bind from "), "{name}: {story}");
        let (checked, code) = node.says(&["check", name]);
        assert!(
            checked.starts_with("told-of/data\n") && code == 0,
            "{name}: {checked}"
        );
    }
    for (name, words) in [
        ("told-of/dato", "there is no logical volume told-of/dato"),
        ("nope/data", "no volume group nope, but these: told-of"),
        ("told_of", "did you mean told-of?"),
        ("/", "not a logical volume"),
    ] {
        node.prints(&["status", name], words, 1);
    }
    drop(group);
}

#[test]
fn the_log_is_read_in_columns_and_a_failed_call_with_its_reason() {
    let (_group, volume) = Group::with_data("logged");
    let node = logging("logged", "");
    node.up("one", &volume);
    node.refuses_mount(&volume.clone().fs("xfs"), &["holds ext4, not xfs"]);
    node.down("one", &volume);
    let (log, code) = node.says(&["log", "logged/data"]);
    let calls: Vec<&str> = log.lines().filter(|line| line.starts_with("20")).collect();
    let [mount, failed, unmount] = calls.as_slice() else {
        panic!("{log}")
    };
    assert!(
        mount.contains(" mount ") && mount.contains(" default/one ") && code == 0,
        "{log}"
    );
    assert!(
        failed.ends_with("failed") && log.contains("    logged/data holds ext4"),
        "{log}"
    );
    assert!(
        unmount.contains(" unmount ") && unmount.ends_with("ok"),
        "{log}"
    );
    let (failed, _) = node.says(&["log", "--failed", "--since", "1h", "default/refused"]);
    assert_eq!(
        failed.lines().filter(|line| line.starts_with("20")).count(),
        1,
        "{failed}"
    );
    for name in ["logged", "data", &volume.device()] {
        node.prints(&["log", name], " logged/data ", 0);
    }
    node.prints(
        &["log", "other/volume"],
        "no such call about other/volume",
        1,
    );
}
