//! What pods do, and what they see.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;

use super::{PLACES, Pod, World, device_at};
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
        if self.pool_full && PLACES[pod / 2].thin {
            return;
        }
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
        let bytes = self.groups[PLACES[slot].disk].size(PLACES[slot].lv) + (8 << 20);
        let reply = self
            .node
            .grow(&format!("pod{pod}"), &self.volume(slot), bytes);
        if !(self.pool_full && PLACES[slot].thin) {
            reply.is_success();
        }
    }

    pub(super) fn hold(&mut self, pod: usize) {
        if let (Pod::Up { .. }, None) = (self.pods[pod], &self.open) {
            let options = fs::File::options()
                .read(true)
                .custom_flags(nix::libc::O_DIRECTORY)
                .open(self.dir(pod));
            self.open = options.ok().map(|file| (pod, file));
        }
    }

    /// What a pod sees: its own volume, all that was synced, and nothing else.
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
        let sound = self.is_well(slot) && !lv.scarred;
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                assert!(!sound, "{error}");
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
