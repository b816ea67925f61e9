//! The driver, installed for one case, and kubelet's calls of it, which are read from its log.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::prelude::*;

pub struct Driver {
    /// The case. Its name is also the driver's vendor.
    pub case: String,
    /// kubelet's plugin directory.
    exec: PathBuf,
    log: PathBuf,
}

/// One call that has ended.
#[derive(Debug, Deserialize)]
struct Call {
    #[serde(rename = "call")]
    name: String,
    outcome: String,
    #[serde(default)]
    message: String,
}

impl Driver {
    /// Installs the driver in this mode.
    pub fn new(case: &str, mode: Mode) -> Self {
        Self::with_config(case, mode, "")
    }

    /// Installs the driver with these further lines in its config file.
    pub fn with_config(case: &str, mode: Mode, lines: &str) -> Self {
        let driver = Self::installed(case);
        let prepared = driver.prepare(mode, lines);
        // As `support::put`: another process writes it, since cases beside this one fork.
        let program = from_environment("FLEXVOLUME_LVM_DRIVER");
        let to = prepared.join("lvm");
        run("install", &["-m", "755", &program, to.to_str().unwrap()]);
        fs::File::open(to).unwrap().sync_all().unwrap();
        // kubelet must never see half a driver: the directory comes into being as a whole.
        fs::rename(&prepared, driver.dir()).unwrap();
        driver
    }

    /// A driver that somebody else installs.
    pub fn installed(case: &str) -> Self {
        Self {
            case: case.to_owned(),
            exec: Path::new(KUBELET).join("exec"),
            log: format!("{LOGS}/calls-of-{case}.log").into(),
        }
    }

    /// Installs the driver for the controller, as a link to the executable, which is there already.
    pub fn for_controller(case: &str) -> Self {
        let root = PathBuf::from(from_environment("FLEXVOLUME_LVM_CONTROLLER"));
        let driver = Self {
            case: case.to_owned(),
            exec: root.join("exec"),
            log: root.join(format!("calls-of-{case}.log")),
        };
        let prepared = driver.prepare(Mode::Attach, "");
        symlink(root.join("lvm"), prepared.join("lvm")).unwrap();
        fs::rename(&prepared, driver.dir()).unwrap();
        driver
    }

    /// The driver's name in a pod's manifest.
    pub fn name(&self) -> String {
        format!("{}/lvm", self.case)
    }

    /// The driver's directory, where kubelet finds it.
    fn dir(&self) -> PathBuf {
        self.exec.join(format!("{}~lvm", self.case))
    }

    /// Makes the driver's directory with its config, under a name that kubelet ignores.
    fn prepare(&self, mode: Mode, lines: &str) -> PathBuf {
        let prepared = self.exec.join(format!(".{}~lvm", self.case));
        fs::create_dir(&prepared).unwrap();
        fs::write(prepared.join("config.toml"), self.config(mode, lines)).unwrap();
        prepared
    }

    /// Many cases at once on an emulated machine make tools slow: the limits are longer than a node's.
    fn config(&self, mode: Mode, lines: &str) -> String {
        let (attach, log) = (mode == Mode::Attach, self.log.display());
        let limits = "[limits]\nquery = 600\nactivate = 600\nlock = 900\n";
        format!("attach = {attach}\n{lines}\nlog = '{log}'\n{limits}")
    }

    /// Writes the config file anew. kubelet notices that and calls `init` before its next call.
    pub fn configure(&self, mode: Mode, lines: &str) {
        let new = self.dir().join(".config.toml");
        fs::write(&new, self.config(mode, lines)).unwrap();
        fs::rename(new, self.dir().join("config.toml")).unwrap();
    }

    fn calls(&self) -> Vec<Call> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        // The last line may be half written.
        let calls = text
            .lines()
            .map_while(|line| serde_json::from_str(line).ok());
        calls.collect()
    }

    /// The call-outs that do something to a volume, in order. A call-out that came several times in a row is here once.
    /// `isattached` and call-outs that the driver does not have are left out, since the controller makes them at any
    /// time.
    pub fn order(&self) -> String {
        let names = self.calls().into_iter().map(|call| call.name);
        let mut names: Vec<String> = names
            .filter(|name| !matches!(name.as_str(), "init" | "other" | "isattached"))
            .collect();
        names.dedup();
        names.join(" ")
    }

    /// Checks that these call-outs were made in this order. There may be others in between: kubelet looks at a pod's
    /// volumes again at any time.
    pub fn assert_order(&self, wanted: &str) {
        let order = self.order();
        let mut made = order.split(' ');
        let missing = wanted
            .split(' ')
            .find(|name| !made.any(|call| call == *name));
        assert_eq!(missing, None, "{wanted}: {order}");
    }

    /// How often a call-out was answered.
    pub fn count(&self, name: &str) -> usize {
        let calls = self.calls().into_iter();
        calls.filter(|call| call.name == name).count()
    }

    /// Waits until a call-out has been answered this often.
    pub fn has_answered(&self, name: &str, times: usize) {
        let what = format!("{}: {name} for the {times}. time", self.case);
        wait_until(&what, || self.count(name) >= times);
    }

    /// The messages of the calls that failed. An unmount may find the volume busy while the
    /// container's mounts go; kubelet repeats it.
    pub fn failures(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        let failed = calls.filter(|call| call.outcome == "failed");
        let messages = failed.map(|call| call.message);
        messages
            .filter(|text| !text.contains(" is in use by "))
            .collect()
    }

    pub fn assert_no_failure(&self) {
        assert_eq!(self.failures(), Vec::<String>::new(), "{}", self.case);
    }
}
