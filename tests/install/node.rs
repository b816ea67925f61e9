//! A node to install on, and stand-in drivers.

use assert_cmd::Command;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

use crate::executables::put;

/// What the bash script answers to `init`. It knows no `--version`.
pub const SCRIPT: &str = r#"[ "$1" = init ] || exit 1; echo '{"status": "Success"}'"#;
/// This driver as far as the installer can see it: it has a version and reads the config beside it.
pub const OURS: &str = r#"[ "$1" = init ] || { echo lvm 0.1.0; exit; }
grep -q '^attach = false' "${0%/*}/config.toml" 2>/dev/null && a=false || a=true
echo '{"status":"Success","capabilities":{"attach":'$a',"fsGroup":true}}'"#;

/// A place to install to, and the drivers that go there.
pub struct Node {
    top: TempDir,
}

impl Node {
    pub fn new() -> Self {
        Self {
            top: TempDir::new().unwrap(),
        }
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

    /// A stand-in driver: `init` and `--version` run `body`, and `name` makes it unlike the others.
    pub fn driver(&self, name: &str, body: &str) -> PathBuf {
        let file = self.path(name);
        put(
            &file,
            format!(
                "#!/bin/sh\n# {name}\ncase $1 in init | --version) ;; *) exit 1 ;; esac\n{body}\n"
            ),
        );
        file
    }

    /// A node that runs the bash script already.
    pub fn with_script() -> Self {
        let node = Self::new();
        fs::create_dir_all(node.dir()).unwrap();
        put(
            &node.exe(),
            fs::read(node.driver("script", SCRIPT)).unwrap(),
        );
        node
    }

    pub fn command(&self) -> Command {
        self.lvm("install")
    }

    /// A command of the real executable, on this node.
    pub fn lvm(&self, command: &str) -> Command {
        let mut lvm = Command::new("timeout");
        lvm.arg("60").args(self.argv(command));
        lvm
    }

    pub fn argv(&self, command: &str) -> Vec<OsString> {
        vec![
            driver().into(),
            command.into(),
            "--plugin-dir".into(),
            self.plugins().into(),
        ]
    }

    pub fn install(&self, driver: &Path, more: &[&str]) -> assert_cmd::assert::Assert {
        self.command()
            .arg("--binary")
            .arg(driver)
            .args(more)
            .assert()
    }

    pub fn undo(&self) -> assert_cmd::assert::Assert {
        self.command().arg("--undo").assert()
    }

    /// Names in the plugin directory and below it that an install or undo left behind.
    pub fn leftovers(&self) -> Vec<String> {
        let names = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
        names(self.plugins())
            .chain(names(self.dir()))
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name.contains(".new") || name.ends_with(".undoing"))
            .collect()
    }
}

/// The executable of this build.
pub fn driver() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("lvm").to_owned()
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
