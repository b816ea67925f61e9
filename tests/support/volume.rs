//! A volume as a pod's manifest names it, and the options that kubelet makes of that.

use std::collections::BTreeMap;

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

    /// The same volume with this option. A template may leave the value empty.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn fs(self, fs: &str) -> Self {
        self.with("kubernetes.io/fsType", fs)
    }

    pub fn read_only(self) -> Self {
        self.with("kubernetes.io/readwrite", "ro")
    }

    /// The same volume, to be encrypted.
    pub fn encrypted(self) -> Self {
        self.with("encryption", "luks2")
    }

    pub fn is_encrypted(&self) -> bool {
        self.options.contains_key("encryption")
    }

    pub fn device(&self) -> String {
        device(&self.vg, &self.lv)
    }

    pub fn vg(&self) -> &str {
        &self.vg
    }

    pub fn lv(&self) -> &str {
        &self.lv
    }

    pub fn options(&self) -> &BTreeMap<String, String> {
        &self.options
    }

    pub fn json(&self) -> String {
        serde_json::to_string(&self.options).unwrap()
    }
}

/// The device that a volume must have: device-mapper doubles the hyphens of both names.
pub fn device(vg: &str, lv: &str) -> String {
    let [vg, lv] = [vg, lv].map(|name| name.replace('-', "--"));
    format!("/dev/mapper/{vg}-{lv}")
}
