//! Counts the system calls and the processes of the calls that need no LVM.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::print_stdout
)]

mod support;

use std::fs;
use std::path::PathBuf;

use support::put;
use support::trace::{Trace, trace};
use tempfile::TempDir;

const JSON: &str = r#"{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"data","kubernetes.io/readwrite":"rw","size":"64m","volumeID":"data","volumegroup":"nosuch-vg"}"#;

/// The driver as it is installed, without a config file.
struct Installed {
    dir: TempDir,
}

impl Installed {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let driver = fs::read(assert_cmd::cargo::cargo_bin!("lvm")).unwrap();
        put(&dir.path().join("lvm"), driver);
        Self { dir }
    }

    fn exe(&self) -> PathBuf {
        self.dir.path().join("lvm")
    }

    fn trace(&self, args: &[&str]) -> Trace {
        let trace = trace(&self.exe(), args);
        println!("{args:?}: {} system calls", trace.calls);
        assert!(
            trace.stdout.contains("Success"),
            "{args:?}: {}",
            trace.stdout
        );
        trace
    }
}

#[test]
fn a_call_that_needs_nothing_makes_few_system_calls() {
    const MOST: usize = 80;
    let driver = Installed::new();
    let missing = driver.dir.path().join("missing");
    let missing = missing.to_str().unwrap();
    let calls: &[&[&str]] = &[
        &["init"],
        &["isattached", JSON, "another-node"],
        &["attach", JSON, "another-node"],
        &["detach", "data", "another-node"],
        &["unmount", missing],
        &["unmountdevice", missing],
    ];
    for args in calls {
        let trace = driver.trace(args);
        assert_eq!(trace.others, 0, "{args:?} started {:?}", trace.programs);
        assert!(trace.calls < MOST, "{args:?}: {} calls", trace.calls);
    }
}

#[test]
fn a_config_file_costs_a_handful_of_system_calls() {
    const MORE: usize = 10;
    let driver = Installed::new();
    let without = driver.trace(&["init"]).calls;
    fs::write(driver.dir.path().join("config.toml"), "attach = false\n").unwrap();
    let with = driver.trace(&["init"]).calls;
    assert!(with <= without + MORE, "{with} with, {without} without");
}
