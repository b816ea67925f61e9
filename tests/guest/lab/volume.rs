//! A volume as a pod's manifest names it, and the options that kubelet makes of that.

use std::collections::BTreeMap;

use crate::prelude::*;

/// Those that the driver knows best, each with a size that is enough for it.
pub const FILESYSTEMS: [(&str, &str); 3] = [("ext4", "32m"), ("xfs", "300m"), ("btrfs", "128m")];

#[derive(Clone)]
pub struct Volume {
    /// Its name in the pod, or that of the `PersistentVolume`.
    pub name: String,
    vg: String,
    lv: String,
    options: BTreeMap<String, String>,
}

impl Volume {
    /// An ext4 volume for writing.
    pub fn new(group: &Group, lv: &str) -> Self {
        Self::of(&group.name, lv)
    }

    pub fn of(vg: &str, lv: &str) -> Self {
        // Kubernetes' names have fewer characters than LVM's.
        let name = format!("{}-of-pod", lv.replace(['+', '_'], "-"));
        let volume = Self {
            name: name.clone(),
            vg: vg.to_owned(),
            lv: lv.to_owned(),
            options: BTreeMap::new(),
        };
        volume
            .with("volumegroup", vg)
            .with("volumeID", lv)
            .with("size", "64m")
            .with("kubernetes.io/fsType", "ext4")
            .with("kubernetes.io/readwrite", "rw")
            .with("kubernetes.io/pvOrVolumeName", &name)
    }

    /// The same with this option; an empty value leaves it out.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        if value.is_empty() && !key.starts_with("kubernetes.io/") {
            self.options.remove(key);
        }
        self
    }

    pub fn fs(self, fs: &str) -> Self {
        self.with("kubernetes.io/fsType", fs)
    }

    pub fn read_only(self) -> Self {
        self.with("kubernetes.io/readwrite", "ro")
    }

    pub fn device(&self) -> String {
        device(&self.vg, &self.lv)
    }

    /// An encrypted one.
    pub fn encrypted(self) -> Self {
        self.with("encryption", "luks2")
    }

    /// The device that is mounted: of an encrypted volume the one inside.
    pub fn mounted(&self) -> String {
        if !self.options.contains_key("encryption") {
            return self.device();
        }
        let id = format!("{}/{}", self.vg, self.lv);
        let uuid = run("lvs", &["--noheadings", "-o", "lv_uuid", &id]);
        format!("/dev/mapper/flexvolume.{}", uuid.trim().replace('-', ""))
    }

    pub fn vg(&self) -> &str {
        &self.vg
    }

    pub fn lv(&self) -> &str {
        &self.lv
    }

    /// The UUID of its filesystem.
    pub fn uuid(&self) -> String {
        let device = self.device();
        run("blkid", &["-p", "-o", "value", "-s", "UUID", &device])
    }

    /// Copies all bytes to another volume, as a power cut or whoever restores a backup does.
    #[track_caller]
    pub fn copy_to(&self, other: &Self) {
        let (from, to) = (self.device(), other.device());
        sh(&format!(
            "dd if={from} of={to} bs=1M conv=fsync status=none"
        ));
    }

    pub fn json(&self) -> String {
        serde_json::to_string(&self.options).unwrap()
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
