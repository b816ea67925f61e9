//! A node with the driver installed, and kubelet's part in calling it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::failure;
use crate::prelude::*;
use crate::support::schema;

/// A node with a kubelet's directory of its own, so that cases do not disturb each other.
pub struct Node {
    pub mode: Mode,
    top: PathBuf,
    kubelet: PathBuf,
}

/// What a list says of a volume that it could not look at now.
const NO_ANSWERS: [&str; 3] = ["not-read", "busy", "not read"];

impl Node {
    pub fn new(mode: Mode) -> Self {
        Self::with_config(mode, "")
    }

    /// A node, and a group with one blank volume of 32 MiB, `data`.
    pub fn with_data(mode: Mode, group: &str) -> (Self, Group, Volume) {
        let (group, volume) = Group::with_data(group);
        (Self::new(mode), group, volume)
    }

    /// A node with these lines in its config file, beside those for its mode.
    pub fn with_config(mode: Mode, lines: &str) -> Self {
        static NODES: AtomicU32 = AtomicU32::new(0);
        failure::is_shown();
        let number = NODES.fetch_add(1, Ordering::Relaxed);
        let top = PathBuf::from(format!("/run/node{number}"));
        let kubelet = top.join("kubelet");
        let mut node = Self { mode, top, kubelet };
        fs::create_dir_all(node.exe().parent().unwrap()).unwrap();
        fs::create_dir_all(&node.kubelet).unwrap();
        fs::copy(driver(), node.exe()).unwrap();
        fs::set_permissions(node.exe(), fs::Permissions::from_mode(0o755)).unwrap();
        node.configure(mode, lines);
        node
    }

    /// A node as the bash script left it: no config file, and kubelet's usual directory.
    pub fn without_config() -> Self {
        let mut node = Self::new(Mode::Attach);
        fs::remove_file(node.exe().with_file_name("config.toml")).unwrap();
        node.kubelet = PathBuf::from("/var/lib/kubelet");
        node
    }

    /// A node whose driver somebody else puts into this plugin directory.
    pub fn without_driver(mode: Mode, plugin_dir: &Path) -> Self {
        let node = Self::new(mode);
        let dir = node.top.join("exec");
        fs::remove_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink(plugin_dir, dir).unwrap();
        node
    }

    /// Writes the config file anew.
    pub fn configure(&mut self, mode: Mode, lines: &str) {
        self.mode = mode;
        let text = format!(
            "attach = {}\nkubelet_dirs = ['{}']\n{lines}\n",
            mode == Mode::Attach,
            self.kubelet.display()
        );
        fs::write(self.exe().with_file_name("config.toml"), text).unwrap();
    }

    pub fn exe(&self) -> PathBuf {
        self.top.join("exec/kubernetes.io~lvm/lvm")
    }

    /// kubelet's own directory.
    pub fn kubelet_dir(&self) -> &Path {
        &self.kubelet
    }

    /// Where kubelet mounts the volume for the whole node.
    pub fn global_dir(&self, volume: &Volume) -> PathBuf {
        self.kubelet
            .join("plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts")
            .join(&volume.name)
    }

    /// Where the pod's container finds the volume.
    pub fn pod_dir(&self, pod: &str, volume: &Volume) -> PathBuf {
        self.kubelet
            .join(format!("pods/{pod}/volumes/kubernetes.io~lvm"))
            .join(&volume.name)
    }

    /// Calls the driver, which must answer with one JSON document, nothing on standard error, and
    /// the exit status that goes with the answer.
    #[track_caller]
    pub fn call(&self, args: &[&str]) -> Reply {
        let mut command = assert_cmd::Command::new(self.exe());
        // kubelet waits for ever; this only ends a test that would never end.
        command.args(args).timeout(Duration::from_secs(600));
        let output = failure::remembered(args, || command.output().unwrap());
        Reply::of(args, &output)
    }

