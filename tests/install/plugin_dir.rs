//! A node to install on, and stand-in drivers.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

use crate::support::put;

/// The bash script's answer to `init`. It knows no `--version`.
pub const SCRIPT: &str = r#"[ "$1" = init ] || exit 1; echo '{"status": "Success"}'"#;
/// This driver as far as the installer can see it: it has a version and reads the config beside it.
pub const OURS: &str = r#"[ "$1" = init ] || { echo lvm 0.1.0; exit; }
grep -q '^attach = false' "${0%/*}/config.toml" 2>/dev/null && a=false || a=true
echo '{"status":"Success","capabilities":{"attach":'$a',"fsGroup":true}}'"#;

/// A place to install to, and the drivers that go there.
pub struct PluginDir {
    top: TempDir,
}

impl PluginDir {
    pub fn new() -> Self {
        without_this_machines();
        let top = TempDir::new().unwrap();
        fs::create_dir(top.path().join("exec")).unwrap();
        Self { top }
    }

    /// A node that runs this driver already.
    pub fn running(body: &str) -> Self {
        let node = Self::new();
        fs::create_dir(node.dir()).unwrap();
        put(&node.exe(), fs::read(node.driver("before", body)).unwrap());
        node
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub fn plugins(&self) -> PathBuf {
        self.path("exec")
    }

    pub fn dir(&self) -> PathBuf {
        self.path("exec/kubernetes.io~lvm")
    }

    pub fn exe(&self) -> PathBuf {
        self.dir().join("lvm")
    }

    pub fn config(&self) -> PathBuf {
        self.dir().join("config.toml")
    }

    pub fn kept_config(&self) -> PathBuf {
        self.path("exec/.kubernetes.io~lvm.config.toml")
    }

    /// The edited config that an uninstallation has left.
    pub fn kept_text(&self) -> String {
        fs::read_to_string(self.kept_config()).unwrap()
    }

    pub fn original(&self) -> PathBuf {
        self.dir().join(".lvm.original")
    }

    /// A stand-in driver: `init` and `--version` run `body`, and `name` makes it unlike the others.
    pub fn driver(&self, name: &str, body: &str) -> PathBuf {
        let (file, known) = (self.path(name), "init | --version");
        let script =
            format!("#!/bin/sh\n# {name}\ncase $1 in {known}) ;; *) exit 1 ;; esac\n{body}\n");
        put(&file, script);
        file
    }

    /// The command line of the real executable, on this node.
    pub fn argv(&self, command: &str) -> Vec<OsString> {
        let (driver, dir) = (driver().into(), self.plugins().into());
        vec![driver, command.into(), "--plugin-dir".into(), dir]
    }

    fn lvm(&self, command: &str) -> Command {
        let mut lvm = Command::new("timeout");
        // The driver goes on after a SIGTERM while it waits in the kernel.
        lvm.args(["--signal=KILL", "600"]).args(self.argv(command));
        lvm
    }

    pub fn install(&self, driver: &Path, more: &[&str]) -> Assert {
        let mut install = self.lvm("install");
        install.arg("--binary").arg(driver).args(more).assert()
    }

    /// Installs, which must succeed and print these words.
    pub fn installs(&self, driver: &Path, more: &[&str], words: &str) {
        self.install(driver, more).success().stdout(says(words));
    }

    /// Installs, which must be refused in these words.
    pub fn refuses(&self, driver: &Path, more: &[&str], words: &str) {
        self.install(driver, more).code(1).stderr(says(words));
    }

    pub fn uninstall(&self) -> Assert {
        self.lvm("uninstall").assert()
    }

    /// Runs a shell script as root of a mount namespace of its own.
    pub fn in_namespace(options: &str, script: &str) -> Output {
        let output = std::process::Command::new("unshare")
            .args([options, "bash", "-c", script])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let allowed = output.status.code() != Some(77) && !text.starts_with("unshare:");
        assert!(allowed, "namespaces and mounts are needed here: {text}");
        output
    }

    /// All names in the plugin directory and in the driver's own.
    pub fn names(&self) -> Vec<String> {
        let names = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = names(self.plugins())
            .chain(names(self.dir()))
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}

/// Hides the driver that is installed on this machine from the test and from its processes.
fn without_this_machines() {
    const DIR: &str = "/usr/libexec/kubernetes";
    if !Path::new(DIR).exists() || fs::read_dir(DIR).is_ok_and(|mut dir| dir.next().is_none()) {
        return;
    }
    let none = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let hidden = unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, private, none))
        .and_then(|()| mount(Some("none"), DIR, Some("tmpfs"), MsFlags::empty(), none));
    if let Err(error) = hidden {
        println!("{DIR} is not hidden, which root could do: {error}");
    }
}

/// The executable of this build.
pub fn driver() -> PathBuf {
    crate::support::driver::driver().to_owned()
}

/// A file of this repository.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

pub fn says(text: &str) -> predicates::str::ContainsPredicate {
    predicates::str::contains(text)
}

pub fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}
