//! The output of `status`.

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
    let once = before.map(|runs| runs + 1);
    assert_eq!(runs(), once, "one question for all volumes");
    let head = row(&list, "VOLUME").join(" ");
    assert_eq!(head, "VOLUME HEALTH NEXT MOUNT USE% FS SIZE USED BY");
    let of_group = row(&list, "listed");
    let picked = |row: &[&str]| [2, 4, 6].map(|n| row[n].to_owned());
    assert_eq!(picked(&of_group), ["-", "group", "5 volumes"], "{list}");
    let is_whole = of_group[1].ends_with(" free") && of_group[3].ends_with(" % allotted");
    assert!(is_whole, "{list}");
    let pool = row(&list, "listed/pool");
    assert_eq!(picked(&pool), ["-", "pool", "1 volume"], "{list}");
    let is_whole = pool[3].ends_with(" % filled") && pool[1].contains("ok, metadata ");
    assert!(is_whole, "{list}");
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
    let resumed = suspended("listed-one");
    let (list, _) = node.says(&["status", "listed"]);
    drop(resumed);
    assert_eq!(row(&list, "listed/one")[1], "suspended", "{list}");
    let (report, _) = node.json(&["status", "listed"]);
    assert_eq!(report["groups"][0]["group"], "listed");
    assert_eq!(report["volumes"].as_array().unwrap().len(), 6);
}

#[test]
fn check_asks_e2fsck_as_the_mount_does() {
    let (group, volume) = Group::with_data("asked");
    let node = logging("asked", "");
    node.up("pod", &volume);
    node.down("pod", &volume);
    let says = |verdict: &str, is_well: bool| {
        let (report, code) = node.json(&["check", "asked/data"]);
        assert_eq!(report["volumes"][0]["verdict"], verdict, "{report}");
        assert_eq!(code == 0, is_well, "{report}");
    };
    says("mount", true);
    let debugfs = |change| run("debugfs", &["-w", "-R", change, &volume.device()]);
    debugfs("set_super_value state 2");
    // e2fsck finds nothing, but the kernel noted errors, as `status -x` shows, too.
    says("mount", false);
    node.prints(&["status", "-x", "asked"], "filesystem errors", 1);
    node.prints(&["check", "asked/data"], "unwell: the kernel met errors", 1);
    debugfs("clri <11>");
    says("repair", false);
    debugfs("clri <2>");
    let two = ["check", "nosuch", "asked/data"];
    // From 1.47.2 on e2fsck gives up without an answer.
    let command = format!("`e2fsck -n {}` lists them", volume.device());
    for words in [&*command, "\"nosuch\" is not on this node"] {
        node.prints(&two, words, 1);
    }
    assert_eq!(node.mount("pod", &volume).status, "Failure");
    drop(group);
}

#[test]
fn one_volume_is_a_story_whatever_it_is_called() {
    let (group, volume) = Group::with_data("told-of");
    let node = logging("told-of", "");
    named_pod("db-0", "uid-db");
    let dir = node.up("uid-db", &volume);
    let kernels = fs::canonicalize(volume.device()).unwrap();
    let names = "told-of/data data /dev/told-of/data uid-db shop/db-0";
    let others = [text(&kernels), text(&dir), &volume.name];
    for name in names.split(' ').chain(others) {
        let (story, code) = node.says(&["status", name]);
        for words in [
            "volume told-of/data: 32 MiB",
            "pod shop/db-0",
            "└─ ext4: ",
            "disk loop",
            "group told-of: ",
            "Next mount:",
            "Last calls",
            "bind from ",
        ] {
            let is_whole = story.contains(words) && code == 0;
            assert!(is_whole, "{name}: {words}: {story}");
        }
        let (checked, code) = node.says(&["check", name]);
        let is_its = checked.starts_with("told-of/data\n") && code == 0;
        assert!(is_its, "{name}: {checked}");
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

/// Such a pod has no mount, and no log of a container. The first command of docs/on-call.md names it.
#[test]
fn a_pod_whose_mount_is_refused_is_found_by_its_name() {
    const PAGE: &str = include_str!("../../../docs/on-call.md");
    let (group, volume) = Group::with_data("sought");
    let node = logging("sought", "");
    put(&volume.device(), 0, b"raw");
    let message = node.mount("web-0", &volume).message;
    assert!(message.contains("[signs-of-data]"), "{message}");
    let mut commands = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("flexvolume-lvm "));
    let first = commands.next().unwrap().split("  #").next().unwrap();
    let first = first.replace("shop/web-0", "default/web-0");
    let args: Vec<&str> = first.split_whitespace().collect();
    assert_eq!(args, ["status", "default/web-0"]);
    for words in [
        "volume sought/data: 32 MiB",
        "signs-of-data: ",
        "Last calls",
    ] {
        node.prints(&args, words, 0);
    }
    node.prints(&["check", "default/web-0"], "[signs-of-data]", 1);
    drop(group);
}
