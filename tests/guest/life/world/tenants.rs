//! Processes that keep what pods had: open files, and mounts that only they see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::libc::EIO;

use super::{Pod, World};
use crate::life::oracle::Holds;
use crate::prelude::*;

/// Mounts the pod's directory, the first argument, on the second one, where only this process sees it, and leaves
/// all other mounts.
const KEEPS: &str = "mount --bind \"$0\" \"$1\"; shift; umount \"$@\"; exec sleep 1000";

/// A mount that only a process of a tenant sees.
pub struct Kept {
    process: Process,
    point: PathBuf,
    lv: usize,
    pub slot: usize,
}

impl Kept {
    /// The volume's directory in this process's root.
    fn dir(&self) -> PathBuf {
        let root = text(&self.process.proc("root")).to_owned();
        PathBuf::from(format!("{root}{}", text(&self.point)))
    }

    /// Whether its filesystem is read-only, whatever the mount is.
    fn is_read_only(&self) -> bool {
        let table = read(&self.process.proc("mountinfo"));
        let is_its = |line: &&str| line.contains(text(&self.point));
        let line = table.lines().find(is_its).unwrap();
        let (_, filesystem) = line.rsplit_once(" - ").unwrap();
        filesystem.split(' ').nth(2).unwrap().starts_with("ro")
    }
}

impl World {
    pub(super) fn hold(&mut self, pod: usize) {
        if let (Pod::Up { .. }, None) = (self.pods[pod], &self.open) {
            let mut sleep = Command::new("sleep");
            let begun = sleep.arg("1000").current_dir(self.dir(pod)).spawn();
            self.open = begun.ok().map(|process| (pod, Process(process)));
        }
    }

    pub(super) fn keep(&mut self, pod: usize) {
        let Pod::Up { lv, .. } = self.pods[pod] else {
            return;
        };
        if !self.works(pod / 2) || self.lvs[lv].scarred || self.lvs[lv].lost {
            return;
        }
        let point = format!("/run/life{}-kept/{}", self.number, self.tally["steps"]);
        let point = precreated(point.into());
        let all = mounts();
        let kubelets = text(self.node.kubelet_dir());
        let below = all.iter().rev().map(|mount| &mount.point);
        let below = below.filter(|point| point.starts_with(kubelets));
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-ec", KEEPS, text(&self.dir(pod))]);
        let process = Process(shell.arg(&point).args(below).spawn().unwrap());
        eventually("a process that keeps the mount", || {
            fs::read(process.proc("comm")).is_ok_and(|comm| comm == b"sleep\n")
        });
        self.count("mounts kept elsewhere");
        self.kept.push(Kept {
            process,
            point,
            lv,
            slot: pod / 2,
        });
    }

    pub(super) fn let_go(&mut self) {
        self.open = None;
        self.kept.clear();
    }

    fn keepers(&self, lv: usize) -> impl Iterator<Item = &Kept> {
        self.kept.iter().filter(move |kept| kept.lv == lv)
    }

    pub(super) fn is_kept(&self, lv: usize) -> bool {
        self.keepers(lv).next().is_some()
    }

    /// Whether the mounts that tenants keep of this volume are read-only. `None`: there are none.
    pub(super) fn kept_how(&self, lv: usize) -> Option<bool> {
        self.keepers(lv).next().map(Kept::is_read_only)
    }

    /// Whether its filesystem is mounted, in whichever namespace.
    pub(super) fn is_alive(&self, lv: usize) -> bool {
        self.is_kept(lv) || !Self::mounts_of(&self.lvs[lv]).is_empty()
    }

    /// Whether the kernel says that its filesystem, which is mounted, has met errors.
    pub(super) fn has_failed(&self, lv: usize) -> bool {
        let lv_now = &self.lvs[lv];
        let here = Self::mounts_of(lv_now).into_iter();
        let mut dirs = here
            .map(|mount| PathBuf::from(mount.point))
            .chain(self.keepers(lv).map(Kept::dir));
        match lv_now.holds {
            _ if !lv_now.scarred => false,
            Holds::Fs("ext4") => {
                let mut numbers = fs::read_dir("/sys/fs/ext4").unwrap().flatten();
                numbers.any(|number| {
                    let uuid = Path::new("/sys/block").join(number.file_name());
                    let uuid = fs::read_to_string(uuid.join("dm/uuid")).unwrap_or_default();
                    uuid.trim_end().ends_with(&lv_now.uuid)
                        && read(&number.path().join("errors_count")).trim() != "0"
                })
            }
            Holds::Fs("xfs") => dirs.any(|dir| {
                let error = fs::metadata(dir).err();
                error.and_then(|error| error.raw_os_error()) == Some(EIO)
            }),
            _ => false,
        }
    }

    pub(super) fn look_into_kept(&self) {
        for (number, kept) in self.kept.iter().enumerate() {
            let who = format!("tenant {number}");
            self.look_at(&who, &kept.dir(), &self.lvs[kept.lv], kept.slot);
        }
    }
}
