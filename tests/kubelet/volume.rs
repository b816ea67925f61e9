//! A logical volume of a case, and what a pod's manifest says of it.

use serde_json::{Value, json};

use crate::prelude::*;

/// The key of a [`Volume`] that pods get by a claim of its name. It is no option of the driver.
const CLAIMED: &str = "kubernetes.io/claimed";
/// The key for the Secret that the volume hands to the driver. It is no option of the driver.
const SECRET: &str = "kubernetes.io/secretRef";

impl Volume {
    /// Makes a blank logical volume for ext4. Pods call it by its own name.
    pub fn new(case: &str, name: &str) -> Self {
        let lv = format!("{case}-{name}");
        sh(&format!("lvcreate -qq -y -W y -n {lv} -L 32m {GROUP}"));
        Self::of(GROUP, &lv).with("size", "32m").called(name)
    }

    /// The same volume under another name in the pod.
    pub fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The same volume, which hands this Secret to the driver.
    pub fn secret(self, name: &str) -> Self {
        self.with(SECRET, name)
    }

    /// The same volume, which pods get by a claim of its name.
    pub fn claimed(self) -> Self {
        self.with(CLAIMED, "")
    }

    /// The entry of the pod's `volumes`.
    pub fn manifest(&self, driver: &str) -> Value {
        if self.options().contains_key(CLAIMED) {
            json!({"name": self.name, "persistentVolumeClaim": {"claimName": self.name}})
        } else {
            json!({"name": self.name, "flexVolume": self.source(driver)})
        }
    }

    /// The driver's options, as a pod or a `PersistentVolume` has them.
    pub fn source(&self, driver: &str) -> Value {
        let mut options = self.options().clone();
        options.retain(|key, _| !key.starts_with("kubernetes.io/"));
        let fs = &self.options()["kubernetes.io/fsType"];
        let mut source = json!({"driver": driver, "fsType": fs, "options": options});
        if let Some(secret) = self.options().get(SECRET) {
            source["secretRef"] = json!({"name": secret});
        }
        source
    }

    /// Waits until the volume is mounted nowhere.
    pub fn is_unmounted(&self) {
        wait_until(&format!("{} is mounted nowhere", self.lv()), || {
            mounts_of(&self.device()).is_empty()
        });
    }

    /// A field of LVM's report of the volume. Sizes are in MiB.
    pub fn field(&self, name: &str) -> String {
        let id = format!("{GROUP}/{}", self.lv());
        run("lvs", &["--noheadings", "--units=m", "-o", name, &id])
    }

    /// The tags of the logical volume.
    pub fn tags(&self) -> String {
        self.field("lv_tags")
    }
}
