//! The driver, installed for one case, and what kubelet has called of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::prelude::*;

pub struct Driver {
    /// The case, which is the driver's vendor as well.
    pub case: String,
    /// Holds kubelet's plugin directory, and beside it the drivers themselves.
    root: PathBuf,
    /// Where the calls are written down.
    record: PathBuf,
}

/// One call that kubelet made.
#[derive(Debug)]
pub struct Call {
    pub args: Vec<String>,
    /// None: it has not ended.
    pub reply: Option<Reply>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    args: Option<Vec<String>>,
    reply: Option<String>,
}

impl Driver {
    /// Installs the driver in this mode.
    pub fn new(case: &str, mode: Mode) -> Self {
        Self::with_config(case, mode, "")
    }

    /// Installs the driver with these lines in its config file too.
    pub fn with_config(case: &str, mode: Mode, lines: &str) -> Self {
        let driver = Self::installed(case);
        let program = driver.root.join("drivers").join(driver.dir_name());
        copy_executable(&from_environment("FLEXVOLUME_LVM_DRIVER"), &program);
        // kubelet must never see half a driver: the directory comes into being as a whole.
        let prepared = driver.prepare(&config(mode, lines));
        let recorder = from_environment("FLEXVOLUME_LVM_RECORDER");
        copy_executable(&recorder, &prepared.join("lvm"));
        fs::rename(&prepared, driver.dir()).unwrap();
        driver
    }

    /// A driver that somebody else installs.
    pub fn installed(case: &str) -> Self {
        Self {
            case: case.to_owned(),
            root: KUBELET.into(),
            record: "/run/calls.jsonl".into(),
        }
    }

    /// Installs the driver for the controller. Both executables are there, in `root`.
    pub fn for_controller(case: &str, root: &Path) -> Self {
        let driver = Self {
            case: case.to_owned(),
            root: root.to_owned(),
            record: root.join("calls.jsonl"),
        };
        let program = root.join("drivers").join(driver.dir_name());
        symlink(root.join("lvm"), program).unwrap();
        let prepared = driver.prepare(&config(Mode::Attach, ""));
        symlink(root.join("recorder"), prepared.join("lvm")).unwrap();
        fs::rename(&prepared, driver.dir()).unwrap();
        driver
    }

    /// Its name in a pod's manifest.
    pub fn name(&self) -> String {
        format!("{}/lvm", self.case)
    }

    fn dir_name(&self) -> String {
        format!("{}~lvm", self.case)
    }

    /// Where kubelet finds it.
    fn dir(&self) -> PathBuf {
        self.root.join("exec").join(self.dir_name())
    }

    /// A directory that kubelet does not look into yet.
    fn prepare(&self, config: &str) -> PathBuf {
        let prepared = self.dir().with_file_name(format!(".{}", self.dir_name()));
        fs::create_dir(&prepared).unwrap();
        fs::write(prepared.join("config.toml"), config).unwrap();
        prepared
    }

    /// Writes the config file anew. kubelet notices that and calls `init` before its next call.
    pub fn configure(&self, mode: Mode, lines: &str) {
        let new = self.dir().join(".config.toml");
        fs::write(&new, config(mode, lines)).unwrap();
        fs::rename(new, self.dir().join("config.toml")).unwrap();
    }

    /// kubelet's calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        let text = fs::read_to_string(&self.record).unwrap_or_default();
        // Only its own lines are parsed, for there are many, and this is asked often.
        let mine = format!("\"driver\":\"{}\"", self.dir_name());
        let lines = text.lines().filter(|line| line.contains(&mine));
        let lines = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let mut calls: Vec<(String, Call)> = Vec::new();
        for line in lines {
            if let Some(args) = line.args {
                calls.push((line.id, Call { args, reply: None }));
            } else if let Some((_, call)) = calls.iter_mut().find(|(id, _)| *id == line.id) {
                let text = line.reply.unwrap_or_default();
                let reply = serde_json::from_str(&text)
                    .unwrap_or_else(|e| panic!("{:?} answered {text:?}: {e}", call.args));
                call.reply = Some(reply);
            }
        }
        calls.into_iter().map(|(_, call)| call).collect()
    }

    /// The call-outs that do something to a volume, in order, each once if it came several times
    /// in a row. The controller asks `isattached` whenever it likes.
    pub fn order(&self) -> String {
        let names = self.calls().into_iter().map(|call| call.args[0].clone());
        let mut names: Vec<String> = names
            .filter(|name| !matches!(name.as_str(), "init" | "getvolumename" | "isattached"))
            .collect();
        names.dedup();
        names.join(" ")
    }

    /// These call-outs were made in this order. There may be others in between: kubelet looks at a
    /// pod's volumes again whenever it likes.
    pub fn assert_order(&self, wanted: &str) {
        let order = self.order();
        let mut made = order.split(' ');
        let missing = wanted
            .split(' ')
            .find(|name| !made.any(|call| call == *name));
        assert_eq!(missing, None, "{wanted}: {order}");
    }

    /// How often a call-out was made.
    pub fn count(&self, name: &str) -> usize {
        self.calls()
            .iter()
            .filter(|call| call.args[0] == name)
            .count()
    }

    /// Waits until a call-out has been made this often, and answered.
    pub fn has_answered(&self, name: &str, times: usize) {
        let answered = |call: &&Call| call.args[0] == name && call.reply.is_some();
        wait_until(
            &format!("{}: {name} for the {times}. time", self.case),
            || self.calls().iter().filter(answered).count() >= times,
        );
    }

    /// The messages of the calls that failed. An unmount may find the volume busy while the
    /// container's mounts go; kubelet repeats it.
    pub fn failures(&self) -> Vec<String> {
        let failed = |call: Call| call.reply.filter(|reply| reply.status == "Failure");
        let messages = self.calls().into_iter().filter_map(failed);
        let messages = messages.map(|reply| reply.message);
        messages
            .filter(|text| !text.contains(" is in use by "))
            .collect()
    }

    pub fn assert_no_failure(&self) {
        assert_eq!(self.failures(), Vec::<String>::new(), "{}", self.case);
    }
}

/// Many cases at once on an emulated machine make tools slow: the limits are longer than a node's.
fn config(mode: Mode, lines: &str) -> String {
    format!(
        "attach = {}\n{lines}\n[limits]\nquery = 600\nactivate = 600\nlock = 900\n",
        mode == Mode::Attach
    )
}

/// As `support::put`: another process writes it, since cases beside this one fork.
fn copy_executable(from: &str, to: &Path) {
    run("install", &["-m", "755", from, to.to_str().unwrap()]);
    fs::File::open(to).unwrap().sync_all().unwrap();
}
