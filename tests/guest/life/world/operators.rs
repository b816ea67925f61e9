//! The operators' changes of volumes, where LVM can make them.

use std::fs;
use std::path::Path;

use super::{PLACES, World};
use crate::kills::trial::{give_up_header, is_mended};
use crate::life::oracle::{Holds, Lv, Record};
use crate::life::player::{Ill, SLOTS};
use crate::prelude::*;
use crate::signatures::put;

impl World {
    /// The volume of a slot, if nobody uses it and LVM can work on it.
    pub(super) fn free(&self, slot: usize) -> Option<usize> {
        let lv = self.slots[slot].filter(|_| self.is_well(slot))?;
        (!self.is_alive(lv) && !self.is_open(lv)).then_some(lv)
    }

    /// Whether there is a LUKS2 device on top of this volume.
    pub(super) fn is_open(&self, lv: usize) -> bool {
        Path::new(&format!("/dev/mapper/flexvolume.{}", self.lvs[lv].uuid)).exists()
    }

    /// The same as `free_device`, of a volume that is not to be encrypted.
    fn free_plain(&self, slot: usize) -> Option<(usize, String)> {
        (!PLACES[slot].encrypted)
            .then(|| self.free_device(slot))
            .flatten()
    }

    /// Activates the volume of a slot, as [`Self::free`] chooses it. Returns the volume and its device.
    pub(super) fn free_device(&self, slot: usize) -> Option<(usize, String)> {
        let lv = self.free(slot)?;
        self.groups[PLACES[slot].disk].lv("lvchange", &["-ay"], PLACES[slot].lv);
        Some((lv, self.volume(slot).device()))
    }

    fn take_in(&mut self, slot: usize) -> &mut Lv {
        let place = &PLACES[slot];
        let id = self.groups[place.disk].path(place.lv);
        let uuid = run("lvs", &["--noheadings", "-o", "lv_uuid", &id]).replace('-', "");
        self.slots[slot] = Some(self.lvs.len());
        self.lvs.push(Lv {
            uuid,
            ..Lv::default()
        });
        self.lvs.last_mut().unwrap()
    }

    pub(super) fn make(&mut self, slot: usize) {
        let place = &PLACES[slot];
        if place.thin {
            if self.pool_scarred {
                return;
            }
            if !self.groups[0].has("pool") {
                let pool = "lvcreate -qq -y --type thin-pool -Z n -n pool -L 200m";
                sh(&format!("{pool} {}", self.groups[0].name));
            }
            self.groups[place.disk].thin(place.lv, place.size);
        } else {
            let volume = self.groups[place.disk].linear(place.lv, place.size);
            // A removed volume may have left data in its place.
            let zero = ["--force", "--zeroout", &volume.device()];
            run("blkdiscard", &zero);
        }
        self.take_in(slot);
    }

    /// A call may have created it, or half of it.
    pub(super) fn find_created(&mut self, slot: usize) {
        let place = &PLACES[slot];
        if self.slots[slot].is_none()
            && place.disk == 1
            && self.ill[1] != Ill::Gone
            && self.groups[1].has(place.lv)
        {
            self.take_in(slot).holds = Holds::Blank;
        }
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let lost = self.slots[slot].filter(|lv| self.works(slot) && self.lvs[*lv].lost);
        let lost = lost.filter(|lv| !self.is_alive(*lv));
        if self
            .free(slot)
            .or(lost)
            .is_some_and(|lv| !self.has_thick(lv))
        {
            self.groups[PLACES[slot].disk].lv("lvremove", &[], PLACES[slot].lv);
            self.slots[slot] = None;
        }
    }

