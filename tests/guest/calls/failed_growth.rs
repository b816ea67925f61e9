//! Growth that fails, or would fail. The pod goes on, and a volume gets no space that its filesystem cannot use.

use crate::crypt;
use std::path::PathBuf;

use crate::prelude::*;

/// While this lives, no process gets a semaphore, with which LVM and cryptsetup wait for udev.
struct Semaphores {
    before: String,
    one: String,
}

impl Drop for Semaphores {
    fn drop(&mut self) {
        std::fs::write("/proc/sys/kernel/sem", &self.before).unwrap();
        run("ipcrm", &["-s", &self.one]);
    }
}

fn without_semaphores() -> Semaphores {
    let before = sh("cat /proc/sys/kernel/sem");
    let one = bash("ipcmk -S 1 | grep -o '[0-9]*'");
    std::fs::write("/proc/sys/kernel/sem", "32000 1024000000 500 1").unwrap();
    Semaphores { before, one }
}

/// The devices of device-mapper that are suspended.
fn suspended_devices() -> String {
    bash("dmsetup info -c --noheadings -o suspended,name | grep Suspended || true")
}

fn device_size(volume: &Volume) -> u64 {
    let size = run("blockdev", &["--getsize64", &volume.device()]);
    size.parse().unwrap()
}

#[test]
fn a_growth_that_fails_leaves_no_pod_waiting() {
    for kind in ["plain", "thin", "raid1", "encrypted"] {
        let (_disks, group) = Disk::several(&format!("failed-{kind}"), 2, 800 * MIB);
        let key = crypt::config(&crypt::key_file("failed"));
        let node = Node::with_config(Mode::MountOnly, &key);
        let mut volume = Volume::new(&group, "data");
        match kind {
            "thin" => {
                group.pool();
                group.thin("data", "100m");
            }
            "raid1" => {
                let make = "lvcreate -qq -y -W y --type raid1 -m 1 --nosync -n data -L 100m";
                sh(&format!("{make} {}", group.name));
            }
            _ => drop(group.linear("data", "100m")),
        }
        if kind == "encrypted" {
            volume = volume.encrypted();
        }
        let dir = node.up("pod", &volume);
        let before = filesystem_size(&dir);
        let lack = without_semaphores();
        for _ in 0..2 {
            let grown = node.grow("pod", &volume, 200 * MIB);
            assert_eq!(suspended_devices(), "", "{kind}: {grown:?}");
            grown.is_failure(&["semaphores"]);
        }
        write_synced(&dir.join("page"), kind);
        drop(lack);
        // LVM's metadata may have the size by now, and the device has not.
        node.grow("pod", &volume, 200 * MIB).is_success();
        assert_eq!(device_size(&volume), 200 * MIB, "{kind}");
        assert!(filesystem_size(&dir) > before + 80 * MIB, "{kind}");
        node.down("pod", &volume);
        node.finds(&volume, kind);
    }
}

#[test]
fn a_volume_that_is_made_in_a_pool_and_fails_leaves_no_pod_of_the_pool_waiting() {
    let group = Group::new("failed-pool");
    group.pool();
    let lines = "[volume_group.failed-pool]\ncreate = true\nthin_pool = 'pool'\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let volume = group.thin("data", "100m");
    let dir = node.up("pod", &volume);
    let other = Volume::new(&group, "other").with("size", "100m");
    let lack = without_semaphores();
    let made = node.mount("other", &other);
    assert_eq!(suspended_devices(), "", "{made:?}");
    made.is_failure(&["semaphores"]);
    write_synced(&dir.join("page"), "kept");
    drop(lack);
    node.down("pod", &volume);
    node.finds(&volume, "kept");
}

/// A group on a loop device that becomes smaller under it, and a second one that does not.
struct Shrunk {
    group: Group,
    small: String,
}

impl Drop for Shrunk {
    fn drop(&mut self) {
        self.group.deactivate();
        let away = "for disk in $(losetup --noheadings --output NAME --associated $file); do
            wipefs -qaf $disk; losetup --detach $disk; done; rm -f $file";
        let all = format!("for file in /run/{}.?; do {away}; done", self.group.name);
        lenient("sh", &["-c", &all]);
    }
}

