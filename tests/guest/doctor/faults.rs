//! Faults of the host, of its config or of a volume, one at a time, and the check of `doctor` that finds each.

use std::fs;

use crate::prelude::*;
use crate::signatures::put;
use serde_json::Value;

const ON_CALL: &str = include_str!("../../../docs/on-call.md");

fn node(lines: &str) -> Node {
    Node::with_config(Mode::MountOnly, lines)
}

#[test]
fn faults_of_the_host_are_named() {
    for check in ["config", "locks", "lvm", "tools", "udev"] {
        node("log = '/run/well.log'").is_well(check);
    }
    node("[volume_group.nosuch]").is_ill("config", "", "");
    node("tool_dirs = ['/nonexistent']").is_ill("tools", "", "");
    let broken = "echo broken >&2; exit 5";
    let lvm = Tools::new().put("lvm", broken).put("lvs", broken);
    node(&lvm.config()).is_ill("lvm", "", "");
    let pvs = Tools::new().put("pvs", broken);
    node(&pvs.config()).is_ill("lvm", "", "");
    {
        sh("mv /run/udev/control /run/udev/away");
        let _back = Finally("mv /run/udev/away /run/udev/control".to_owned());
        node("").is_ill("udev", "", "systemctl restart systemd-udevd");
    }
    {
        sh("mkdir -p /run/flexvolume-lvm");
        sh("chmod 777 /run/flexvolume-lvm");
        let _back = Finally("chmod 700 /run/flexvolume-lvm".to_owned());
        node("").is_ill("locks", "", "");
    }
    if !std::path::Path::new("/dev/log").exists() {
        node("").prints(&["log"], "there is no log", 1);
        let (metrics, _) = node("").says(&["metrics"]);
        assert!(metrics.contains("log_readable{} 0"), "{metrics}");
    }
}

/// Shell that breaks a pod's volume, its group or its host; the check that finds this, its subject and its severity; a
/// part of the command that helps; and shell that mends it, unless that command does.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