    /// `mount` for a pod, on a directory that is there.
    #[track_caller]
    pub fn mount(&self, pod: &str, volume: &Volume) -> Reply {
        let dir = precreated(self.pod_dir(pod, volume));
        self.call(&["mount", text(&dir), &volume.json_for(pod)])
    }

    /// Begins `mount` for a pod, on a directory that is there.
    pub fn start_mount(&self, pod: &str, volume: &Volume) -> Running {
        let dir = precreated(self.pod_dir(pod, volume));
        self.start(&["mount", text(&dir), &volume.json_for(pod)])
    }

    /// Begins a call.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut command = Command::new(self.exe());
        command.args(args);
        Running::new(command)
    }

    /// The output and the exit code of a command for people.
    #[track_caller]
    pub fn says(&self, args: &[&str]) -> (String, i32) {
        let output = assert_cmd::Command::new(self.exe()).args(args).output();
        let output = output.unwrap();
        schema::holds(args, &String::from_utf8_lossy(&output.stdout));
        let text = [output.stdout, output.stderr].concat();
        let code = output.status.code().unwrap();
        (String::from_utf8(text).unwrap(), code)
    }

    /// The JSON that a command for people prints, and the exit code.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> (Value, i32) {
        let args = [args, &["--json"]].concat();
        let output = assert_cmd::Command::new(self.exe()).args(&args).output();
        let output = output.unwrap();
        // A note about the words of the command line goes to standard error.
        let said = String::from_utf8(output.stdout).unwrap();
        schema::holds(&args, &said);
        let json = serde_json::from_str(&said);
        (
            json.unwrap_or_else(|e| panic!("{args:?}: {e}: {said}")),
            output.status.code().unwrap(),
        )
    }

    /// Runs a command for people, which must print these words and end with this code. On a busy machine a list may
    /// have no time to read all, and says so. The command is then run again. Any other output is an error at once.
    #[track_caller]
    pub fn prints(&self, args: &[&str], words: &str, code: i32) -> String {
        let is_right = |(said, is): &(String, i32)| said.contains(words) && *is == code;
        let is_an_answer =
            |(said, _): &(String, i32)| !NO_ANSWERS.iter().any(|word| said.contains(word));
        let (said, is) = at_last(
            || self.says(args),
            |said| is_right(said) || is_an_answer(said),
        );
        assert!(said.contains(words) && is == code, "{args:?}: {is} {said}");
        said
    }

    /// Calls the driver and expects success.
    #[track_caller]
    pub fn does(&self, args: &[&str]) -> Reply {
        let reply = self.call(args);
        assert_eq!(reply.status, "Success", "{args:?}: {reply:?}");
        reply
    }

    /// Calls the driver and expects a failure that says these words and has changed nothing: see
    /// [`Snapshot`].
    #[track_caller]
    pub fn refuses(&self, args: &[&str], words: &[&str]) -> Reply {
        let before = Snapshot::take(&self.kubelet);
        let reply = self.call(args);
        reply.is_failure(words);
        assert_eq!(Snapshot::take(&self.kubelet), before, "{reply:?}");
        reply
    }

    /// Calls `mount` for another pod, and expects a failure as [`Self::refuses`] does.
    #[track_caller]
    pub fn refuses_mount(&self, volume: &Volume, words: &[&str]) -> Reply {
        let dir = precreated(self.pod_dir("refused", volume));
        self.refuses(&["mount", text(&dir), &volume.json_for("refused")], words)
    }

    /// Brings the volume up for a pod, as kubelet does in this node's mode.
    #[track_caller]
    pub fn up(&self, pod: &str, volume: &Volume) -> PathBuf {
        if self.mode == Mode::Attach {
            self.up_globally(volume);
        }
        let dir = precreated(self.pod_dir(pod, volume));
        if mount_at(&dir).is_none() {
            self.does(&["mount", text(&dir), &volume.json_for(pod)]);
        }
        let mount = mount_at(&dir).unwrap_or_else(|| panic!("nothing on {}", dir.display()));
        assert_eq!(mount.source, volume.mounted());
        dir
    }

    /// A pod that writes a page to the volume, and goes.
    #[track_caller]
    pub fn write(&self, pod: &str, volume: &Volume, page: &str) {
        write_synced(&self.up(pod, volume).join("page"), page);
        self.down(pod, volume);
    }

    /// A pod that comes and goes.
    #[track_caller]
    pub fn visit(&self, volume: &Volume) {
        self.up("pod", volume);
        self.down("pod", volume);
    }

    /// A pod that finds this page, and goes.
    #[track_caller]
    pub fn finds(&self, volume: &Volume, page: &str) {
        assert_eq!(read(&self.up("pod", volume).join("page")), page);
        self.down("pod", volume);
    }

    /// Makes the calls that kubelet makes in attach mode before the first pod's mount. Returns the global directory.
    #[track_caller]
    pub fn up_globally(&self, volume: &Volume) -> PathBuf {
        let json = volume.json();
        let device = self.does(&["attach", &json, &host_name()]).device;
        let device = device.as_deref().unwrap_or("");
        let waited = self.does(&["waitforattach", device, &json]).device;
        assert_eq!(waited.as_deref(), Some(device));
        assert_eq!(device, volume.device());
        let dir = precreated(self.global_dir(volume));
        if mount_at(&dir).is_none() {
            self.does(&["mountdevice", text(&dir), device, &json]);
        }
        assert_eq!(mount_at(&dir).unwrap().source, volume.mounted());
        dir
    }

    /// Takes the volume from a pod.
    #[track_caller]
    pub fn down(&self, pod: &str, volume: &Volume) {
        let dir = self.pod_dir(pod, volume);
        self.does(&["unmount", text(&dir)]);
        gone(&dir);
    }

    /// Makes the calls that kubelet makes in attach mode after the last pod's unmount.
    #[track_caller]
    pub fn down_globally(&self, volume: &Volume) {
        if self.mode == Mode::Attach {
            let dir = self.global_dir(volume);
            self.does(&["unmountdevice", text(&dir)]);
            gone(&dir);
            self.does(&["detach", &volume.name, &host_name()]);
        }
    }

    /// Takes the volume from these pods, which are its last pods.
    #[track_caller]
    pub fn all_down(&self, pods: &[&str], volume: &Volume) {
        for pod in pods {
            self.down(pod, volume);
        }
        self.down_globally(volume);
    }

    /// Grows the volume, as kubelet does in this node's mode.
    #[track_caller]
    pub fn grow(&self, pod: &str, volume: &Volume, bytes: u64) -> Reply {
        let (device, dir) = match self.mode {
            Mode::Attach => (volume.device(), self.global_dir(volume)),
            Mode::MountOnly => (String::new(), self.pod_dir(pod, volume)),
        };
        let (json, new) = (volume.json(), bytes.to_string());
        self.call(&["expandfs", &json, &device, text(&dir), &new, "0"])
    }
}

/// Runs a case in both modes, each with a node and a blank volume of its own in this group.
pub fn in_both_modes(group: &Group, case: impl Fn(&Node, &Volume)) {
    for mode in BOTH_MODES {
        let (node, volume) = (Node::new(mode), group.linear(mode.lv(), "32m"));
        let before = mounts();
        case(&node, &volume);
        node.down_globally(&volume);
        assert_eq!(mounts(), before, "{mode:?}");
    }
}

/// The driver under test.
fn driver() -> PathBuf {
    std::env::var_os("FLEXVOLUME_LVM_DRIVER")
        .expect("tests/run.sh guest sets FLEXVOLUME_LVM_DRIVER")
        .into()
}

/// Makes a directory, as kubelet does before a call.
pub fn precreated(dir: PathBuf) -> PathBuf {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o750).create(&dir).unwrap();
    dir
}

/// Removes the directory as kubelet does, which fails if anything is in the directory.
fn gone(dir: &Path) {
    assert_eq!(mount_at(dir), None);
    fs::remove_dir(dir).unwrap_or_else(|e| panic!("removing {}: {e}", dir.display()));
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
