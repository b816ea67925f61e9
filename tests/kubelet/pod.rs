//! A pod, as a file that kubelet reads; or as an object, if there is a control plane.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::prelude::*;

/// A pod that kubelet has been asked to run.
pub struct Pod {
    /// The pod's name. If the pod is a file, kubelet adds the node's name.
    pub name: String,
    uid: String,
    manifest: Value,
}

impl Pod {
    /// A pod that sees the volume at /data, runs these lines of shell and goes on running.
    pub fn new(driver: &Driver, name: &str, volume: &Volume, lines: &str) -> Self {
        static PODS: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{name}", driver.case);
        let uid = format!("{name}-{}", PODS.fetch_add(1, Ordering::Relaxed));
        // A shell that is process 1 must ask for SIGTERM, and waits in a way that it can be told.
        let script = format!("trap exit TERM\n{lines}\nwhile :; do sleep 1000 & wait; done");
        let manifest = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": uid},
            "spec": {
                "nodeName": NODE,
                "hostNetwork": true,
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "main",
                    "image": "localhost/pod:test",
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", script],
                    "volumeMounts": [{"name": volume.name, "mountPath": "/data"}],
                }],
                "volumes": [volume.manifest(&driver.name())],
            },
        });
        Self {
            name,
            uid,
            manifest,
        }
    }

    /// A pod that writes `text` to a file of the volume, waits until the text is on the disk, and prints "written".
    pub fn writing(driver: &Driver, name: &str, volume: &Volume, text: &str) -> Self {
        let lines = format!("echo {text} > /data/page && sync && echo written");
        Self::new(driver, name, volume, &lines).started()
    }

    /// Reads the file of [`Pod::writing`], and prints its text.
    pub fn reading(driver: &Driver, name: &str, volume: &Volume) -> Self {
        Self::new(driver, name, volume, "cat /data/page").started()
    }

    /// A pod that writes "kept". Returns when the pod has written it.
    pub fn written(driver: &Driver, name: &str, volume: &Volume) -> Self {
        let pod = Self::writing(driver, name, volume, "kept");
        pod.says("written");
        pod
    }

    /// A pod that finds "kept". Returns when the pod has printed it.
    pub fn finding(driver: &Driver, name: &str, volume: &Volume) -> Self {
        let pod = Self::reading(driver, name, volume);
        pod.says("kept");
        pod
    }

    /// A pod that writes "kept" to the volume, prints "written", and then prints the question of [`Pod::answers`].
    pub fn answering(driver: &Driver, name: &str, volume: &Volume) -> Self {
        let lines = "echo kept > /data/page && sync && echo written\n\
            while [ ! -e /data/question ]; do sleep 1; done\n\
            cat /data/question";
        Self::new(driver, name, volume, lines).started()
    }

    /// Writes a question to the pod's volume, and waits until the pod prints it.
    pub fn answers(&self, driver: &Driver, volume: &Volume) {
        let question = self.volume_dir(driver, volume).join("question");
        fs::write(question, "are you well?\n").unwrap();
        self.says("are you well?");
    }

    /// Changes a part of the manifest.
    pub fn with(mut self, pointer: &str, key: &str, value: Value) -> Self {
        self.manifest.pointer_mut(pointer).unwrap()[key] = value;
        self
    }

    /// Hands the pod to kubelet.
    pub fn started(mut self) -> Self {
        if api::is_there() {
            let made = api::create("pods", &self.manifest);
            let uid = made["metadata"]["uid"].as_str().unwrap();
            uid.clone_into(&mut self.uid);
            return self;
        }
        let file = manifest_of(&self.name);
        let new = file.with_extension("new");
        let new = Path::new(KUBELET).join(new.file_name().unwrap());
        fs::write(&new, self.manifest.to_string()).unwrap();
        fs::File::open(&new).unwrap().sync_all().unwrap();
        fs::rename(new, file).unwrap();
        self
    }

    /// The output of the pod's container, of all its starts.
    pub fn log(&self) -> String {
        let tail = format!("_{}", self.uid);
        let mut files = Vec::new();
        for dir in entries(Path::new("/var/log/pods")) {
            if dir.to_string_lossy().ends_with(&tail) {
                files = entries(&dir.join("main"));
            }
        }
        files.sort();
        let texts = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap_or_default());
        // Each line begins with a time, the stream and a mark.
        let line = |line: &str| line.splitn(4, ' ').nth(3).unwrap_or("").to_owned() + "\n";
        texts
            .flat_map(|text| text.lines().map(line).collect::<Vec<_>>())
            .collect()
    }

    /// Waits until the container has printed a line.
    pub fn says(&self, line: &str) {
        wait_for(&format!("{} says {line:?}", self.name), || {
            self.log().lines().any(|said| said == line).then_some(())
        });
    }

    /// Takes the pod from kubelet.
    pub fn delete(&self) {
        if api::is_there() {
            api::delete(&format!("pods/{}", self.name));
        } else {
            fs::remove_file(manifest_of(&self.name)).unwrap();
        }
    }

    /// Waits until nothing of the pod is left on the node.
    pub fn is_gone(&self) {
        let dir = Path::new(KUBELET).join("pods").join(&self.uid);
        wait_until(&format!("{} is gone", self.name), || !dir.exists());
    }

    pub fn ends(&self) {
        self.delete();
        self.is_gone();
    }

    /// Where kubelet has the volume for this pod.
    pub fn volume_dir(&self, driver: &Driver, volume: &Volume) -> PathBuf {
        let volumes = format!("pods/{}/volumes/{}~lvm", self.uid, driver.case);
        Path::new(KUBELET).join(volumes).join(&volume.name)
    }
}

/// Starts kubelet, installs a driver for this case, and makes a blank volume.
pub fn scene(case: &str, mode: Mode) -> (impl Drop, String, Driver, Volume) {
    let (running, case) = (shared(), mode.case(case));
    let (driver, volume) = (Driver::new(&case, mode), Volume::new(&case, "data"));
    (running, case, driver, volume)
}

/// Takes the pods from kubelet, and waits until neither they nor the mounts of their volume are on
/// the node, and the last calls have been made.
pub fn all_end(driver: &Driver, mode: Mode, volume: &Volume, pods: &[Pod]) {
    ending_with(last_call(mode), driver, volume, pods)();
}

/// [`all_end`] in two steps: takes the pods from kubelet, and returns a function that waits for their end. Meanwhile
/// others can end. `last`: the call-out after the last unmount.
pub fn ending_with<'a>(
    last: Option<&'static str>,
    driver: &'a Driver,
    volume: &'a Volume,
    pods: &'a [Pod],
) -> impl FnOnce() + 'a {
    let before = last.map_or(0, |last| driver.count(last));
    for pod in pods {
        pod.delete();
    }
    move || {
        for pod in pods {
            pod.is_gone();
        }
        volume.is_unmounted();
        if let Some(last) = last {
            driver.has_answered(last, before + 1);
        }
    }
}

/// The last call-out after an unmount, if kubelet attaches by itself. `None`: the unmount is the last.
pub fn last_call(mode: Mode) -> Option<&'static str> {
    (mode == Mode::Attach).then_some("detach")
}

/// Whether a second pod of the node gets an inline volume that another pod has. Since 1.27 kubelet looks for the
/// `PersistentVolume` of a volume that it has attached, and an inline volume has none.
pub fn inline_is_shared(mode: Mode) -> bool {
    mode == Mode::MountOnly || !since(27)
}

fn manifest_of(pod: &str) -> PathBuf {
    Path::new(MANIFESTS).join(format!("{pod}.json"))
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}