    /// Two volumes change their names.
    pub(super) fn swap(&mut self, slot: usize, with: usize) {
        let (one, other) = (&PLACES[slot], &PLACES[with]);
        let well = self.is_well(slot) && self.is_well(with);
        let alike = (one.disk, one.fs, one.encrypted) == (other.disk, other.fs, other.encrypted);
        if slot == with || !alike || !well {
            return;
        }
        let group = &self.groups[one.disk].name;
        let rename = |from: &str, to: &str| sh(&format!("lvrename -qq {group} {from} {to}"));
        let [there, here] = [slot, with].map(|slot| self.slots[slot].is_some());
        there.then(|| rename(one.lv, "between"));
        here.then(|| rename(other.lv, one.lv));
        there.then(|| rename("between", other.lv));
        self.slots.swap(slot, with);
    }

    pub(super) fn extend(&mut self, slot: usize) {
        let can = self.slots[slot].is_some_and(|lv| !self.has_thick(lv) && !self.lvs[lv].thick);
        if can && self.is_well(slot) {
            self.groups[PLACES[slot].disk].lv("lvextend", &["-L", "+8m"], PLACES[slot].lv);
        }
    }

    /// Whether it has a snapshot beside it. Neither of them can be extended.
    pub(super) fn has_thick(&self, lv: usize) -> bool {
        let mut there = self.slots.iter().flatten();
        there.any(|other| self.lvs[*other].thick && self.are_twins(*other, lv))
    }

    /// Whether both have the same filesystem, since one is a snapshot of the other.
    pub(super) fn are_twins(&self, one: usize, other: usize) -> bool {
        let first = |lv: usize| self.lvs[lv].first.unwrap_or(lv);
        one != other && first(one) == first(other)
    }

    /// Makes a snapshot of a volume, which may be mounted.
    pub(super) fn snapshot(&mut self, slot: usize, to: usize) {
        let (from, at) = (&PLACES[slot], &PLACES[to]);
        let alike = (from.disk, from.fs, from.thin) == (at.disk, at.fs, at.thin);
        let alike = alike && !from.encrypted && !at.encrypted;
        let Some(lv) = self.slots[slot].filter(|_| alike && self.slots[to].is_none()) else {
            return;
        };
        let half_made = self.lvs[lv].holds == Holds::Perhaps;
        if !self.is_well(slot) || self.lvs[lv].scarred || half_made || self.lvs[lv].thick {
            return;
        }
        // A thick snapshot gets room for everything that may change.
        let how: &[&str] = if from.thin {
            &["-kn"]
        } else {
            &["-l", "110%ORIGIN"]
        };
        let args = [&["-s", "-n", at.lv], how].concat();
        self.groups[from.disk].lv("lvcreate", &args, from.lv);
        if self.is_alive(lv) {
            self.count("snapshots of what is mounted");
        }
        let origin = self.lvs[lv].clone();
        let copy = self.take_in(to);
        *copy = Lv {
            uuid: copy.uuid.clone(),
            record: Record::None,
            permitted: false,
            first: origin.first.or(Some(lv)),
            thick: !from.thin,
            ..origin
        };
    }

    pub(super) fn spoil(&mut self, slot: usize) {
        if PLACES[slot].fs != "btrfs"
            && let Some((lv, device)) = self.free_plain(slot)
            && self.lvs[lv].holds != Holds::Perhaps
        {
            put(&device, 0, &b"raw!".repeat(1024));
            self.lvs[lv].now_holds(Holds::Raw);
        }
    }

    pub(super) fn format(&mut self, slot: usize, ext4: bool) {
        if let Some((lv, device)) = self.free_plain(slot) {
            let fs = if ext4 { "ext4" } else { "ext2" };
            run("wipefs", &["-qa", &device]);
            run(&format!("mkfs.{fs}"), &["-q", "-F", &device]);
            self.lvs[lv].now_holds(Holds::Fs(fs));
        }
    }

    /// Somebody takes the record off.
    pub(super) fn forget(&mut self, slot: usize) {
        if let Some(lv) = self.free(slot).filter(|_| !PLACES[slot].encrypted) {
            let group = &self.groups[PLACES[slot].disk];
            let tags = group.tags(PLACES[slot].lv);
            for tag in tags
                .split(',')
                .filter(|tag| tag.starts_with("flexvolume.fs="))
            {
                group.lv("lvchange", &["--deltag", tag], PLACES[slot].lv);
            }
            self.lvs[lv].record = Record::None;
        }
    }

