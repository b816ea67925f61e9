//! What a case does with a volume beside its calls.

use crate::prelude::*;

/// The filesystems that the driver knows best, each with a size that is enough for it.
pub const FILESYSTEMS: [(&str, &str); 3] = [("ext4", "32m"), ("xfs", "300m"), ("btrfs", "128m")];

impl Volume {
    /// An ext4 volume for writing.
    pub fn new(group: &Group, lv: &str) -> Self {
        Self::of(&group.name, lv)
    }

    /// The device that is mounted. If the volume is encrypted, this is the device inside.
    pub fn mounted(&self) -> String {
        if !self.is_encrypted() {
            return self.device();
        }
        let id = format!("{}/{}", self.vg(), self.lv());
        let uuid = run("lvs", &["--noheadings", "-o", "lv_uuid", &id]);
        format!("/dev/mapper/flexvolume.{}", uuid.replace('-', ""))
    }

    /// The UUID of the volume's filesystem.
    pub fn uuid(&self) -> String {
        let device = self.device();
        run("blkid", &["-p", "-o", "value", "-s", "UUID", &device])
    }

    /// Copies all bytes to another volume. Then the other volume is as a power cut leaves this one, or as a person
    /// restores it from a backup.
    #[track_caller]
    pub fn copy_to(&self, other: &Self) {
        let (from, to) = (self.device(), other.device());
        sh(&format!(
            "dd if={from} of={to} bs=1M conv=fsync status=none"
        ));
    }

    /// The options of `mount`, which also name the pod.
    pub fn json_for(&self, pod: &str) -> String {
        self.clone()
            .with("kubernetes.io/pod.name", pod)
            .with("kubernetes.io/pod.namespace", "default")
            .with("kubernetes.io/pod.uid", pod)
            .with("kubernetes.io/serviceAccount.name", "default")
            .json()
    }
}
