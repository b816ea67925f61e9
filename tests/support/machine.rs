//! A machine whose tools are stand-ins, so that no LVM is needed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::driver::driver;
use super::reply::Reply;
use super::running::Running;
use super::{eventually, put};

/// A shell line for `lvs`: reports the volume `$1`/`$2`, which is not active, and which nothing keeps from being
/// mounted.
pub fn lvs_row() -> String {
    let row = include_str!("../../src/driver/lvm/sample.json");
    let row = row
        .replace(r#""vg""#, r#""%s""#)
        .replace(r#""data""#, r#""%s""#);
    let inactive = row.replace(r#""lv_kernel_major":"254""#, r#""lv_kernel_major":"-1""#);
    format!("printf '{inactive}'")
}

/// Shell lines for `lvs`: the group exists, and has no volumes.
pub const NO_VOLUME: &str = r#"for id; do :; done
case $id in */*) exit 5 ;; esac
echo '{"report":[{"lv":[]}]}'; exit"#;

/// A directory with a config, a log, and the tools that the driver may use.
pub struct Machine {
    top: TempDir,
}

impl Machine {
    /// A machine without any tool.
    pub fn new() -> Self {
        let top = TempDir::new().unwrap();
        let machine = Self { top };
        fs::create_dir(machine.path("tools")).unwrap();
        machine.configure("");
        machine
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Writes the config anew. `lines` begin on its fourth line.
    pub fn configure(&self, lines: &str) {
        let text = format!(
            "log = '{0}/log'\ntool_dirs = ['{0}/tools']\nkubelet_dirs = ['{0}/kubelet']\n{lines}\n",
            self.top.path().display()
        );
        fs::write(self.path("config.toml"), text).unwrap();
    }

    /// Makes a tool of the body of a shell script, in which `$TOP` is the machine's directory.
    pub fn tool(&self, name: &str, body: &str) {
        let top = self.top.path().display();
        let script = format!("#!/bin/sh\nTOP={top} PATH=/usr/bin:/bin\n{body}\n");
        put(&self.path("tools").join(name), script);
    }

    /// A command that starts `program`, which starts the driver with `args`.
    pub fn under<A: AsRef<OsStr>>(&self, program: &[&OsStr], args: &[A]) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        words.extend(program.iter().map(Into::into));
        words.push(driver().into());
        words.extend(args.iter().map(Into::into));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.env("FLEXVOLUME_LVM_CONFIG", self.path("config.toml"));
        command
    }

    pub fn command(&self, args: &[&str]) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::from_std(self.under(&[], args));
        command.timeout(Duration::from_secs(300));
        command
    }

    /// Calls the driver, which must answer with one document and nothing else.
    #[track_caller]
    pub fn call(&self, args: &[&str]) -> Reply {
        Reply::of(args, &self.command(args).output().unwrap())
    }

    /// Calls the driver, which must refuse with these words.
    #[track_caller]
    pub fn refuses(&self, args: &[&str], words: &[&str]) -> Reply {
        let reply = self.call(args);
        reply.is_failure(words);
        reply
    }

    /// Begins a call.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::new(self.under(&[], args))
    }

    /// Waits until a stand-in has written a line into this file, and returns it.
    #[track_caller]
    pub fn wait_for(&self, name: &str) -> String {
        let read = || fs::read_to_string(self.path(name)).unwrap_or_default();
        eventually(name, || read().ends_with('\n'));
        read().trim().to_owned()
    }
}
