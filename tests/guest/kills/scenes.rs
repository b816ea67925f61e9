//! The calls that are cut short, what each starts from, and what must be true when it has been
//! repeated.

use std::fs;
use std::path::{Path, PathBuf};

use super::name_of;
use super::steps::{Cut, Step, Steps, Victim, words};
use crate::crypt;
use crate::prelude::*;

const POD: &str = "pod";
/// A file that a removed volume held.
const THEIRS: &str = "theirs";

/// A call, with the state of the volume that it begins with: blank and active, if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Mount,
    /// On a directory that is not there.
    MountInactive,
    /// The volume does not exist, and is created where a removed one was.
    MountCreating,
    MountCreatingThin,
    MountCreatingRaid,
    /// With data, and without tags.
    MountForeign,
    /// With data, and extended by hand.
    MountExtended,
    /// For a second pod, read-only.
    MountSecond,
    MountDevice,
    Grow,
    /// On a node that deactivates unused volumes.
    Unmount,
    /// A blank volume is to be encrypted.
    MountEncrypting,
    MountEncrypted,
    GrowEncrypted,
    UnmountEncrypted,
}

#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub call: Call,
    pub fs: &'static str,
}

/// All of them. A first mount and growth differ with the filesystem, the others do not. `unmountdevice` has one step
/// that changes anything, which a child takes: `processes` calls it before and after.
const SCENES: &[(Call, &[&str])] = &[
    (Call::Mount, &["ext4", "xfs", "btrfs"]),
    (Call::MountDevice, &["ext4", "xfs", "btrfs"]),
    (Call::Grow, &["ext4", "xfs", "btrfs"]),
    (Call::MountInactive, &["ext4"]),
    (Call::MountCreating, &["ext4"]),
    (Call::MountCreatingThin, &["ext4"]),
    (Call::MountCreatingRaid, &["ext4"]),
    (Call::MountForeign, &["ext4", "xfs"]),
    (Call::MountExtended, &["ext4"]),
    (Call::MountSecond, &["ext4"]),
    (Call::Unmount, &["ext4"]),
    (Call::MountEncrypting, &["ext4", "xfs", "btrfs"]),
    (Call::MountEncrypted, &["ext4"]),
    (Call::GrowEncrypted, &["xfs"]),
    (Call::UnmountEncrypted, &["ext4"]),
];

pub fn scenes() -> Vec<Scene> {
    let of = |(call, kinds): &(Call, &'static [&str])| {
        let call = *call;
        kinds.iter().map(move |fs| Scene { call, fs })
    };
    SCENES.iter().flat_map(of).collect()
}

/// One volume, in the state that the call begins with.
pub struct Stage {
    pub volume: Volume,
    pub args: Vec<String>,
    pub dir: PathBuf,
    /// Where it is mounted before the call, and has a page that was synced.
    pub before: Option<PathBuf>,
    pub has_page: bool,
}

impl Scene {
    /// Whether the name of the call has this part.
    fn is(self, part: &str) -> bool {
        format!("{:?}", self.call).contains(part)
    }

    /// A node that makes such calls on volumes of this group.
    pub fn node(self, steps: &Path, vg: &str) -> Node {
        let mut lines = format!("tool_dirs = [{:?}]\n", text(steps));
        if self.unmounts() {
            lines += "deactivate = true\n";
        }
        if self.is_encrypted() {
            lines += &crypt::config(&crypt::key_file(vg));
        }
        if self.is_creating() {
            lines = format!("{lines}[volume_group.{vg}]\ncreate = true\n");
        }
        if self.call == Call::MountCreatingRaid {
            // On one disk, which LVM would not do by itself.
            lines += "lvcreate_options = ['--type', 'raid1', '-m', '1', '--alloc', 'anywhere']\n";
        }
        let mode = match self.call {
            Call::MountDevice => Mode::Attach,
            _ => Mode::MountOnly,
        };
        Node::with_config(mode, &lines)
    }

    /// Whether LVM's part of this call is not that of another scene too.
    pub fn is_first_of_its_kind(self) -> bool {
        self.fs == "ext4" && self.call != Call::MountDevice && !self.is_encrypted()
    }

