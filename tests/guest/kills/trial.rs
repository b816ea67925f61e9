//! Cuts a call short at one step, repeats it, and checks all that must be true then.

use std::fs;
use std::path::Path;

use super::name_of;
use super::scenes::{Call, Scene, Stage, THEIRS};
use super::steps::{Cut, Step, Steps, Way, words};
use crate::crypt;
use crate::prelude::*;

impl Scene {
    /// Cuts the call short, repeats it, and checks all that must be true then. `false`: the call
    /// ended without coming to this step.
    pub fn try_step(
        self,
        (node, steps, group): (&Node, &Steps, &Group),
        lv: &str,
        step: &Step,
        way: Way,
    ) -> bool {
        let mut stage = self.stage(node, &group.name, lv);
        self.prepare(node, group, &stage);
        let cut = match way {
            Way::Kill(victim) => steps.cut(node, &stage.args, step, victim),
            Way::Stop(told) => {
                let cut = steps.stop(node, &stage.args, step, told);
                self.check_stopped(group, &stage, &steps.ran());
                cut
            }
        };
        if let Cut::Missed(reply) = &cut {
            reply.is_success();
        }
        if let Cut::Answered(reply) = &cut
            && reply.status == "Failure"
            && stage.before.is_none()
        {
            // A call that fails unmounts its own mount.
            assert_eq!(mount_at(&stage.dir), None, "{reply:?}");
        }
        let mut tools = steps.ran();
        // From the first mount on there may be data.
        let uuid = stage.write_if_mounted();

        steps.plan("none");
        self.repeat(node, group, &stage);
        tools.extend(steps.ran());
        Steps::wait_for_orphans(&tools);
        self.check(node, group, &stage, uuid.as_deref());
        !matches!(cut, Cut::Missed(_))
    }

    /// Makes the call again until it succeeds. Before that, an operator removes what only a kill can leave, as the
    /// message says, or else README.
    fn repeat(self, node: &Node, group: &Group, stage: &Stage) {
        let lv = stage.volume.lv();
        for _ in 0..4 {
            let reply = node.call(&words(&stage.args));
            if reply.status == "Success" {
                return;
            }
            println!("an operator's: {reply:?}");
            // A filesystem that no pod has had is made again, not repaired.
            assert!(stage.has_page || !reply.message.contains("`debugfs "));
            let said = |words: &str| reply.message.contains(words);
            if self.is_creating() && said(&format!("`lvremove {}/{lv}`", group.name)) {
                assert!(!stage.has_page, "{reply:?}");
                group.lv("lvremove", &[], lv);
            } else if !said("`debugfs ") && said(&format!("allow-format {}/{lv}", group.name)) {
                // luksFormat had written noise, and no header or a part of one.
                let is_new = self.call == Call::MountEncrypting && !stage.has_page;
                assert!(is_new, "{reply:?}");
                give_up_header(node, &stage.volume);
            } else {
                assert!(
                    is_mended(&stage.volume, &reply.message),
                    "the repeated call: {reply:?}"
                );
            }
        }
        panic!("{} comes to no end", name_of(self));
    }

    /// Checks what must be true when the repeated call has succeeded.
    fn check(self, node: &Node, group: &Group, stage: &Stage, uuid: Option<&str>) {
        assert_unlocked();
        let Stage { volume, dir, .. } = stage;
        let lv = volume.lv();
        let all = mounts();
        let top = volume.mounted();
        let is_ours = |mount: &&Mount| mount.source == top;
        let count = all.iter().filter(is_ours).count();
        assert!(!group.is_active(lv) || !is_suspended(volume));
        let wanted = match self.call {
            _ if self.unmounts() => 0,
            Call::MountSecond => 2,
            _ => 1,
        };
        assert_eq!(count, wanted, "{all:?}");
        if self.unmounts() {
            assert!(!group.is_active(lv), "an unused volume is deactivated");
            group.lv("lvchange", &["-ay"], lv);
        }
        if wanted > 0 {
            let here = mount_at(dir).unwrap();
            assert_eq!(here.source, top);
            let read_only = here.options.starts_with("ro");
            assert_eq!(read_only, self.call == Call::MountSecond, "{here:?}");
            if stage.has_page {
                assert_eq!(read(&dir.join("page")), lv);
            }
            if !read_only {
                let last = dir.join("last");
                let theirs = dir.join(THEIRS).exists() || last.exists();
                assert!(!theirs, "the content of a removed volume");
                write_synced(&last, "can be written");
            }
            if self.call == Call::MountExtended {
                // The mount is there already: it is grown at the next one.
                node.does(&["unmount", text(dir)]);
                node.does(&words(&stage.args));
            }
            if self.is("Grow") || self.call == Call::MountExtended {
                let (volume, filesystem) = (group.size(lv), filesystem_size(dir));
                assert!(volume >= (96 << 20), "{volume} is not grown");
                assert!(filesystem > volume / 4 * 3, "{filesystem} of {volume}");
            }
        }
        // A volume that the driver formatted is recorded before it can have data; what it finds
        // is recorded when that is possible, and never wrongly.
        let now = self.inside(volume, Self::uuid);
        let mut tags = group.tags(lv);
        if self.is_encrypted() {
            let tag = format!(",flexvolume.luks={}", crypt::luks_uuid(volume));
            assert!(tags.contains(&tag), "{tags}: {tag}");
            tags = tags.replace(&tag, "");
        }
        if self.unmounts() {
            // The tag with which an unmount finds the volume to deactivate.
            tags = tags.replace(&format!(",flexvolume.volume={}", volume.name), "");
        }
        if self.call != Call::MountForeign || !tags.is_empty() {
            assert_eq!(tags, format!("flexvolume.fs={}:{now}", self.fs));
        }
        assert_eq!(uuid.unwrap_or(&now), now, "made again after it was mounted");

        for dir in [Some(dir), stage.before.as_ref()].into_iter().flatten() {
            node.does(&["unmount", text(dir)]);
            assert!(
                !dir.exists() || fs::remove_dir(dir).is_ok(),
                "{}",
                dir.display()
            );
        }
        if !group.is_active(lv) {
            group.lv("lvchange", &["-ay"], lv);
        }
        assert!(!mounts().iter().any(|mount| is_ours(&mount)));
        assert!(!self.is_encrypted() || !crypt::is_open(volume));
        self.inside(volume, |device| assert_clean(self.fs, device));
        group.lv("lvremove", &[], lv);
    }

