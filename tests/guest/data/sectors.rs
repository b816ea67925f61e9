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

#[test]
fn a_volume_grows_only_onto_disks_without_larger_sectors() {
    let node = Node::with_config(Mode::MountOnly, &crypt::config(&crypt::key_file("mixed")));
    for (name, fs, mib) in [("mixed-plain", "ext4", 32), ("mixed-crypt", "xfs", 320)] {
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
            grown.is_failure(&REFUSED);
            assert_eq!(group.size("data"), size, "{fs}");
            // There is room on the disk that fits.
            node.grow("pod", &volume, size + 32 * MIB).is_success();
            assert_eq!(group.size("data"), size + 32 * MIB, "{fs}");
            node.write("pod", &volume, fs);
            node.finds(&volume, fs);
        }
    }
}

#[test]
fn a_filesystem_on_larger_sectors_than_its_own_is_refused_in_the_kernels_words() {
    let node = Node::new(Mode::MountOnly);
    for (fs, mib) in [("xfs", 300), ("ext4", 32)] {
        let mixed = Mixed::new(&format!("moved-{fs}"), 700, 700);
        let (group, large, id) = (&mixed.group, &mixed.large, mixed.group.path("data"));
        let volume = mixed.volume("data", mib).fs(fs);
        write_synced(&node.up("pod", &volume).join("page"), "kept");
        node.down("pod", &volume);
        sh(&format!("lvextend -qq -L +64m {id} {large}"));
        let dir = precreated(node.pod_dir("refused", &volume));
        let mount = node.call(&["mount", text(&dir), &volume.json_for("refused")]);
        mount.is_failure(&["the kernel says", "[mount]"]);
        sh(&format!("pvmove -qq {large}"));
        node.finds(&volume, "kept");
        assert_eq!(group.size("data"), (mib + 64) * MIB);
    }
}
