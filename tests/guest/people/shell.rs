//! Commands for people beside the call-outs: a rehearsal, columns, the journal.

use crate::prelude::*;

#[test]
fn a_mount_is_rehearsed_before_there_is_a_volume() {
    let lines = "thin_pool_limit = 2
        [volume_group.planned]
        create = true
        max_size = '1g'
        reserve = '800m'";
    let node = Node::with_config(Mode::MountOnly, lines);
    let group = Group::new("planned");
    let data = group.linear("data", "32m");
    run("mkfs.ext4", &["-q", &data.device()]);
    group.pool();
    let thin = group.thin("thin", "1g");
    run(
        "dd",
        &[
            "if=/dev/urandom",
            &format!("of={}", thin.device()),
            "bs=1M",
            "count=24",
            "oflag=direct",
        ],
    );
    let lvs = || sh("lvs --noheadings -o lv_name,lv_tags planned");
    let before = lvs();
    let good = "create it with 64 MiB, make its filesystem and mount it";
    let named = [
        "check",
        "-o",
        "volumegroup=planned",
        "-o",
        "volumeID=new",
        "-o",
        "size=64m",
    ];
    node.prints(&named, good, 0);
    node.prints(&["check", "planned/new", "-o", "size=64m"], good, 0);
    node.prints(&["check", "planned/data", "-o", "size=1g"], "mount ext4", 0);
    // `check` refuses in the words of the mount.
    for (lv, pairs) in [
        ("new", &["size=2g"][..]),
        ("new", &["size=700m"]),
        ("new", &["size=64m", "readwrite=ro"]),
        ("new", &["size=64q"]),
        ("new", &[]),
        ("new", &["size=64m", "mountoptions=bind"]),
        ("new", &["sise=64m"]),
        ("data", &["fsType=xfs"]),
        ("pool", &[]),
    ] {
        let id = format!("planned/{lv}");
        let mut check = vec!["check", &id];
        let mut mount = vec!["mount", "/run/planned"];
        let volume = format!("volumeID={lv}");
        let own = ["volumegroup=planned", &volume];
        check.extend(own.iter().chain(pairs).flat_map(|pair| ["-o", pair]));
        mount.extend(own.iter().chain(pairs).flat_map(|pair| ["-o", pair]));
        let (said, code) = node.says(&check);
        let message = node.call(&mount).message;
        assert!(
            said.contains(&message) && !message.is_empty() && code == 1,
            "{pairs:?}: {said}: {message}"
        );
    }
    let foreign = ["check", "other/new", "-o", "size=64m"];
    node.prints(
        &foreign,
        "this node's config does not allow the volume group other",
        1,
    );
    let missing = [
        "check",
        "planned/new",
        "-o",
        "size=64m",
        "-o",
        "thinpool=nope",
    ];
    node.prints(&missing, "LVM does not show planned/nope, ", 1);
    let full = [
        "check",
        "planned/new",
        "-o",
        "size=64m",
        "-o",
        "thinpool=pool",
    ];
    node.prints(&full, "REFUSED: the data of the thin pool planned/pool", 1);
    let full = [
        &["mount", "/run/planned"][..],
        &["-o", "volumegroup=planned", "-o", "volumeID=new"],
        &full[2..],
    ]
    .concat();
    node.call(&full).is_failure(&["the thin pool planned/pool"]);
    assert_eq!(lvs(), before);
}

#[test]
fn status_shows_what_is_unwell() {
    let node = Node::with_config(Mode::MountOnly, "log = '/run/log-of-sorted'");
    let group = Group::new("sorted");
    let raw = group.linear("raw", "32m");
    group.linear("small", "16m");
    let unwell = ["status", "sorted", "-x"];
    node.prints(&unwell, "all is well\n", 0);
    let volume = Volume::new(&group, "small");
    node.up("pod", &volume);
    node.down("pod", &volume);
    crate::signatures::put(&raw.device(), 0, b"raw");
    // It is nobody's until a pod asks for it.
    node.prints(&unwell, "all is well\n", 0);
    for metric in ["next_mount_refused", "volume_healthy"] {
        let (metrics, _) = node.says(&["metrics"]);
        assert!(
            !metrics.contains(&format!("{metric}{{vg=\"sorted\",lv=\"raw\"")),
            "{metrics}"
        );
    }
    node.prints(
        &["check"],
        " 0 would be refused; not counted: 1 of no pod here",
        0,
    );
    assert_eq!(node.says(&["doctor", "-q"]), (String::new(), 0));
    node.refuses_mount(&raw, &["has data at byte"]);
    let (metrics, _) = node.says(&["metrics"]);
    let refused =
        r#"next_mount_refused{vg="sorted",lv="raw",verdict="refuse",reason="signs-of-data"} 1"#;
    assert!(metrics.contains(refused), "{metrics}");
    node.prints(&["check"], " 1 would be refused", 1);
    node.prints(
        &["doctor", "-q"],
        "the next mount is refused: sorted/raw",
        1,
    );
    let said = node.prints(&unwell, "  signs-of-data  ", 1);
    assert_eq!(said.lines().count(), 2, "{said}");
}

const JOURNAL: &str = r#""$0" mount /run/fields "$1" > /dev/null || true
"$0" unmount /nonexistent/x > /dev/null
until journalctl --quiet FLEXVOLUME_CALL=unmount | grep -q unmount; do sleep 0.1; done
for field in VOLUME=fields/data POD=shop/web-0 NAME=disk OUTCOME=failed; do
    journalctl --quiet --output=json "FLEXVOLUME_$field" _UID=0
done
"$0" log fields/data"#;

#[test]
fn the_journal_has_volume_and_pod_as_fields() {
    let node = Node::new(Mode::MountOnly);
    let options = r#"{"volumegroup":"fields","volumeID":"data","kubernetes.io/pod.namespace":"shop",
        "kubernetes.io/pod.name":"web-0","kubernetes.io/pvOrVolumeName":"disk"}"#;
    let exe = node.exe();
    let said = run(
        "unshare",
        &[
            "--mount",
            "bash",
            "-c",
            &format!("{JOURNALD}{JOURNAL}"),
            text(&exe),
            options,
        ],
    );
    let (entries, log): (Vec<&str>, Vec<&str>) =
        said.lines().partition(|line| line.starts_with('{'));
    assert_eq!(entries.len(), 4, "{said}");
    for entry in entries {
        let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
        let message = entry["MESSAGE"].as_str().unwrap();
        assert!(
            message.starts_with("call=mount volume=fields/data pod=shop/web-0 "),
            "{message}"
        );
        assert_eq!(
            (&entry["PRIORITY"], &entry["FLEXVOLUME_CALL"]),
            (&"3".into(), &"mount".into())
        );
    }
    assert!(
        log[1].contains(" mount  fields/data  shop/web-0 ") && log[1].ends_with("failed"),
        "{said}"
    );
}