    /// Looks at the device with the filesystem. An encrypted volume that is closed is opened for that.
    fn inside<T>(self, volume: &Volume, look: impl FnOnce(&str) -> T) -> T {
        if !self.is_encrypted() || crypt::is_open(volume) {
            return look(&volume.mounted());
        }
        let (device, vg) = (volume.device(), volume.vg());
        let open = "cryptsetup open --readonly --key-file";
        sh(&format!("{open} /run/{vg}.key {device} looked-at"));
        let seen = look("/dev/mapper/looked-at");
        crypt::closes("looked-at");
        seen
    }

    fn uuid(device: &str) -> String {
        sh(&format!("blkid -p -o value -s UUID {device}"))
    }
}

impl Stage {
    /// Writes what must be there at the end, if the call came as far as mounting. Returns the UUID
    /// of the filesystem that must still be there then.
    fn write_if_mounted(&mut self) -> Option<String> {
        let mounted = mount_at(&self.dir).or_else(|| mount_at(self.before.as_ref()?))?;
        assert_eq!(mounted.source, self.volume.mounted());
        if is_suspended(&self.volume) {
            // A killed lvextend left it so, and every access would wait.
            return None;
        }
        if !self.has_page {
            write_synced(&self.dir.join("page"), self.volume.lv());
            self.has_page = true;
        }
        Some(Scene::uuid(&self.volume.mounted()))
    }
}

/// An operator gives up a LUKS2 header that luksFormat has not written whole, and lets the driver make the volume anew.
pub fn give_up_header(node: &Node, volume: &Volume) {
    run("wipefs", &["--all", &volume.device()]);
    let id = format!("{}/{}", volume.vg(), volume.lv());
    node.prints(&["allow-format", &id, "--yes"], "", 0);
}

/// Runs the message's commands that repair an ext, on the opened device if the volume is encrypted.
fn repair(volume: &Volume, message: &str) {
    let key = format!("/run/{}.key", volume.vg());
    for command in message.split('`').skip(1).step_by(2) {
        let command = command.replace("NAME", "repair");
        if let Some(rest) = command.strip_prefix("cryptsetup open ") {
            sh(&format!("cryptsetup open --key-file {key} {rest}"));
        } else if command.starts_with("cryptsetup close ") {
            sh(&command);
        } else if command.starts_with("debugfs ") {
            run("sh", &["-c", &format!("{command} -y || [ $? = 1 ]")]);
        }
    }
}

/// Removes the remains of a killed call as an operator does, whatever call it was. Returns false if the message names
/// no such remains.
pub fn is_mended(volume: &Volume, message: &str) -> bool {
    if message.contains("`debugfs ") {
        // e2fsck writes the fields of the superblock one after another, and its checksum last.
        repair(volume, message);
    } else if let Some((_, part)) = message.split_once("prohibited while logical volume ") {
        run("lvchange", &["-an", part.split(' ').next().unwrap()]);
    } else if let Some((_, rest)) = message.split_once("run `dmsetup clear ") {
        // A killed `cryptsetup resize`.
        let rest = rest.split('`').next().unwrap();
        run("sh", &["-c", &format!("dmsetup clear {rest}")]);
    } else if let Some((_, rest)) = message.split_once("`dmsetup remove flexvolume.") {
        // A killed `cryptsetup open` had made the device, and given it no table yet.
        let name = format!("flexvolume.{}", rest.split('`').next().unwrap());
        assert_eq!(run("dmsetup", &["table", &name]), "", "{message}");
        run("dmsetup", &["remove", &name]);
    } else {
        return false;
    }
    true
}

/// Whether the volume's device, or the device inside, is suspended.
pub fn is_suspended(volume: &Volume) -> bool {
    [volume.device(), volume.mounted()].iter().any(|device| {
        let Ok(node) = fs::canonicalize(device) else {
            return false;
        };
        let suspended = Path::new("/sys/class/block").join(node.file_name().unwrap());
        read(&suspended.join("dm/suspended")) != "0\n"
    })
}

/// Checks that nobody holds a lock of the driver.
pub fn assert_unlocked() {
    for entry in fs::read_dir("/run/flexvolume-lvm").unwrap() {
        let path = entry.unwrap().path();
        let file = fs::File::open(&path).unwrap();
        assert!(file.try_lock().is_ok(), "{} is held", path.display());
    }
}

/// Checks that the filesystem's own check finds nothing.
pub fn assert_clean(fs: &str, device: &str) {
    match fs {
        "xfs" => run("xfs_repair", &["-n", device]),
        "btrfs" => run("btrfs", &["check", "--readonly", device]),
        _ => run("e2fsck", &["-f", "-n", device]),
    };
}