    fn is_creating(self) -> bool {
        self.is("Creating")
    }

    fn is_encrypted(self) -> bool {
        self.is("Encrypt")
    }

    fn unmounts(self) -> bool {
        self.is("Unmount")
    }

    fn size(self) -> &'static str {
        let all = if self.is_encrypted() {
            crypt::SIZES
        } else {
            FILESYSTEMS
        };
        all.iter().find(|fs| fs.0 == self.fs).unwrap().1
    }

    /// The call on this volume. Changes nothing.
    pub fn stage(self, node: &Node, vg: &str, lv: &str) -> Stage {
        let mut volume = Volume::of(vg, lv).fs(self.fs).with("size", self.size());
        if self.call == Call::MountCreatingThin {
            volume = volume.with("thinpool", "pool");
        }
        if self.is_encrypted() {
            volume = volume.encrypted();
        }
        let (pod, global) = (node.pod_dir(POD, &volume), node.global_dir(&volume));
        let (json, json_for_pod) = (volume.json(), volume.json_for(POD));
        let read_only = volume.clone().read_only().json_for(POD);
        let device = volume.device();
        let words: &[&str] = match self.call {
            Call::MountSecond => &["mount", text(&pod), &read_only],
            Call::MountDevice => &["mountdevice", text(&global), &device, &json],
            _ if self.is("Grow") => &["expandfs", &json, "", text(&pod), "471859200", "0"],
            _ if self.unmounts() => &["unmount", text(&pod)],
            _ => &["mount", text(&pod), &json_for_pod],
        };
        let args = words.iter().map(|word| (*word).to_owned()).collect();
        let before = match self.call {
            Call::MountSecond => Some(node.pod_dir("first", &volume)),
            _ if self.is("Grow") || self.unmounts() => Some(pod.clone()),
            _ => None,
        };
        Stage {
            volume,
            args,
            dir: match self.call {
                Call::MountDevice => global,
                _ => pod,
            },
            has_page: before.is_some() || self.begins_with_data(),
            before,
        }
    }

    /// A pod has written to the volume before, and has gone.
    fn begins_with_data(self) -> bool {
        use Call::{MountEncrypted, MountExtended, MountForeign};
        [MountForeign, MountExtended, MountEncrypted].contains(&self.call)
    }

    /// Makes the volume, and brings it to where the call begins.
    pub fn prepare(self, node: &Node, group: &Group, stage: &Stage) {
        let Stage { volume, dir, .. } = stage;
        let lv = volume.lv();
        if !self.is_creating() {
            // In the place of the one before it: what that held must be older, to the second.
            Group::wait_for_the_next_second();
            group.linear(lv, self.size());
        }
        let write = |dir: &Path| write_synced(&dir.join("page"), lv);
        match self.call {
            Call::Mount | Call::MountEncrypting => {}
            Call::MountCreating | Call::MountCreatingRaid => {
                group.leave_behind(self.size(), self.fs, THEIRS);
            }
            Call::MountCreatingThin => {
                if !group.has("pool") {
                    group.pool();
                    // LVM does some steps only for the first volume of a pool.
                    group.thin("first", self.size());
                }
            }
            Call::MountInactive => group.lv("lvchange", &["-an"], lv),
            _ if self.begins_with_data() => {
                node.write(POD, volume, lv);
                match self.call {
                    Call::MountForeign => group.forget(lv),
                    Call::MountExtended => group.lv("lvextend", &["-L", "+64m"], lv),
                    _ => {}
                }
            }
            Call::MountSecond => write(&node.up("first", volume)),
            Call::MountDevice => {
                node.does(&["attach", &volume.json(), &host_name()]);
            }
            _ => write(&node.up(POD, volume)),
        }
        if self.call != Call::MountInactive {
            precreated(dir.clone());
        }
    }

    /// Cuts the call short, repeats it, and checks all that must be true then. `false`: the call
    /// ended without coming to this step.
    pub fn try_step(
        self,
        (node, steps, group): (&Node, &Steps, &Group),
        lv: &str,
        step: &Step,
        victim: Victim,
    ) -> bool {
        let mut stage = self.stage(node, &group.name, lv);
        self.prepare(node, group, &stage);
        let cut = steps.cut(node, &stage.args, step, victim);
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

    /// Makes the call again until it succeeds. What only a kill can leave, an operator does first:
    /// each message names it, and README what it does not.
    fn repeat(self, node: &Node, group: &Group, stage: &Stage) {
        let (lv, device) = (stage.volume.lv(), stage.volume.device());
        for _ in 0..4 {
            let reply = node.call(&words(&stage.args));
            if reply.status == "Success" {
                return;
            }
            println!("an operator's: {reply:?}");
            let said = |words: &str| reply.message.contains(words);
            if self.is_creating() && said(&format!("`lvremove {}/{lv}`", group.name)) {
                assert!(!stage.has_page, "{reply:?}");
                group.lv("lvremove", &[], lv);
            } else if let Some(repair) = reply.command("e2fsck -b") {
                // e2fsck writes the fields of the superblock one after another, and its checksum last.
                assert!(stage.has_page, "{reply:?}");
                run("sh", &["-c", &format!("{repair} -y || [ $? = 1 ]")]);
            } else if let Some((_, rest)) = reply.message.split_once("run `dmsetup clear ") {
                // A killed `cryptsetup resize`.
                let rest = rest.split('`').next().unwrap();
                run("sh", &["-c", &format!("dmsetup clear {rest}")]);
            } else if let Some((_, rest)) = reply.message.split_once("`dmsetup remove flexvolume.")
            {
                // A killed `cryptsetup open` had made the device, and given it no table yet.
                let name = format!("flexvolume.{}", rest.split('`').next().unwrap());
                assert_eq!(run("dmsetup", &["table", &name]), "", "{reply:?}");
                run("dmsetup", &["remove", &name]);
            } else if said(&format!("allow-format {}/{lv}", group.name)) {
                // luksFormat had written noise, and no header or a part of one.
                let is_new = self.call == Call::MountEncrypting && !stage.has_page;
                assert!(is_new, "{reply:?}");
                let id = format!("{}/{lv}", group.name);
                run("wipefs", &["--all", &device]);
                node.prints(&["allow-format", &id, "--yes"], "", 0);
            } else {
                assert!(is_mended(&device, &reply), "the repeated call: {reply:?}");
            }
        }
        panic!("{} comes to no end", name_of(self));
    }

    /// Holds when the repeated call has succeeded.
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
            // For the sake of deactivating.
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

/// What an operator does about the remains of a call that was killed, whichever it was.
pub fn is_mended(device: &str, reply: &Reply) -> bool {
    let message = &reply.message;
    if message.contains("Superblock checksum does not match superblock") {
        let fix = "set_super_value state 0";
        run("debugfs", &["-n", "-w", "-R", fix, device]);
    } else if let Some((_, part)) = message.split_once("prohibited while logical volume ") {
        run("lvchange", &["-an", part.split(' ').next().unwrap()]);
    } else {
        return false;
    }
    true
}

/// Its own device or the one inside.
fn is_suspended(volume: &Volume) -> bool {
    [volume.device(), volume.mounted()].iter().any(|device| {
        let Ok(node) = fs::canonicalize(device) else {
            return false;
        };
        let suspended = Path::new("/sys/class/block").join(node.file_name().unwrap());
        read(&suspended.join("dm/suspended")) != "0\n"
    })
}

/// No lock of the driver is held by anybody.
fn assert_unlocked() {
    for entry in fs::read_dir("/run/flexvolume-lvm").unwrap() {
        let path = entry.unwrap().path();
        let file = fs::File::open(&path).unwrap();
        assert!(file.try_lock().is_ok(), "{} is held", path.display());
    }
}

/// The filesystem's own check finds nothing.
pub fn assert_clean(fs: &str, device: &str) {
    match fs {
        "xfs" => run("xfs_repair", &["-n", device]),
        "btrfs" => run("btrfs", &["check", "--readonly", device]),
        _ => run("e2fsck", &["-f", "-n", device]),
    };
}
