//! The pods' steps, and the pods' view of their volumes.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::libc::EIO;

use super::{PLACES, Pod, World, device_at, lvs_uuid};
use crate::life::oracle::{Holds, Lv};
use crate::prelude::*;

impl World {
    pub(super) fn write(&mut self, pod: usize, number: usize, synced: bool) {
        let Pod::Up {
            read_only: false,
            lv,
        } = self.pods[pod]
        else {
            return;
        };
        let (name, dir) = (format!("f{number}"), self.dir(pod));
        let page = format!("{} {number}\n", self.lvs[lv].uuid).repeat(1 + number * 8);
        let write = || {
            fs::write(dir.join(&name), &page)?;
            if synced {
                fs::File::open(dir.join(&name))?.sync_all()?;
                fs::File::open(&dir)?.sync_all()?;
            }
            Ok::<_, std::io::Error>(())
        };
        let written = write();
        let well = self.works(pod / 2) && !self.lvs[lv].scarred && !self.pool_scarred;
        let well = well && !self.lvs[lv].lost;
        assert!(written.is_ok() || !well, "{written:?}");
        let lv = &mut self.lvs[lv];
        let to = if written.is_ok() && synced && well {
            &mut lv.files
        } else {
            &mut lv.unsure
        };
        to.insert(name, page);
    }

    pub(super) fn grow(&mut self, pod: usize) {
        let Pod::Up {
            read_only: false,
            lv,
        } = self.pods[pod]
        else {
            return;
        };
        let slot = pod / 2;
        if !self.is_well(slot) || self.slots[slot] != Some(lv) || self.lvs[lv].scarred {
            return;
        }
        if self.has_thick(lv) || self.lvs[lv].thick {
            return;
        }
        let bytes = self.groups[PLACES[slot].disk].size(PLACES[slot].lv) + (8 << 20);
        let reply = self
            .node
            .grow(&format!("pod{pod}"), &self.volume(slot), bytes);
        let is_kept = self.config.reserve && reply.message.ends_with("[reserve]");
        // The tools that grow ext4 and xfs go by the name under which it was mounted.
        let source = mount_at(&self.dir(pod)).unwrap().source;
        let is_renamed = PLACES[slot].fs != "btrfs" && source != self.volume(slot).mounted();
        if is_renamed && !is_kept {
            reply.is_failure(&["was renamed while it was mounted"]);
        } else if !is_kept {
            reply.is_success();
        }
    }

    /// A process of the pod stays in its volume.
    pub(super) fn hold(&mut self, pod: usize) {
        if let (Pod::Up { .. }, None) = (self.pods[pod], &self.open) {
            let mut sleep = Command::new("sleep");
            let begun = sleep.arg("1000").current_dir(self.dir(pod)).spawn();
            self.open = begun.ok().map(|process| (pod, Process(process)));
        }
    }

    pub(super) fn is_alive(&self, lv: usize) -> bool {
        !Self::mounts_of(&self.lvs[lv]).is_empty()
    }

    /// Whether the kernel says that its filesystem, which is mounted, has met errors.
    pub(super) fn has_failed(lv: &Lv) -> bool {
        let mut mounts = Self::mounts_of(lv).into_iter();
        match lv.holds {
            _ if !lv.scarred => false,
            Holds::Fs("ext4") => {
                let mut numbers = fs::read_dir("/sys/fs/ext4").unwrap().flatten();
                numbers.any(|number| {
                    let device = Path::new("/sys/block").join(number.file_name());
                    lvs_uuid(&device).is_some_and(|uuid| uuid.ends_with(&lv.uuid))
                        && read(&number.path().join("errors_count")).trim() != "0"
                })
            }
            Holds::Fs("xfs") => mounts.any(|mount| {
                let error = fs::metadata(mount.point).err();
                error.and_then(|error| error.raw_os_error()) == Some(EIO)
            }),
            _ => false,
        }
    }

    /// A pod must see its own volume, all synced data, and nothing else.
    pub(super) fn look_into(&self, pod: usize) {
        let Pod::Up { read_only, lv } = self.pods[pod] else {
            return;
        };
        let (dir, lv, slot) = (self.dir(pod), &self.lvs[lv], pod / 2);
        let uuid = device_at(&dir).unwrap_or_else(|| panic!("pod{pod} has lost its mount"));
        assert!(
            uuid.ends_with(&lv.uuid),
            "pod{pod} has the volume {uuid}, not {lv:?}"
        );
        let mount = mount_at(&dir).unwrap();
        assert_eq!(mount.options.starts_with("ro"), read_only, "{mount:?}");
        let pool_well = !PLACES[slot].thin || !self.pool_scarred;
        let sound = self.works(slot) && pool_well && !lv.scarred;
        if lv.lost {
            return;
        }
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                assert!(!sound, "pod{pod}: {error}");
                return;
            }
        };
        for name in entries.map_while(|entry| entry.ok()?.file_name().into_string().ok()) {
            let known = name == "lost+found"
                || lv.files.contains_key(&name)
                || lv.unsure.contains_key(&name);
            assert!(known, "pod{pod} sees {name}, which is not its own");
        }
        for (name, page) in &lv.files {
            match fs::read_to_string(dir.join(name)) {
                Ok(text) => assert!(text == *page, "{name} in pod{pod} has changed"),
                Err(error) => assert!(!sound, "{name} in pod{pod} is lost: {error}"),
            }
        }
    }
}