    pub(super) fn adopt(&mut self, slot: usize) {
        let Some((lv, _)) = self.free_plain(slot) else {
            return;
        };
        let is_fs = matches!(self.lvs[lv].holds, Holds::Fs(_));
        let (said, code) = self.node.says(&[
            "adopt",
            &self.groups[PLACES[slot].disk].path(PLACES[slot].lv),
        ]);
        if self.lvs[lv].holds != Holds::Perhaps {
            assert_eq!(code == 0, is_fs, "{said}");
        }
        if code == 0 {
            self.lvs[lv].record = Record::Right;
        }
    }

    pub(super) fn allow_format(&mut self, slot: usize) {
        let Some((lv, _)) = self.free_plain(slot) else {
            return;
        };
        let id = self.groups[PLACES[slot].disk].path(PLACES[slot].lv);
        let (said, code) = self.node.says(&["allow-format", &id, "--yes"]);
        match self.lvs[lv].holds {
            Holds::Raw => self.lvs[lv].permitted = code == 0,
            Holds::Fs(_) => assert_eq!(code, 1, "{said}"),
            _ => {}
        }
    }

    pub(super) fn replace(&self) {
        let exe = self.node.exe();
        let next = exe.with_file_name(".lvm");
        fs::copy(&exe, &next).unwrap();
        fs::rename(&next, &exe).unwrap();
    }

    pub(super) fn deactivate(&mut self, disk: usize) {
        let group = &self.groups[disk].name;
        let mut there = (0..SLOTS).filter(|slot| PLACES[*slot].disk == disk);
        let used = there
            .any(|slot| self.slots[slot].is_some_and(|lv| self.is_alive(lv) || self.is_open(lv)));
        if !used && self.ill[disk] == Ill::No {
            // A disk that udev still looks at shows LVM no group. LVM's hints were perhaps made while the disk was
            // gone.
            eventually("its group", || {
                let mut vgs = std::process::Command::new("vgs");
                let is_seen = vgs
                    .arg(group)
                    .output()
                    .is_ok_and(|seen| seen.status.success());
                if !is_seen {
                    run("pvscan", &["-qq", "--cache"]);
                }
                is_seen
            });
            run("vgchange", &["-qq", "-an", group]);
            if disk == 0 {
                run("vgchange", &["-qq", "-ay", group]);
                self.pool_scarred = false;
            }
        }
    }

    /// An operator mends a killed call's remains as the message says.
    pub(super) fn operator(&mut self, slot: usize, message: &str) -> bool {
        let (volume, group) = (self.volume(slot), &self.groups[PLACES[slot].disk]);
        let said = |words: &str| message.contains(words);
        if said(&format!("`lvremove {}`", group.path(PLACES[slot].lv))) {
            assert!(
                self.lv(slot)
                    .is_none_or(|lv| lv.files.is_empty() || lv.lost),
                "{message}"
            );
            group.lv("lvremove", &[], PLACES[slot].lv);
            let (of, twin) = (self.slots[slot].take(), self.slots[slot ^ 1]);
            // The snapshots of a volume are removed with it.
            let is_its =
                |twin: usize| self.lvs[twin].thick && of.is_some_and(|of| self.are_twins(twin, of));
            if twin.is_some_and(is_its) {
                self.slots[slot ^ 1] = None;
            }
            return true;
        }
        if PLACES[slot].encrypted && said(&format!("allow-format {}", group.path(PLACES[slot].lv)))
        {
            // luksFormat had written noise, and no header or a part of one.
            assert!(
                self.lv(slot).is_none_or(|lv| lv.files.is_empty()),
                "{message}"
            );
            give_up_header(&self.node, &volume);
            return true;
        }
        is_mended(&volume, message)
    }
}
