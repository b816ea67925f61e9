//! Counts the system calls and the processes of the calls that need no LVM.

use std::fs;

use tempfile::TempDir;

use crate::JSON;
use crate::support::put;
use crate::support::trace::{Trace, trace};

/// The driver as it is installed, without a config file.
fn installed() -> TempDir {
    let dir = TempDir::new().unwrap();
    let driver = fs::read(assert_cmd::cargo::cargo_bin!("lvm")).unwrap();
    put(&dir.path().join("lvm"), driver);
    dir
}

fn traced(driver: &TempDir, args: &[&str]) -> Trace {
    let trace = trace(&driver.path().join("lvm"), args);
    let is_success = trace.stdout.contains("Success");
    assert!(is_success, "{args:?}: {}", trace.stdout);
    trace
}

#[test]
fn a_call_that_needs_nothing_makes_few_system_calls() {
    const MOST: usize = 80;
    let driver = installed();
    let missing = driver.path().join("missing");
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
        let trace = traced(&driver, args);
        assert_eq!(trace.others, 0, "{args:?} started {:?}", trace.programs);
        assert!(trace.calls < MOST, "{args:?}: {} calls", trace.calls);
    }
}

#[test]
fn a_config_file_costs_a_handful_of_system_calls() {
    const MORE: usize = 10;
    let driver = installed();
    let without = traced(&driver, &["init"]).calls;
    fs::write(driver.path().join("config.toml"), "attach = false\n").unwrap();
    let with = traced(&driver, &["init"]).calls;
    assert!(with <= without + MORE, "{with} with, {without} without");
}
