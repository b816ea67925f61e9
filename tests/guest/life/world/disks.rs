//! Faults of disks, and power cuts.

use std::fs;
use std::time::Duration;

use super::{PLACES, Pod, SLOTS, World};
use crate::life::player::Ill;
use crate::prelude::*;

impl World {
    pub(super) fn fall_ill(&mut self, disk: usize, how: Ill) {
        self.heal(disk);
        self.ill[disk] = how;
        match how {
            Ill::No => {}
            Ill::Slow => self.disks[disk].slow(Duration::from_millis(10)),
            Ill::ReadOnly => {
                run("blockdev", &["--setro", &self.disks[disk].below]);
            }
            Ill::Gone => {
                self.disks[disk].fail_wholly();
                self.pool_scarred |= disk == 0;
                for slot in (0..SLOTS).filter(|slot| PLACES[*slot].disk == disk) {
                    if let Some(lv) = self.slots[slot] {
                        let is_alive = self.is_alive(lv);
                        self.lvs[lv].scarred |= is_alive;
                        self.lvs[lv].unchecked |= is_alive;
                        self.lvs[lv].lost |= self.lvs[lv].thick;
                    }
                }
            }
        }
    }

    pub(super) fn heal(&mut self, disk: usize) {
        run("blockdev", &["--setrw", &self.disks[disk].below]);
        self.disks[disk].heal();
        self.ill[disk] = Ill::No;
        // As udev's rule for a disk that comes: LVM's hints were perhaps made while it was gone.
        lenient("pvscan", &["-qq", "--cache"]);
    }

    /// All that is not on the disks is gone, and what was on its way to them. A write that was handed
    /// to the disk counts as written: no cache of the disk's own is lost here, see
    /// `creation::a_wipe_is_flushed_before_mkfs_is_recorded`.
    pub(super) fn cut_power(&mut self) {
        self.count("power cuts");
        self.pull_the_plug();
        for disk in 0..2 {
            self.heal(disk);
        }
        run("udevadm", &["settle"]);
        let _ = fs::remove_dir_all("/run/flexvolume-lvm");
        self.pool_scarred = false;
        for lv in &mut self.lvs {
            lv.scarred = false;
        }
        for pod in &mut self.pods {
            if let Pod::Up { read_only, .. } = *pod {
                *pod = Pod::Wanted { read_only };
            }
        }
    }

    pub(super) fn pull_the_plug(&mut self) {
        self.disks.iter().for_each(Disk::fail_wholly);
        self.open = None;
        for mount in mounts()
            .iter()
            .rev()
            .filter(|mount| mount.point.starts_with(text(self.node.kubelet_dir())))
        {
            lenient("umount", &["--lazy", &mount.point]);
        }
        let prefix = format!("life{}g", self.number);
        eventually("all volumes are inactive", || {
            let all = run("dmsetup", &["info", "-c", "--noheadings", "-o", "name"]);
            // A LUKS2 device first: it keeps its volume open.
            let (mut ours, plain): (Vec<_>, Vec<_>) = all
                .lines()
                .partition(|name| name.starts_with("flexvolume."));
            ours.extend(plain.into_iter().filter(|name| name.starts_with(&prefix)));
            for name in &ours {
                let mut remove = assert_cmd::Command::new("dmsetup");
                let _ = remove.args(["remove", name]).output();
            }
            ours.is_empty()
        });
    }
}