impl Shrunk {
    /// `more`: the size of the second disk in MiB.
    fn new(name: &str, more: u64) -> Self {
        let disk = |number: usize, mib: u64| {
            let file = format!("/run/{name}.{number}");
            looped(file.as_ref(), mib * MIB)
        };
        let small = disk(1, 800);
        let group = Group::on(name, &[&small]);
        if more > 0 {
            sh(&format!("vgextend -qq {name} {}", disk(2, more)));
        }
        Self { group, small }
    }

    /// The first disk has so many MiB from now on.
    fn shrink(&self, mib: u64) {
        let (name, small) = (&self.group.name, &self.small);
        sh(&format!("truncate -s {mib}M /run/{name}.1"));
        sh(&format!("losetup -c {small}"));
    }
}

#[test]
fn a_volume_takes_no_space_that_its_disk_has_not() {
    let shrunk = Shrunk::new("shrunk", 0);
    let (group, small) = (&shrunk.group, &shrunk.small);
    let lines = "[volume_group.shrunk]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let volume = group.linear("data", "200m");
    let dir = node.up("pod", &volume);
    let before = filesystem_size(&dir);
    shrunk.shrink(230);
    let free = group.free();
    let told = format!("`pvresize {small}`");
    let grown = node.grow("pod", &volume, 300 * MIB);
    assert_eq!(suspended_devices(), "", "{grown:?}");
    grown.is_failure(&[&told, "230 MiB"]);
    let made = Volume::new(group, "made").with("size", "100m");
    node.refuses_mount(&made, &[&told]);
    assert_eq!((group.size("data"), group.free()), (200 * MIB, free));
    write_synced(&dir.join("page"), "kept");
    // A person sees the same.
    let (status, _) = node.json(&["status", "shrunk"]);
    assert_eq!(status["groups"][0]["free_bytes"], 0, "{status}");
    node.prints(&["doctor"], &told[1..told.len() - 1], 1);

    sh(grown.command("pvresize ").unwrap());
    node.grow("pod", &volume, 300 * MIB)
        .is_failure(&["28 MiB free"]);
    node.grow("pod", &volume, 220 * MIB).is_success();
    assert!(filesystem_size(&dir) > before);
    node.down("pod", &volume);
    node.finds(&volume, "kept");
}

#[test]
fn space_of_a_whole_disk_is_taken_beside_one_that_was_shrunk() {
    let shrunk = Shrunk::new("beside", 400);
    let group = &shrunk.group;
    let lines = "[volume_group.beside]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let second = sh("losetup --noheadings --output NAME --associated /run/beside.2");
    sh(&format!(
        "lvcreate -qq -y -W y -n data -L 100m beside {second}"
    ));
    let volume = Volume::new(group, "data");
    node.up("pod", &volume);
    shrunk.shrink(230);
    // LVM alone would take the first disk, which has most.
    let made = Volume::new(group, "made").with("size", "100m");
    node.visit(&made);
    node.grow("pod", &volume, 200 * MIB).is_success();
    node.up("other", &made);
    node.grow("other", &made, 120 * MIB).is_success();
    let disks = sh("lvs --noheadings -o devices beside");
    assert!(!disks.contains(&shrunk.small), "{disks}");
    let more = node.grow("pod", &volume, 300 * MIB);
    more.is_failure(&["76 MiB free", &format!("`pvresize {}`", shrunk.small)]);
    node.down("other", &made);
    node.down("pod", &volume);
}

#[test]
fn a_thick_snapshot_keeps_its_size() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "thick");
    node.write("pod", &volume, "kept");
    sh("lvcreate -qq -y -s -n snap -L 16m thick/data");
    let snapshot = Volume::new(&group, "snap");
    let dir = node.up("pod", &snapshot);
    let free = group.free();
    let grown = node.grow("pod", &snapshot, 64 * MIB);
    grown.is_failure(&["is a snapshot of thick/data"]);
    assert_eq!((group.free(), group.size("snap")), (free, 16 * MIB));
    // The snapshot is as large as its origin, though the store of its changes is smaller.
    node.grow("pod", &snapshot, 32 * MIB).is_success();
    assert_eq!((group.free(), group.size("snap")), (free, 16 * MIB));
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("pod", &snapshot);
}

const TIB: u64 = 1 << 40;

