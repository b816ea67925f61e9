//! `status`, `check`, `doctor` and the metrics report the same faults, also those that LVM's list does not show.

use std::fs;
use std::process::Command;

use crate::data::lvm_conf::LvmConf;
use crate::prelude::*;

/// A node whose log says nothing of other cases.
fn logging(name: &str) -> Node {
    let file = format!("/run/{name}.log");
    let _ = fs::remove_file(&file);
    Node::with_config(Mode::MountOnly, &format!("log = '{file}'"))
}

/// Checks that all commands name `about`, with the exit code for a fault, and that the metrics have this sample.
#[track_caller]
fn told_by_all(node: &Node, about: &str, sample: &str) {
    node.prints(&["status"], about, 0);
    node.prints(&["status", "-x"], about, 1);
    node.prints(&["check"], about, 1);
    node.prints(&["metrics"], sample, 0);
    let (found, code) = node.json(&["doctor"]);
    let found = found.as_array().unwrap().iter();
    let severity = |one: &serde_json::Value| one["severity"].as_str().unwrap().to_owned();
    let unwell = found.filter(|one| !["ok", "note"].contains(&&*severity(one)));
    let its = unwell.filter(|one| one["about"] == about).count();
    assert!(its > 0 && [1, 3].contains(&code), "{code} {about}");
}

/// Checks that no command reports a fault.
#[track_caller]
fn all_is_well(node: &Node) {
    node.prints(&["status", "-x"], "all is well", 0);
    let (said, code) = node.says(&["check"]);
    assert_eq!(code, 0, "{said}");
    let (said, code) = node.says(&["doctor", "-q"]);
    assert_eq!(code, 0, "{said}");
    let (said, _) = node.says(&["metrics"]);
    let is_ill = |line: &&str| {
        let (name, value) = line.split_once('{').zip(line.rsplit_once(' ')).unwrap();
        let (name, value) = (name.0, value.1);
        (name.ends_with("healthy") && value == "0") || (name.ends_with("refused") && value == "1")
    };
    let samples = said.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(samples.filter(is_ill).count(), 0, "{said}");
}

#[test]
fn a_volume_whose_disks_are_gone_under_its_pod_is_told_by_all() {
    let (disk, group, volume) = Disk::with_data("vanished", "ext4", 32);
    let node = logging("vanished");
    node.up("pod", &volume);
    all_is_well(&node);
    disk.fail_wholly();
    let sample = r#"volume_healthy{vg="vanished",lv="data"} 0"#;
    told_by_all(&node, "vanished/data", sample);
    let sample = r#"volume_pods{vg="vanished",lv="data"} 1"#;
    node.prints(&["metrics"], sample, 0);
    // A second pod is bound, unless the kernel has met an error when it wrote the journal.
    let sample = r#"next_mount_refused{vg="vanished",lv="data","#;
    node.prints(&["metrics"], sample, 0);
    let words = "LVM does not know vanished/data";
    node.prints(&["check", "vanished/data"], words, 1);
    disk.heal();
    drop(group);
}

#[test]
fn a_copied_group_beside_its_original_is_told_with_its_own_faults() {
    let disk = Disk::new("first", 64 * MIB);
    let group = Group::on("first", &[&disk.path()]);
    let volume = group.linear("data", "32m");
    let node = logging("copied");
    node.write("pod", &volume, "page");
    run("vgchange", &["-qq", "-an", "first"]);
    let copy = Disk::new("second", 64 * MIB);
    let paths = [disk.path(), copy.path()];
    let [from, to] = paths;
    sh(&format!(
        "dd if={from} of={to} bs=1M conv=fsync status=none"
    ));
    sh(&format!("vgimportclone -qq --basevgname second {to}"));
    let second = Group::found("second");
    run("vgchange", &["-qq", "-ay", "first", "second"]);
    node.up("pod", &volume);
    all_is_well(&node);
    let (list, _) = node.says(&["status"]);
    let has = |id: &str| list.lines().any(|line| line.starts_with(id));
    assert!(has("first/data") && has("second/data"), "{list}");
    assert_eq!(list.matches("pod\n").count(), 1, "{list}");
    sh("dd if=/dev/zero of=/dev/second/data bs=1M count=32 oflag=direct status=none");
    let sample = r#"lv="data",verdict="refuse",reason="signs-of-data"} 1"#;
    told_by_all(&node, "second/data", sample);
    second.deactivate();
    node.down("pod", &volume);
}

