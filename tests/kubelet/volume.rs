//! A logical volume of a case, and what a pod's manifest says of it.

use serde_json::{Value, json};

use crate::prelude::*;

#[derive(Clone)]
pub struct Volume {
    /// Its name in the pods.
    pub name: String,
    lv: String,
    fs: String,
    options: Value,
    secret: Option<String>,
    claimed: bool,
}

impl Volume {
    /// Makes a blank logical volume for ext4. Pods call it by its own name.
    pub fn new(case: &str, name: &str) -> Self {
        let volume = Self::that_is_there(case, name);
        let lv = &volume.lv;
        sh(&format!("lvcreate -qq -y -W y -n {lv} -L 32m {GROUP}"));
        volume
    }

    /// A volume that is made elsewhere, or not at all.
    pub fn that_is_there(case: &str, name: &str) -> Self {
        let lv = format!("{case}-{name}");
        Self {
            name: name.to_owned(),
            fs: "ext4".to_owned(),
            options: json!({"volumegroup": GROUP, "volumeID": lv, "size": "32m"}),
            lv,
            secret: None,
            claimed: false,
        }
    }

    pub fn fs(mut self, fs: &str) -> Self {
        fs.clone_into(&mut self.fs);
        self
    }

    /// The same volume under another name in the pod.
    pub fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    pub fn with(mut self, option: &str, value: &str) -> Self {
        self.options[option] = value.into();
        self
    }

    /// The same volume, which hands this Secret to the driver.
    pub fn secret(mut self, name: &str) -> Self {
        self.secret = Some(name.to_owned());
        self
    }

    /// The same volume, which pods get by a claim of its name.
    pub fn claimed(mut self) -> Self {
        self.claimed = true;
        self
    }

    /// The entry of the pod's `volumes`.
    pub fn manifest(&self, driver: &str) -> Value {
        if self.claimed {
            json!({"name": self.name, "persistentVolumeClaim": {"claimName": self.name}})
        } else {
            json!({"name": self.name, "flexVolume": self.source(driver)})
        }
    }

    /// The driver's options, as a pod or a `PersistentVolume` has them.
    pub fn source(&self, driver: &str) -> Value {
        let mut source = json!({
            "driver": driver,
            "fsType": self.fs,
            "options": self.options,
        });
        if let Some(secret) = &self.secret {
            source["secretRef"] = json!({"name": secret});
        }
        source
    }

    pub fn device(&self) -> String {
        crate::support::volume::device(GROUP, &self.lv)
    }

    pub fn mounts(&self) -> Vec<String> {
        mounts_of(&self.device())
    }

    /// Waits until it is mounted nowhere.
    pub fn is_unmounted(&self) {
        wait_until(&format!("{} is mounted nowhere", self.lv), || {
            self.mounts().is_empty()
        });
    }

    /// The tags of the logical volume.
    pub fn tags(&self) -> String {
        self.field("lv_tags")
    }

    /// LVM's report of it; a size is in MiB.
    pub fn field(&self, name: &str) -> String {
        let id = self.id();
        run("lvs", &["--noheadings", "--units=m", "-o", name, &id])
    }

    /// `<group>/<volume>`, as LVM writes it.
    pub fn id(&self) -> String {
        format!("{GROUP}/{}", self.lv)
    }
}
