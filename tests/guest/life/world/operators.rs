//! What operators do to volumes, where LVM can do it.

use std::fs;
use std::path::Path;

use super::{PLACES, World, device_at};
use crate::life::oracle::{Holds, Lv, Record};
use crate::life::player::Ill;
use crate::marks::put;
use crate::prelude::*;

impl World {
    /// The volume of a slot, if nobody uses it and LVM can work on it.
    fn free(&self, slot: usize) -> Option<usize> {
        let lv = self.slots[slot].filter(|_| self.is_well(slot))?;
        Self::mounts_of(&self.lvs[lv]).is_empty().then_some(lv)
    }

    /// The same, and active.
    fn free_device(&self, slot: usize) -> Option<(usize, String)> {
        let lv = self.free(slot)?;
        self.groups[PLACES[slot].disk].lv("lvchange", &["-ay"], PLACES[slot].lv);
        Some((lv, self.volume(slot).device()))
    }

    fn take_in(&mut self, slot: usize) -> &mut Lv {
        let place = &PLACES[slot];
        let id = self.groups[place.disk].path(place.lv);
        let uuid = run("lvs", &["--noheadings", "-o", "lv_uuid", &id]).replace('-', "");
        self.slots[slot] = Some(self.lvs.len());
        self.lvs.push(Lv::new(uuid));
        self.lvs.last_mut().unwrap()
    }

    pub(super) fn make(&mut self, slot: usize) {
        let place = &PLACES[slot];
        if place.thin {
            if self.pool_full || self.pool_scarred {
                return;
            }
            if !self.groups[0].has("pool") {
                let pool = "lvcreate -qq -y --type thin-pool -Z n -n pool -L 200m";
                sh(&format!("{pool} {}", self.groups[0].name));
            }
            self.groups[place.disk].thin(place.lv, place.size);
        } else {
            self.groups[place.disk].linear(place.lv, place.size);
        }
        self.take_in(slot);
    }

    /// A call may have created it, or half of it.
    pub(super) fn find_created(&mut self, slot: usize) {
        let place = &PLACES[slot];
        if self.slots[slot].is_none()
            && place.disk == 1
            && self.works(slot)
            && self.groups[1].has(place.lv)
        {
            self.take_in(slot).holds = Holds::Blank;
        }
    }

    pub(super) fn remove(&mut self, slot: usize) {
        if self.free(slot).is_some() {
            self.groups[PLACES[slot].disk].lv("lvremove", &[], PLACES[slot].lv);
            self.slots[slot] = None;
        }
    }

    /// Two volumes change their names.
    pub(super) fn swap(&mut self, slot: usize, with: usize) {
        let (one, other) = (&PLACES[slot], &PLACES[with]);
        let well = self.is_well(slot) && self.is_well(with);
        if slot == with || one.disk != other.disk || one.fs != other.fs || !well {
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
        if self.slots[slot].is_some() && self.is_well(slot) && !self.pool_full {
            self.groups[PLACES[slot].disk].lv("lvextend", &["-L", "+8m"], PLACES[slot].lv);
        }
    }

    pub(super) fn snapshot(&mut self, slot: usize, to: usize) {
        let (from, at) = (&PLACES[slot], &PLACES[to]);
        let Some(lv) =
            self.slots[slot].filter(|_| from.thin && at.thin && self.slots[to].is_none())
        else {
            return;
        };
        let half_made = self.lvs[lv].holds == Holds::Perhaps;
        if !self.is_well(slot) || self.pool_full || self.lvs[lv].scarred || half_made {
            return;
        }
        self.groups[0].lv("lvcreate", &["-s", "-kn", "-n", at.lv], from.lv);
        let origin = self.lvs[lv].clone();
        let copy = self.take_in(to);
        *copy = Lv {
            uuid: copy.uuid.clone(),
            record: Record::None,
            permitted: false,
            ..origin
        };
    }

    pub(super) fn spoil(&mut self, slot: usize) {
        if PLACES[slot].fs != "btrfs"
            && let Some((lv, device)) = self.free_device(slot)
            && self.lvs[lv].holds != Holds::Perhaps
        {
            put(&device, 0, &b"raw!".repeat(1024));
            self.lvs[lv].now_holds(Holds::Raw);
        }
    }

    pub(super) fn format(&mut self, slot: usize, ext4: bool) {
        if let Some((lv, device)) = self.free_device(slot)
            && !self.pool_full
        {
            let fs = if ext4 { "ext4" } else { "ext2" };
            run("wipefs", &["-qa", &device]);
            run(&format!("mkfs.{fs}"), &["-q", "-F", &device]);
            self.lvs[lv].now_holds(Holds::Fs(fs));
        }
    }

    /// Somebody takes the record off.
    pub(super) fn forget(&mut self, slot: usize) {
        if let Some(lv) = self.free(slot) {
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
        let Some((lv, _)) = self.free_device(slot) else {
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
        let Some((lv, _)) = self.free_device(slot) else {
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
        let used = mounts().iter().any(|mount| {
            device_at(Path::new(&mount.point))
                .is_some_and(|_| mount.source.contains(group.as_str()))
        });
        if !used && self.ill[disk] == Ill::No {
            run("vgchange", &["-qq", "-an", group]);
            if disk == 0 {
                run("vgchange", &["-qq", "-ay", group]);
                self.pool_scarred = false;
            }
        }
    }
}