#[test]
fn a_copy_of_a_disk_is_told_by_all() {
    let disk = Disk::new("doubled", 64 * MIB);
    let group = Group::on("doubled", &[&disk.path()]);
    let volume = group.linear("data", "32m");
    let node = logging("doubled");
    node.up("pod", &volume);
    let table = run("dmsetup", &["table", "doubled"]);
    run("dmsetup", &["create", "double", "--table", &table]);
    let gone = Finally("dmsetup remove --retry double".to_owned());
    told_by_all(&node, "doubled", r#"group_healthy{vg="doubled"} 0"#);
    node.prints(&["status", "doubled"], "duplicate disk", 0);
    drop(gone);
    all_is_well(&node);
}

#[test]
fn a_group_that_lvm_cannot_read_hides_no_other_one() {
    let (bad, lost) = Group::with_data("mute");
    let (good, volume) = Group::with_data("vocal");
    let node = logging("mute");
    node.up("one", &lost);
    node.up("two", &volume);
    all_is_well(&node);
    // As where lvmlockd has lost the lease of one group.
    let conf = LvmConf::new("global {\n wait_for_locks = 0\n}\n");
    let holder = holds("/run/lock/lvm/V_mute");
    node.prints(&["check", "vocal/data"], "bind from", 0);
    node.prints(&["check", "vocal"], "1 would mount", 0);
    told_by_all(&node, "mute", r#"group_healthy{vg="mute"} 0"#);
    let sample = r#"volume_healthy{vg="vocal",lv="data"} 1"#;
    node.prints(&["metrics"], sample, 0);
    let words = "V_mute";
    for (args, code) in [
        (["status", "mute/data"], 1),
        (["check", "mute"], 1),
        (["status", "mute"], 0),
    ] {
        node.prints(&args, words, code);
    }
    drop(holder);
    drop(conf);
    all_is_well(&node);
    drop((bad, good));
}

#[test]
fn a_suspended_volume_is_told_beside_another_refusal() {
    let (group, volume) = Group::with_data("halted");
    let node = logging("halted");
    node.up("pod", &volume);
    run("mkdir", &["-p", "/run/halted"]);
    run("mount", &[&volume.device(), "/run/halted"]);
    let unmounted = Finally("umount /run/halted".to_owned());
    let resumed = suspended("halted-data");
    let help = node.is_ill("suspended", "halted/data", "");
    drop(resumed);
    assert!(help.is_empty(), "{help}");
    drop((unmounted, group));
}

#[test]
fn check_prints_a_volume_before_the_e2fsck_of_the_next_and_a_mount_waits_for_neither() {
    let (group, volume) = Group::with_data("examined");
    group.linear("blank", "32m");
    let (tools, node) = Tools::new().held("e2fsck").node();
    node.visit(&volume);
    let list = "/run/examined.list";
    let mut check = Command::new(node.exe())
        .args(["check", "examined"])
        .stdout(fs::File::create(list).unwrap())
        .spawn()
        .unwrap();
    tools.wait_for("e2fsck");
    let said = read(list.as_ref());
    assert!(
        said.starts_with("examined/blank ") && said.lines().count() == 1,
        "{said}"
    );
    let mount = node.start_mount("pod", &volume);
    eventually("the e2fsck of the mount", || {
        tools.runs("e2fsck").len() == 2
    });
    tools.let_go();
    mount.reply().is_success();
    check.wait().unwrap();
    let said = read(list.as_ref());
    assert!(
        said.contains("examined/data ") && !said.contains("finds errors"),
        "{said}"
    );
    node.down("pod", &volume);
    drop(group);
}
