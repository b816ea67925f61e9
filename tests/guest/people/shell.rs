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
    let thin = group.thin("thin", "1g").device();
    sh(&format!(
        "dd if=/dev/urandom of={thin} bs=1M count=24 oflag=direct"
    ));
    let lvs = || sh("lvs --noheadings -o lv_name,lv_tags planned");
    let before = lvs();
    let good = "create it with 64 MiB, make its filesystem and mount it";
    for (asked, words) in [
        ("-o volumegroup=planned -o volumeID=new -o size=64m", good),
        ("planned/new -o size=64m", good),
        ("planned/data -o size=1g", "mount ext4"),
    ] {
        let args = format!("check {asked}");
        node.prints(&args.split(' ').collect::<Vec<_>>(), words, 0);
    }
    let hint = "check planned/new -o size=10g` checks with one";
    node.prints(&["check", "planned/new"], hint, 1);
    // `check` refuses in the words of the mount.
    #[rustfmt::skip] // a row is a line
    let rows = [
        ("planned", "new", "size=2g", ""),
        ("planned", "new", "size=700m", ""),
        ("planned", "new", "size=64m readwrite=ro", ""),
        ("planned", "new", "size=64q", ""),
        ("planned", "new", "", ""),
        ("planned", "new", "size=64m mountoptions=bind", ""),
        ("planned", "new", "sise=64m", ""),
        ("planned", "data", "fsType=xfs", ""),
        ("planned", "pool", "", ""),
        ("other", "new", "size=64m", "config does not allow the volume group other"),
        ("planned", "new", "size=64m thinpool=nope", "LVM shows no thin pool planned/nope "),
        ("planned", "new", "size=64m thinpool=pool", "the data of the thin pool planned/pool"),
    ];
    for (vg, lv, pairs, words) in rows {
        let options = format!("volumegroup={vg} volumeID={lv} {pairs}");
        let options = options.split_whitespace().flat_map(|pair| ["-o", pair]);
        let options: Vec<&str> = options.collect();
        let id = format!("{vg}/{lv}");
        let (said, code) = node.says(&[&["check", &id], &options[..]].concat());
        let mount = node.call(&[&["mount", "/run/planned"], &options[..]].concat());
        mount.is_failure(&[words]);
        // A mistake in an option is a wrong command line of `check`.
        let (message, expected) = match mount.message.strip_suffix(" [options]") {
            Some(message) => (message, 2),
            None => (&*mount.message, 1),
        };
        let is_same = said.contains(message) && !message.is_empty();
        assert!(is_same && code == expected, "{pairs}: {said}: {mount:?}");
    }
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
    // The volume does not count before a pod asks for it.
    node.prints(&unwell, "all is well\n", 0);
    let (metrics, _) = node.says(&["metrics"]);
    for metric in ["next_mount_refused", "volume_healthy"] {
        let raw = format!("{metric}{{vg=\"sorted\",lv=\"raw\"");
        assert!(!metrics.contains(&raw), "{metrics}");
    }
    let not_counted = " 0 would be refused; not counted: 1 of no pod here";
    node.prints(&["check"], not_counted, 0);
    assert_eq!(node.says(&["doctor", "-q"]), (String::new(), 0));
    node.refuses_mount(&raw, &["there is data at byte"]);
    let refused =
        r#"next_mount_refused{vg="sorted",lv="raw",verdict="refuse",reason="signs-of-data"} 1"#;
    node.prints(&["metrics"], refused, 0);
    node.prints(&["check"], " 1 would be refused", 1);
    let finding = "the next mount is refused: sorted/raw";
    node.prints(&["doctor", "-q"], finding, 1);
    let said = node.prints(&unwell, "  signs-of-data  ", 1);
    assert_eq!(said.lines().count(), 2, "{said}");
}

const JOURNAL: &str = r#""$0" mount /run/fields "$1" > /dev/null || true
"$0" unmount /nonexistent/x > /dev/null
until journalctl --quiet FLEXVOLUME_CALL=unmount | grep unmount > /dev/null; do sleep 0.1; done
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
    let script = format!("{JOURNALD}{JOURNAL}");
    let args = ["--mount", "bash", "-c", &script, text(&exe), options];
    let said = run("unshare", &args);
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
    let is_it = log[1].contains(" mount  fields/data  shop/web-0 ");
    assert!(is_it && log[1].ends_with("failed"), "{said}");
}