/// A mounted ext of 15,500 GiB, which cannot become larger than 16 TiB.
fn near_its_limit(name: &str) -> (Group, Node, Volume, PathBuf) {
    // The kernel writes the inode tables slowly: all 240 GiB of them would fill this machine's memory during the test.
    let lines = "[filesystem.ext4]\nmount_options = 'init_itable=1000000'\n";
    let group = Group::of_size(name, 40 * TIB);
    let node = Node::with_config(Mode::MountOnly, lines);
    let volume = group.linear("data", "15500g");
    let lazy = "-E nodiscard,lazy_itable_init=1,lazy_journal_init=1";
    sh(&format!(
        "mkfs.ext4 -q -O ^64bit {lazy} {}",
        volume.device()
    ));
    let dir = node.up("pod", &volume);
    (group, node, volume, dir)
}

#[test]
fn a_volume_takes_no_space_that_its_filesystem_cannot_use() {
    let (group, node, volume, dir) = near_its_limit("vast");
    let (free, before) = (group.free(), filesystem_size(&dir));
    let grown = node.grow("pod", &volume, 17 * TIB);
    grown.is_failure(&["cannot use more than 16 TiB", "[filesystem-limit]"]);
    assert_eq!(group.free(), free);
    node.grow("pod", &volume, 16 * TIB).is_success();
    assert!(filesystem_size(&dir) > before);
    node.down("pod", &volume);
}

#[test]
#[ignore = "e2fsck and resize2fs read tables of 16 TiB for a quarter of an hour"]
fn a_filesystem_at_its_limit_becomes_larger_by_what_the_message_says() {
    let (group, node, volume, _) = near_its_limit("wider");
    // An operator has extended it all the same.
    group.lv("lvextend", &["-L", "17t"], "data");
    let late = node.grow("pod", &volume, 17 * TIB);
    late.is_failure(&["the volume is large enough"]);
    node.down("pod", &volume);
    let command = late.command("e2fsck -f ").unwrap();
    bash(&command.replace("e2fsck", "e2fsck -y"));
    let dir = node.up("pod", &volume);
    assert!(filesystem_size(&dir) > 16 * TIB);
    node.down("pod", &volume);
}

#[test]
fn a_growth_says_so_if_names_were_swapped_meanwhile() {
    let group = Group::new("names");
    let swap = "case $* in *names/data*) [ -e $HERE/done ] || {
        touch $HERE/done; lvrename -qq names data x; lvrename -qq names other data; lvrename -qq names x other; } ;; esac
        exec $REAL \"$@\"";
    let (_tools, node) = Tools::new().put("lvextend", swap).node();
    let volume = group.linear("data", "32m");
    group.linear("other", "32m");
    let dir = node.up("pod", &volume);
    let before = filesystem_size(&dir);
    let grown = node.grow("pod", &volume, 64 * MIB);
    // lvextend knows no UUID: it has extended the other one.
    grown.is_failure(&["another volume may have become larger", "lvs -o +lv_uuid"]);
    assert_eq!(filesystem_size(&dir), before);
}

#[test]
fn a_volume_that_was_renamed_under_its_pod_is_not_made_anew() {
    let lines = "[volume_group.renamed]\ncreate = true\n";
    for mode in [Mode::Attach, Mode::MountOnly] {
        let (group, volume) = Group::with_data("renamed");
        let node = Node::with_config(mode, lines);
        let volume = volume.with("size", "32m");
        let dir = node.up("pod", &volume);
        sh("lvrename -qq renamed data other");
        let (json, pod, size) = (volume.json(), text(&dir), (64 * MIB).to_string());
        let global = node.global_dir(&volume);
        for call in [
            ["expandfs", &json, "", pod, &size, "0"].as_slice(),
            &["expandfs", &json, &volume.device(), pod, &size, "0"],
            &["expandvolume", &json, pod, &size, "0"],
            &["expandvolume", &json, text(&global), &size, "0"],
        ] {
            let grown = node.call(call);
            assert!(!group.has("data"), "{call:?}: {grown:?}");
            grown.is_failure(&["there is no logical volume renamed/data"]);
        }
        sh("lvrename -qq renamed other data");
        node.grow("pod", &volume, 64 * MIB).is_success();
        node.all_down(&["pod"], &volume);
        // Nor one that is gone.
        group.lv("lvremove", &[], "data");
        let call = ["expandvolume", &json, text(&global), &size, "0"];
        node.call(&call)
            .is_failure(&["there is no logical volume renamed/data"]);
        assert!(!group.has("data"));
    }
}