#[test]
#[rustfmt::skip] // a row is a line
fn a_fault_under_a_pod_is_named_until_it_is_mended() {
    let (group, volume) = Group::with_data("breaking");
    group.pool();
    run("mkfs.ext4", &["-q", &group.linear("raw", "16m").device()]);
    let node = node("");
    let mounted = node.up("pod", &volume);
    let rows: &[Row] = &[
        ("dmsetup suspend breaking-data", "next-mount", "breaking/data", "failed", "dmsetup resume breaking-data", "dmsetup resume breaking-data"),
        ("mkdir -p /run/hosts; mount /dev/breaking/data /run/hosts", "next-mount", "breaking/data", "failed", "", "umount /run/hosts"),
        ("mkdir -p /run/flexvolume-lvm; mount -t tmpfs -o nr_inodes=1 none /run/flexvolume-lvm", "locks", "", "failed", "df -i /run", "umount /run/flexvolume-lvm"),
        ("dd if=/dev/zero of=$MOUNTED/all bs=1M 2> /dev/null || sync", "filesystem-full", "breaking/data", "warning", "lvextend --resizefs", "rm $MOUNTED/all; sync"),
        // Of a volume that neither a record nor a pod nor the log says is the driver's.
        ("dmsetup suspend breaking-raw", "next-mount", "breaking/raw", "note", "", "dmsetup resume breaking-raw"),
    ];
    let bad = || {
        let (found, code) = node.json(&["doctor"]);
        let found = found.as_array().unwrap().iter();
        let bad = found.filter(|one| one["severity"] != "ok").cloned();
        (bad.collect::<Vec<Value>>(), code)
    };
    assert!(bad().0.is_empty(), "{:?}", bad());
    for (broken, check, about, verdict, command, mended) in rows {
        let [broken, mended] = [broken, mended].map(|line| line.replace("$MOUNTED", text(&mounted)));
        run("sh", &["-c", &broken]);
        let (found, code) = at_last(&bad, |(found, _)| found.len() == 1);
        run("sh", &["-c", &mended]);
        let [one] = found.as_slice() else { panic!("{broken}: {found:?}") };
        assert_eq!((one["check"].as_str(), one["severity"].as_str()), (Some(*check), Some(*verdict)), "{one}");
        assert_eq!(one["about"].as_str().unwrap_or_default(), *about, "{one}");
        assert!(one.to_string().contains(command), "{one}");
        let codes = [("note", 0), ("failed", 1), ("warning", 3)];
        assert!(codes.contains(&(*verdict, code)), "{code} {one}");
        assert!(bad().0.is_empty(), "{broken}: {mended}: {:?}", bad());
    }
    let fills = "dd if=/dev/urandom of=/dev/breaking/raw bs=1M count=10 oflag=direct";
    bash(&format!("lvcreate -qq -y -s -L 12m -n snap breaking/raw; {fills}"));
    node.prints(&["metrics"], r#"snapshot_ratio{vg="breaking",lv="snap"} 0.8"#, 0);
    node.mends("snapshot-full", "breaking/snap", "lvextend --extents +20%ORIGIN breaking/snap");
    // A larger ext has more inodes.
    let fill = "n=0; while : 2> /dev/null > i$n; do n=$((n + 1)); done";
    lenient("sh", &["-c", &format!("cd {}; ({fill}) 2> /dev/null; sync", text(&mounted))]);
    node.mends("filesystem-full", "breaking/data", "lvextend --resizefs --extents +20%LV breaking/data");
    fs::write(mounted.join("page"), "one more").unwrap();
}

#[test]
fn a_group_that_is_not_for_this_host_is_a_note_unless_the_config_names_it() {
    let (group, _) = Group::with_data("away");
    group.lv("lvchange", &["-an"], "data");
    let logs = "log = '/run/away.log'";
    // As if that host was gone for good.
    let mut printed = ON_CALL.split('`');
    let gone = printed.find(|text| text.starts_with("vgchange --config 'global{system_id_source"));
    let gone = gone
        .unwrap()
        .replace("OLDID", "other")
        .replace("VG", "away");
    let gone = gone.replace("vgchange", "vgchange -qy");
    for (leaves, words, comes_back) in [
        ("vgexport -q away", "exported", "vgimport -q away"),
        ("vgchange -qy --systemid other away", "of host other", &gone),
    ] {
        run("sh", &["-c", leaves]);
        let (list, _) = node("").says(&["status"]);
        let (notes, code) = node(logs).says(&["doctor"]);
        let named = node(&format!("{logs}\n[volume_group.away]"));
        named.is_ill("groups", "away", "");
        run("sh", &["-c", comes_back]);
        let is_it = |row: &str| row.starts_with("away ") && row.contains(words);
        assert!(list.lines().any(is_it), "{list}");
        let is_note = |row: &str| row.starts_with("note") && row.contains("away");
        assert!(notes.lines().any(is_note) && code == 0, "{code} {notes}");
        named.is_well("groups");
    }
}

#[test]
fn doctor_without_root_says_so_in_one_line() {
    const LOOKS: &str = "not root: LVM answers root only; use sudo\n";
    let exe = node("").exe();
    for (line, words) in [
        ("doctor", LOOKS),
        ("doctor --json", LOOKS),
        ("status", LOOKS),
        ("check", LOOKS),
        ("check --idle vg/lv", LOOKS),
        (
            "mount /mnt -o volumegroup=vg -o volumeID=lv",
            "not root: only root can do that; use sudo",
        ),
        ("install", "(not root: use sudo)"),
    ] {
        let mut nobody = assert_cmd::Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        let output = nobody.arg(&exe).args(line.split(' ')).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        let is_alone = words != LOOKS || said == words;
        assert!(said.contains(words) && is_alone, "{line}: {said}");
    }
}

#[test]
fn faults_of_a_volume_are_named() {
    let (group, volume) = Group::with_data("ailing");
    group.pool();
    let thin = group.thin("thin", "1g");
    let node = node("thin_pool_limit = 25");
    for check in ["device-node", "next-mount", "pool-full"] {
        node.is_well(check);
    }
    // Only what is the driver's is a fault.
    group.lv("lvchange", &["--addtag", "flexvolume.fs=ext4:gone"], "data");
    sh(&format!("rm {}", volume.device()));
    node.mends("device-node", "ailing/data", "vgmknodes ailing");
    node.is_ill("next-mount", "ailing/data", "");
    let fill = "dd if=/dev/urandom bs=1M count=160 oflag=direct status=none of=";
    sh(&format!("{fill}{}", thin.device()));
    let (said, _) = node.says(&["doctor"]);
    assert_eq!(said.matches("percent full").count(), 1, "{said}");
    node.mends(
        "pool-full",
        "ailing/pool",
        "lvextend --size +120M ailing/pool",
    );
    sh(&format!("{fill}{}", thin.device()).replace("160", "190"));
    sh("lvcreate -qq -y -n rest -l 100%FREE ailing");
    node.is_ill(
        "pool-full",
        "ailing/pool",
        "vgextend ailing DISK && lvextend",
    );
}

#[test]
fn volumes_for_which_there_is_no_time_are_named() {
    let group = Group::new("hurried");
    let tools = Tools::new().put("blkid", "sleep 11; exec $REAL \"$@\"");
    for lv in ["one", "two"] {
        let volume = group.linear(lv, "32m");
        node("").write("pod", &volume, "page");
        // The recorded superblock is gone, so blkid is asked.
        put(&volume.device(), 1024, &[0; 1024]);
    }
    node(&tools.config()).is_ill("volumes", "", "");
}
