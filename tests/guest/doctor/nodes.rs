//! Nodes that are broken, each in one way that `doctor` names.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::prelude::*;
use serde_json::Value;

impl Node {
    /// The findings of one check, and the exit code of `doctor`.
    fn findings(&self, check: &str) -> (Vec<Value>, i32) {
        let (all, code) = self.json(&["doctor"]);
        let is_it = |one: &&Value| one["check"] == check && one["severity"] != "ok";
        let all = all.as_array().unwrap().iter();
        (all.filter(is_it).cloned().collect(), code)
    }

    /// Checks that this check of `doctor` has a finding about `about`, with a command that contains `command`. Returns
    /// the whole command. The exit code must be 1 for a failure.
    pub fn is_ill(&self, check: &str, about: &str, command: &str) -> String {
        let is_it = |one: &&Value| one["about"] == about || about.is_empty();
        let has_it = |(found, _): &(Vec<Value>, i32)| found.iter().any(|one| is_it(&one));
        let (found, code) = at_last(|| self.findings(check), has_it);
        let one = found.iter().find(is_it);
        let one = one.unwrap_or_else(|| panic!("no {check} on {about}: {found:?}"));
        let helps = one["command"].as_str().unwrap_or_default();
        assert!(helps.contains(command), "{one}");
        let is_right = code == 1 || (code == 3 && one["severity"] == "warning");
        assert!(is_right, "{code} {one}");
        helps.to_owned()
    }

    /// Checks that the command that `doctor` prints mends what `doctor` finds.
    pub fn mends(&self, check: &str, about: &str, command: &str) {
        let help = self.is_ill(check, about, command);
        // vgmknodes of LVM 2.03.16 makes the node, and fails without a word.
        lenient("sh", &["-c", told(&help, command)]);
        self.is_well(check);
    }

    pub fn is_well(&self, check: &str) {
        let (found, _) = self.findings(check);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn two_groups_of_one_name_are_named() {
    let node = Node::new(Mode::MountOnly);
    let disks = ["twin-a", "twin-b"].map(|name| Disk::new(name, 64 << 20));
    let group = Group::on("twin", &[&disks[0].path()]);
    let volumes = ["data", "more"].map(|lv| group.linear(lv, "16m"));
    for volume in &volumes {
        node.write("pod", volume, "kept");
    }
    node.is_well("duplicate-groups");
    run("vgchange", &["-qq", "-an", "twin"]);
    disks[0].fail_wholly();
    run("vgcreate", &["-q", "twin", &disks[1].path()]);
    disks[0].heal();
    let help = node.is_ill("duplicate-groups", "twin", "vgrename UUID twin-2");
    assert_eq!(node.findings("next-mount").0.len(), 1, "not one for each");
    // The commands say the same as a mount.
    let words = "2 volume groups are called twin";
    node.refuses_mount(&volumes[0], &[words, "`vgrename UUID twin-2`"]);
    for command in ["check", "status"] {
        let (said, _) = node.says(&[command, "--json", "twin"]);
        let has_both = said.contains(words) && said.contains("lvm-silent");
        assert!(has_both, "{said}");
    }
    let second = format!("pv_name={}", disks[1].path());
    let uuid = run("vgs", &["--noheadings", "-o", "vg_uuid", "-S", &second]);
    sh(&told(&help, "vgrename UUID ").replace("UUID", &uuid));
    node.is_well("duplicate-groups");
    node.up("pod", &volumes[0]);
}

#[test]
fn a_copy_of_a_disk_is_named() {
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("original", 64 << 20);
    let group = Group::on("copied", &[&disk.path()]);
    let volume = group.linear("data", "32m");
    node.is_well("duplicate-disks");
    let table = run("dmsetup", &["table", "original"]);
    run("dmsetup", &["create", "copy", "--table", &table]);
    let gone = Finally("dmsetup remove --retry copy".to_owned());
    node.is_ill("duplicate-disks", "copied", "lsblk -o NAME");
    group.lv("lvchange", &["-an"], "data");
    let words = ["PVs appear on duplicate devices"];
    node.mount("pod", &volume).is_failure(&words);
    drop(gone);
    node.up("pod", &volume);
}

#[test]
fn a_disk_that_is_missing_is_named_and_one_without_a_group_is_not() {
    let node = Node::new(Mode::MountOnly);
    let disks = ["kept", "gone", "spare"].map(|name| Disk::new(name, 64 << 20));
    let [kept, gone, spare] = disks.each_ref().map(Disk::path);
    run("pvcreate", &["-q", &spare]);
    let group = Group::on("holed", &[&kept, &gone]);
    for (lv, disk) in [("here", &kept), ("lost", &gone)] {
        sh(&format!("lvcreate -qq -y -L 32m -n {lv} holed {disk}"));
    }
    node.is_well("missing-disks");
    run("vgchange", &["-qq", "-an", "holed"]);
    disks[1].fail_wholly();
    node.is_ill("missing-disks", "holed", "lvs -a -o +devices holed");
    let (said, code) = node.says(&["doctor"]);
    let row = |line: &&str| line.starts_with("FAILED") && line.ends_with("a disk is missing");
    let its = said.lines().filter(row).count();
    assert!(its == 1 && code == 1, "{code} {said}");
    // A change that LVM makes without it has to be told to that disk.
    group.lv("lvchange", &["--addtag", "changed"], "here");
    disks[1].heal();
    node.mends("missing-disks", "holed", "vgextend --restoremissing holed");
}

#[test]
fn a_plugin_directory_that_anybody_may_write_is_named() {
    let node = Node::new(Mode::MountOnly);
    node.is_well("plugin-directory");
    let exe = node.exe();
    let dir = exe.ancestors().nth(2).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    node.is_ill("plugin-directory", "", "");
}

/// LVM has had no clvmd since 2.03, and leaves such a group out of each report.
#[test]
fn a_group_that_clvmd_left_is_named_with_what_takes_its_mark_away() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "clustered");
    node.write("pod", &volume, "kept");
    group.lv("lvchange", &["-an"], "data");
    bash(
        "file=/run/clustered.meta; vgcfgbackup -qq -f $file clustered
        sed -i '0,/status = .*/s//status = [\"RESIZEABLE\", \"READ\", \"WRITE\", \"CLUSTERED\"]/' $file
        vgcfgrestore -qq -f $file clustered",
    );
    let refused = node.refuses_mount(&volume, &["[no-group]"]);
    agreeing(refused.command("vgchange --config").unwrap());
    node.finds(&volume, "kept");
}
