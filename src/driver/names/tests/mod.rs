pub mod hostile;
mod properties;

use super::*;

#[test]
fn takes_what_lvm_takes_and_nothing_else() {
    let (longest, longer) = ("a".repeat(127), "a".repeat(128));
    // Columns: the name, whether a group may have it, whether a volume may.
    let cases = [
        ("data", true, true),
        ("my-data.1_2+3", true, true),
        ("...", true, true),
        (".x", true, true),
        ("+x", true, true),
        ("lost+found", true, true),
        ("xsnapshot", true, true),
        ("a_vpool", true, true),
        ("pvmove", true, false),
        ("pvmove0", true, false),
        ("snapshot", true, false),
        ("snapshots", true, false),
        ("a_mlog", true, false),
        ("a_cvol0", true, false),
        ("_tdata", true, false),
        ("a_imeta_0", true, false),
        (longest.as_str(), true, true),
        (longer.as_str(), false, false),
        ("", false, false),
        (".", false, false),
        ("..", false, false),
        ("-x", false, false),
        ("--help", false, false),
        ("a b", false, false),
        ("a/b", false, false),
        ("../x", false, false),
        ("a:b", false, false),
        ("@tag", false, false),
        ("a\n", false, false),
        ("a\0", false, false),
        ("ä", false, false),
        ("[x]", false, false),
    ];
    for (name, group, volume) in cases {
        assert_eq!(VgName::parse(name).is_ok(), group, "group {name:?}");
        assert_eq!(LvName::parse(name).is_ok(), volume, "volume {name:?}");
    }
}

#[test]
fn an_error_says_what_is_allowed() {
    let rule = "LVM allows 1 to 127 of a-z A-Z 0-9 + _ . and -, no hyphen at the beginning, and neither . nor ..";
    let reserved = "LVM keeps names with \"_mlog\" for itself";
    for (name, why) in [
        ("", rule),
        ("-f", rule),
        ("a b", rule),
        ("a_mlog", reserved),
    ] {
        let want = format!("{name:?} is not a name for a logical volume: {why}");
        assert_eq!(LvName::parse(name).unwrap_err().to_string(), want);
    }
}

#[test]
fn hyphens_are_doubled_both_ways() {
    let cases = [
        ("vg/data", "vg-data"),
        ("my-vg/data-1", "my--vg-data--1"),
        ("a-/b", "a---b"),
        ("a/b-", "a-b--"),
        ("a--b/c", "a----b-c"),
        ("a.b/c_d+e", "a.b-c_d+e"),
    ];
    for (name, dm_name) in cases {
        let id = LvId::parse(name).unwrap();
        assert_eq!(id.to_string(), name);
        assert_eq!(id.dm_name(), dm_name);
        assert_eq!(
            id.device().to_str().unwrap(),
            format!("/dev/mapper/{dm_name}")
        );
        assert_eq!(LvId::from_dm_name(dm_name), Some(id));
    }
    for none in [
        "",
        "vg",
        "vg-",
        "-lv",
        "--",
        "---",
        "vg-lv-real",
        "vg-lv_tdata",
        "vg-a/b",
        "control",
    ] {
        assert_eq!(LvId::from_dm_name(none), None, "{none:?}");
    }
}

#[test]
fn a_device_says_which_volume_it_is_if_its_path_does() {
    let cases = [
        ("/dev/mapper/my--vg-data", Some("my-vg/data")),
        ("/dev/my-vg/data", Some("my-vg/data")),
        ("/dev/dm-3", None),
        ("/dev/mapper/control", None),
        ("/dev/mapper/a/b", None),
        ("/dev/disk/by-id/x", None),
        ("/dev/../etc/passwd", None),
        ("/dev//x", None),
        ("my-vg/data", None),
        ("", None),
    ];
    for (path, want) in cases {
        let id = LvId::from_device(path).map(|id| id.to_string());
        assert_eq!(id.as_deref(), want, "{path}");
    }
}

#[test]
fn a_host_is_known_by_its_short_and_its_full_name() {
    let cases = [
        ("node1", "node1", true),
        ("Node1", "nODE1", true),
        ("node1", "node1.example.com", true),
        ("node1.example.com", "node1", true),
        ("node1.example.com.", "node1.example.com", true),
        ("node1.a", "node1.b", false),
        ("node1.a", "node1.a", true),
        ("node1", "node10", false),
        ("node10.a", "node1", false),
        ("10.0.0.1", "10.0.0.1", true),
        ("10.0.0.1", "10", false),
        ("", "", false),
        ("", "node1", false),
        ("", ".node1", false),
        (".", ".", false),
    ];
    for (node, host, same) in cases {
        assert_eq!(same_host(node, host), same, "{node:?} {host:?}");
    }
}

#[test]
fn both_forms_are_one_uuid() {
    let shown = "xtUTfc-ic3C-0AzY-Yrmh-qYaR-Eh8t-XmOJUh";
    let uuid = LvUuid::of(shown);
    assert_eq!(uuid.to_string(), shown);
    assert_eq!(LvUuid::of(uuid.plain()), uuid);
}
