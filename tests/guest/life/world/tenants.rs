//! Tenants try to get more than is theirs: by mount options, by processes with hostile names, and by
//! mounts that other mount namespaces keep.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::libc::EIO;

use super::texts::{FORGED, SECRET};
use super::{PLACES, Pod, World};
use crate::life::oracle::Holds;
use crate::life::player::Ill;
use crate::prelude::*;

/// The options that a pod may ask for, of each filesystem.
const ALLOWED: [&str; 6] = [
    "noatime",
    "nosuid",
    "noexec",
    "nodev",
    "nosuid,nodev,noexec",
    "discard",
];
/// The options that no pod may ask for.
const FORBIDDEN: [&str; 16] = [
    "sb=131072",
    "journal_dev=0x801",
    "journal_path=/dev/vda",
    "loop",
    "offset=4096",
    "bind",
    "remount",
    "errors=panic",
    "norecovery",
    "noload",
    "abort",
    "debug",
    "context=system_u:object_r:tmp_t:s0",
    "helper=sh",
    "X-mount.mkdir",
    "nosuchoption",
];
/// Names for processes. Linux keeps 15 bytes.
const NAMES: [&str; 4] = [
    "\x1b[2J\nFORGED ok",
    "x) Z 1\nFORGED 1",
    "\x1b]0;x\x07\rFORGED",
    "a\tb\nFORGED: ok",
];
/// Mounts the pod's directory, the first argument, on the second one, where only this process sees it,
/// leaves all other mounts, and becomes the process of the third one.
const KEEPS: &str =
    "mount --bind \"$0\" \"$1\"; keeper=$2; shift 2; umount \"$@\"; exec \"$keeper\" 1000";

/// A mount that only a process of a tenant sees.
pub struct Kept {
    process: Process,
    point: PathBuf,
    /// The beginning of `point`, with nothing that a table of mounts writes in another way.
    top: String,
    lv: usize,
    pub slot: usize,
}

impl Kept {
    /// Where this process sees it.
    fn dir(&self) -> PathBuf {
        let root = text(&self.process.proc("root")).to_owned();
        PathBuf::from(format!("{root}{}", text(&self.point)))
    }

    /// Whether its filesystem is read-only, whatever the mount is.
    fn is_read_only(&self) -> bool {
        let table = read(&self.process.proc("mountinfo"));
        let line = table.lines().find(|line| line.contains(&self.top)).unwrap();
        let (_, filesystem) = line.rsplit_once(" - ").unwrap();
        filesystem.split(' ').nth(2).unwrap().starts_with("ro")
    }
}

/// Mount options that a pod may have.
pub fn allowed(fs: &str, which: usize) -> &'static str {
    let own = match fs {
        "xfs" => "allocsize=64k",
        _ => "commit=7",
    };
    ALLOWED.get(which % (ALLOWED.len() + 1)).unwrap_or(&own)
}

/// kubelet adds a Secret for every second pod.
pub fn with_secret(pod: usize, volume: Volume) -> Volume {
    if pod % 2 == 1 {
        volume.with("kubernetes.io/secret/password", SECRET)
    } else {
        volume
    }
}

impl World {
    pub(super) fn up_with(&mut self, pod: usize, read_only: bool, which: Option<usize>) {
        if self.pods[pod] == Pod::Gone {
            self.options[pod] = which;
        }
        self.up(pod, read_only, None);
    }

    /// It was mounted for this pod, and for no other one before.
    pub(super) fn has_its_options(&mut self, pod: usize) {
        let Some(which) = self.options[pod] else {
            return;
        };
        let mount = mount_at(&self.dir(pod)).unwrap();
        for option in allowed(PLACES[pod / 2].fs, which).split(',') {
            let mut all = mount.options.split([',', ' ']);
            assert!(all.any(|one| one == option), "no {option} in {mount:?}");
        }
        self.tally.granted += 1;
    }

    /// In any state of the volume, each call that names the option is refused for it.
    pub(super) fn forbidden(&mut self, slot: usize, which: usize) {
        if self.ill.contains(&Ill::Gone) || self.pool_scarred {
            return; // LVM cannot tell that nothing was changed.
        }
        let option = FORBIDDEN[which % FORBIDDEN.len()];
        let volume = self.volume(slot);
        let volume = volume.with("mountoptions", &format!("noatime,{option},nodev"));
        let (json, device, host) = (volume.json(), volume.device(), host_name());
        let dir = precreated(self.node.pod_dir("forbidden", &volume));
        let global = self.node.global_dir(&volume);
        let json_for = with_secret(which, volume).json_for("forbidden");
        let mut calls = vec![vec!["mount", text(&dir), &json_for]];
        if self.attach {
            calls.push(vec!["attach", &json, &host]);
            calls.push(vec!["mountdevice", text(&global), &device, &json]);
        }
        for args in calls {
            let reply = self.node.refuses(&args, &[option]);
            println!("    refused: {}", reply.message);
            self.tally.forbidden += 1;
        }
        fs::remove_dir(dir).unwrap();
    }

    /// The program whose process has this name.
    fn named(&self, which: usize) -> PathBuf {
        let name = NAMES[which % NAMES.len()];
        let file = precreated(self.tenants_dir()).join(name);
        if !file.exists() {
            fs::copy("/usr/bin/sleep", &file).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        file
    }

    fn tenants_dir(&self) -> PathBuf {
        PathBuf::from(format!("/run/life{}-tenants", self.number))
    }

    pub(super) fn hold(&mut self, pod: usize) {
        if let (Pod::Up { .. }, None) = (self.pods[pod], &self.open) {
            let mut sleep = Command::new(self.named(pod));
            let begun = sleep.arg("1000").current_dir(self.dir(pod)).spawn();
            self.open = begun.ok().map(|process| (pod, Process(process)));
        }
    }

    pub(super) fn keep(&mut self, pod: usize, which: usize) {
        let Pod::Up { lv, .. } = self.pods[pod] else {
            return;
        };
        if !self.works(pod / 2) || self.lvs[lv].scarred || self.lvs[lv].lost {
            return;
        }
        let top = format!("{}/at-{}", text(&self.tenants_dir()), self.tally.steps);
        let point = precreated(PathBuf::from(format!("{top}/\x1b[2K\n{FORGED} is ready")));
        let keeper = self.named(which);
        let all = mounts();
        let kubelets = text(self.node.kubelet_dir());
        let below = all.iter().rev().map(|mount| &mount.point);
        let below = below.filter(|point| point.starts_with(kubelets));
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-ec", KEEPS, text(&self.dir(pod))]);
        let shell = shell.args([&point, &keeper]).args(below);
        let process = Process(shell.spawn().unwrap());
        let name = keeper.file_name().unwrap().as_encoded_bytes();
        eventually("a process that keeps the mount", || {
            let comm = fs::read(process.proc("comm"));
            comm.is_ok_and(|comm| comm.strip_suffix(b"\n") == Some(&name[..name.len().min(15)]))
        });
        self.tally.kept += 1;
        self.kept.push(Kept {
            process,
            point,
            top,
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

    /// Whether a filesystem that others keep is read-only.
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
