//! Active volumes with a part on a disk that was away and came back under another name.

use crate::crypt;
use crate::data::lvm_conf::LvmConf;
use crate::prelude::*;

/// The second of two disks, which has another name from now on. Under the old name it is as `old` says.
struct Renamed<'a> {
    disk: &'a Disk,
    name: String,
}

impl<'a> Renamed<'a> {
    fn new(disk: &'a Disk, is_old_dead: bool) -> Self {
        let path = disk.path();
        let name = format!("{}-back", path.rsplit('/').next().unwrap());
        let table = sh(&format!("dmsetup table {path}"));
        if is_old_dead {
            disk.fail_wholly();
            sh("pvscan -qq --cache");
        }
        run("dmsetup", &["create", &name, "--table", &table]);
        sh("pvscan -qq --cache");
        Self { disk, name }
    }
}

impl Drop for Renamed<'_> {
    fn drop(&mut self) {
        lenient("dmsetup", &["remove", "--retry", &self.name]);
        self.disk.heal();
        lenient("pvscan", &["-qq", "--cache"]);
    }
}

/// A group on two disks, with volumes that hold data. Of `linear` and of the pool of `thin` the beginning is on the
/// first disk.
fn on_two(name: &str) -> (Vec<Disk>, Group, Node) {
    let (disks, group) = Disk::several(name, 2, 800 * MIB);
    let [one, two] = [disks[0].path(), disks[1].path()];
    for line in [
        format!("lvcreate -qq -y -W y -n linear -l 60 {name} {one}"),
        format!("lvextend -qq -l +20 {name}/linear {two}"),
        format!("lvcreate -qq -y -W y -n raid1 --type raid1 -m1 -L 64m {name}"),
        format!("lvcreate -qq -y -W y -n mirror --type mirror --mirrorlog core -m1 -L 64m {name}"),
        format!("lvcreate -qq -y --type thin-pool -Z n -n pool -l 20 {name} {one}"),
        format!("lvextend -qq -l +10 {name}/pool {two}"),
        format!("lvcreate -qq -y -V 64m --thinpool pool -n thin {name}"),
        format!("lvcreate -qq -y -W y -n whole -l 10 {name} {one}"),
    ] {
        sh(&line);
    }
    let node = Node::new(Mode::MountOnly);
    for lv in ["linear", "raid1", "mirror", "thin", "whole"] {
        node.write("pod", &Volume::new(&group, lv), lv);
    }
    (disks, group, node)
}

#[test]
fn a_volume_with_a_part_on_its_old_disk_is_refused_though_its_beginning_can_be_read() {
    let (disks, group, node) = on_two("partly");
    let renamed = Renamed::new(&disks[1], true);
    for lv in ["linear", "thin"] {
        let volume = Volume::new(&group, lv);
        node.refuses_mount(&volume, &["is no disk of partly any more", "[old-disk]"]);
        node.prints(&["check", &format!("partly/{lv}")], "REFUSED", 1);
        let reader = volume.read_only();
        node.refuses_mount(&reader, &["[old-disk]"]);
    }
    // Of these, the other disk has all.
    for lv in ["raid1", "mirror", "whole"] {
        node.finds(&Volume::new(&group, lv), lv);
    }
    let refused = node.mount("pod", &Volume::new(&group, "linear"));
    bash(refused.command("lvchange -an ").unwrap());
    node.finds(&Volume::new(&group, "linear"), "linear");
    group.deactivate();
    drop(renamed);
}

#[test]
fn an_encrypted_volume_that_stayed_open_on_its_old_disk_is_closed_by_what_the_message_says() {
    let node = crypt::with_key(Mode::MountOnly, "stayed");
    let (disks, group) = Disk::several("stayed", 2, 200 * MIB);
    let second = disks[1].path();
    sh(&format!(
        "lvcreate -qq -y -W y -n data -L 48m stayed {second}"
    ));
    let volume = Volume::new(&group, "data").encrypted();
    node.write("pod", &volume, "kept");
    // The volume is open, as if the driver could not close it after the last unmount.
    crypt::opens(&volume, &crypt::name_inside(&volume));
    let renamed = Renamed::new(&disks[1], true);
    // A mount that is refused closes it, and a look does not.
    let (report, _) = node.json(&["check", "stayed/data"]);
    let refused = Reply {
        status: "Failure".to_owned(),
        message: report["volumes"][0]["message"].as_str().unwrap().to_owned(),
        device: None,
        attached: None,
        capabilities: None,
    };
    refused.is_failure(&["which is no disk of stayed any more"]);
    sh(refused.command("cryptsetup close ").unwrap());
    bash(refused.command("lvchange -an ").unwrap());
    node.finds(&volume, "kept");
    group.deactivate();
    drop(renamed);
}

#[test]
fn a_volume_on_a_path_to_its_disk_that_works_is_mounted() {
    let (disks, group, node) = on_two("paths");
    // As multipath over a disk on which a volume is active already.
    let renamed = Renamed::new(&disks[1], false);
    let filter = format!("devices/filter = [ \"r|{}$|\" ]\n", disks[1].path());
    let conf = LvmConf::new(&filter);
    sh("pvscan -qq --cache");
    let warned = bash("lvs paths/linear 2>&1");
    assert!(warned.contains("Device mismatch"), "{warned}");
    for lv in ["linear", "thin", "raid1", "whole"] {
        node.finds(&Volume::new(&group, lv), lv);
    }
    drop(conf);
    group.deactivate();
    drop(renamed);
}

#[test]
fn a_raid10_whose_pair_of_images_is_on_old_disks_is_refused() {
    let (disks, group) = Disk::several("pair", 4, 200 * MIB);
    sh("lvcreate -qq -y -W y -n data --type raid10 -i 2 -m 1 -L 64m pair");
    let (node, volume) = (Node::new(Mode::MountOnly), Volume::new(&group, "data"));
    node.write("pod", &volume, "kept");
    // The beginning is on the other pair. LVM finds all disks, and calls the volume "refresh needed".
    let one = Renamed::new(&disks[2], true);
    node.finds(&volume, "kept");
    let other = Renamed::new(&disks[3], true);
    node.refuses_mount(&volume, &["is no disk of pair any more", "[old-disk]"]);
    let refused = node.mount("pod", &volume);
    bash(refused.command("lvchange -an ").unwrap());
    node.finds(&volume, "kept");
    group.deactivate();
    drop((one, other));
}
