//! The calls that are cut short, and the state of the volume before each.

use std::path::{Path, PathBuf};

use crate::crypt;
use crate::prelude::*;

const POD: &str = "pod";
/// A file that a removed volume held.
pub const THEIRS: &str = "theirs";

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
    pub fn is(self, part: &str) -> bool {
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

    pub fn is_creating(self) -> bool {
        self.is("Creating")
    }

    pub fn is_encrypted(self) -> bool {
        self.is("Encrypt")
    }

    pub fn unmounts(self) -> bool {
        self.is("Unmount")
    }

    pub fn size(self) -> &'static str {
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
            let made = group.linear(lv, self.size());
            // An earlier trial has left data in this place.
            run("blkdiscard", &["--force", "--zeroout", &made.device()]);
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
}
