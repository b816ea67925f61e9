//! A machine without LVM, and the driver called on it.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

use crate::executables::put;

/// What kubelet passes for a volume that no machine has.
pub const JSON: &str = r#"{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"data","kubernetes.io/readwrite":"rw","size":"64m","volumeID":"data-1","volumegroup":"nosuch-vg"}"#;
/// The device of that volume.
pub const DEVICE: &str = "/dev/mapper/nosuch--vg-data--1";

/// A directory with a config and with the tools that the driver may use.
pub struct Machine {
    pub top: TempDir,
}

/// What the driver answered, and its exit code.
pub struct Reply {
    pub document: Value,
    pub code: i32,
}

impl Reply {
    pub fn status(&self) -> &str {
        self.document["status"].as_str().unwrap()
    }

    pub fn message(&self) -> &str {
        self.document["message"].as_str().unwrap_or("")
    }
}

impl Machine {
    /// A machine without any tool.
    pub fn new() -> Self {
        let machine = Self {
            top: TempDir::new().unwrap(),
        };
        fs::create_dir(machine.tools()).unwrap();
        machine.configure("");
        machine
    }

    pub fn configure(&self, lines: &str) {
        let text = format!(
            "log = \"none\"\ntool_dirs = ['{}']\n{lines}",
            self.tools().display()
        );
        fs::write(self.config(), text).unwrap();
    }

    pub fn tools(&self) -> PathBuf {
        self.top.path().join("sbin")
    }

    pub fn config(&self) -> PathBuf {
        self.top.path().join("config.toml")
    }

    pub fn tool(&self, name: &str, script: &str) {
        let file = self.tools().join(name);
        put(&file, format!("#!/bin/sh\n{script}\n"));
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("lvm"));
        command.env("FLEXVOLUME_LVM_CONFIG", self.config());
        command.args(args).timeout(Duration::from_secs(60));
        command
    }

    pub fn call(&self, args: &[&str]) -> Reply {
        read(args, &self.command(args).output().unwrap())
    }
}

/// One JSON document, one newline, nothing else, nothing on standard error.
pub fn read(args: &[&str], output: &std::process::Output) -> Reply {
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    let args: Vec<_> = args.iter().map(|a| a.get(..60).unwrap_or(a)).collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "", "{args:?} answered {stdout:?}");
    let line = stdout
        .strip_suffix('\n')
        .unwrap_or_else(|| panic!("{args:?}: {stdout:?}"));
    assert!(!line.contains(char::is_control), "{args:?}: {line:?}");
    assert!(line.len() <= 4096, "{args:?}: {} bytes", line.len());
    let document: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let code = output.status.code().unwrap_or(-1);
    Reply { document, code }
}

pub fn host_name() -> String {
    nix::unistd::gethostname().unwrap().into_string().unwrap()
}

/// Calls the driver, which must refuse with a reason.
pub fn refuses(machine: &Machine, args: &[&str]) -> Reply {
    let reply = machine.call(args);
    let shown: String = format!("{args:?}").chars().take(200).collect();
    assert_eq!(reply.status(), "Failure", "{shown}: {}", reply.document);
    assert!(!reply.message().is_empty(), "{shown}");
    assert_eq!(reply.code, 1, "{shown}");
    reply
}
