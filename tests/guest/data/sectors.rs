//! Groups of disks with sectors of 512 and of 4096 bytes, and filesystems that cannot work on both.

use std::path::Path;

use crate::crypt;
use crate::prelude::*;

const MIXED: &str = "--config devices/allow_mixed_block_sizes=1";
const REFUSED: [&str; 2] = [
    "free on disks with sectors of at most ",
    "`vgextend --config devices/allow_mixed_block_sizes=1 ",
];

/// A group on two disks, of which the second has sectors of 4096 bytes.
struct Mixed {
    group: Group,
    small: String,
    large: String,
}

impl Mixed {
    /// The sizes of the disks in MiB, without what LVM takes.
    fn new(name: &str, small: u64, large: u64) -> Self {
        let disk = |number: usize, mib: u64, sector: &str| {
            let file = format!("/run/{name}.{number}");
            looped_in(sector, Path::new(&file), (mib + 4) << 20)
        };
        let [small, large] = [disk(1, small, "512"), disk(2, large, "4096")];
        let group = Group::on(name, &[&small]);
        sh(&format!("vgextend -qq {MIXED} {name} {large}"));
        Self {
            group,
            small,
            large,
        }
    }

    /// A volume on the small sectors.
    fn volume(&self, lv: &str, mib: u64) -> Volume {
        let Self { group, small, .. } = self;
        sh(&format!(
            "lvcreate -qq -y -W y -n {lv} -L {mib}m {} {small}",
            group.name
        ));
        Volume::new(group, lv)
    }
}

impl Drop for Mixed {
    fn drop(&mut self) {
        let name = &self.group.name;
        self.group.deactivate();
        let away = "for disk in $(losetup --noheadings --output NAME --associated $file); do
            wipefs -qaf $disk; losetup --detach $disk; done; rm -f $file";
        let all = format!("for file in /run/{name}.?; do {away}; done");
        lenient("sh", &["-c", &all]);
    }
}

/// A filesystem, its MiB, and whether it can live on both disks.
type Grown = (&'static str, &'static str, u64, bool);

fn grow(all: &[Grown]) {
    let lines = "[filesystem.ext3]\nmkfs_options = ['-b', '4096']\n";
    let key = crypt::config(&crypt::key_file("mixed"));
    let node = Node::with_config(Mode::MountOnly, &format!("{lines}{key}"));
    for &(name, fs, mib, fits) in all {
        let mixed = Mixed::new(name, mib + 64, 600);
        let (group, mut volume) = (&mixed.group, mixed.volume("data", mib).fs(fs));
        if name == "mixed-crypt" {
            volume = volume.encrypted();
        }
        for is_mounted in [true, false] {
            node.up("pod", &volume);
            if !is_mounted {
                node.down("pod", &volume);
            }
            let size = group.size("data");
            let grown = node.grow("pod", &volume, size + 128 * MIB);
            if fits {
                grown.is_success();
                assert_eq!(group.size("data"), size + 128 * MIB, "{fs}");
            } else {
                grown.is_failure(&REFUSED);
                assert_eq!(group.size("data"), size, "{fs}");
                // There is room on the disk that fits.
                node.grow("pod", &volume, size + 32 * MIB).is_success();
                assert_eq!(group.size("data"), size + 32 * MIB, "{fs}");
            }
            node.write("pod", &volume, fs);
            node.finds(&volume, fs);
        }
    }
}

#[test]
fn a_volume_grows_only_onto_disks_that_its_filesystem_can_live_on() {
    // ext makes blocks of 1 KiB in small volumes.
    grow(&[
        ("mixed-ext4", "ext4", 32, false),
        ("mixed-ext3", "ext3", 32, true),
    ]);
}

#[test]
fn so_do_volumes_of_the_other_filesystems() {
    grow(&[
        ("mixed-xfs", "xfs", 300, false),
        ("mixed-ext2", "ext2", 32, false),
        ("mixed-btrfs", "btrfs", 256, true),
        ("mixed-crypt", "xfs", 320, false),
    ]);
}

#[test]
fn a_volume_that_an_operator_extended_onto_such_a_disk_is_refused_until_it_is_moved() {
    let node = Node::new(Mode::MountOnly);
    for (kind, fs, mib, options) in [
        ("linear", "xfs", 300, ""),
        ("small", "ext4", 32, ""),
        ("copies", "ext4", 32, "--type raid1 -m 1"),
    ] {
        let mixed = Mixed::new(&format!("moved-{kind}"), 700, 700);
        let (group, small, large) = (&mixed.group, &mixed.small, &mixed.large);
        let (name, id) = (&group.name, group.path("data"));
        let volume = mixed.volume("data", mib).fs(fs);
        write_synced(&node.up("pod", &volume).join("page"), "kept");
        if options.is_empty() {
            sh(&format!("lvextend -qq -L +64m {id} {large}"));
        } else {
            sh(&format!("lvconvert -qq -y {options} {id} {small} {large}"));
        }
        let move_it = format!("`pvmove {large}`");
        let words = ["whose sectors have 4096 bytes", &move_it];
        let size = group.size("data");
        for more in [0, 32 * MIB] {
            node.grow("pod", &volume, size + more).is_failure(&words);
            assert_eq!(group.size("data"), size);
        }
        node.down("pod", &volume);
        let refused = node.refuses_mount(&volume, &words);
        node.prints(&["check", &id], words[0], 1);
        if options.is_empty() {
            sh(refused.command("pvmove ").unwrap());
        } else {
            // Two copies are on two disks.
            let third = format!("/run/{name}.3");
            sh(&format!("truncate -s 400M {third}"));
            let third = run("losetup", &["--find", "--show", &third]);
            let extends = refused.command("vgextend ").unwrap();
            sh(&extends.replace("DISK", &third));
            sh(refused.command("pvmove ").unwrap());
            let words = ["which none of its disks has any more"];
            let refused = node.refuses_mount(&volume, &words);
            bash(refused.command("lvchange --activate n ").unwrap());
        }
        node.finds(&volume, "kept");
    }
}
