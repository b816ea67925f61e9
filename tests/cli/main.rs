//! The real executable, called as kubelet calls it: whatever comes in, one JSON document comes out.
//!
//! Nothing here needs LVM. The driver finds no tools, or stand-ins that the test wrote.
//! Bad input is in `hostile/`.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod config;
mod cost;
mod log;
mod people;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod units;

use assert_cmd::Command;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use support::driver::driver;
use support::machine::Machine;
use support::reply::Reply;
use support::{host_name, needs_root, run};

/// kubelet's options for a volume that no machine has.
const JSON: &str = r#"{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"data","kubernetes.io/readwrite":"rw","size":"64m","volumeID":"data-1","volumegroup":"nosuch-vg"}"#;
/// The device of that volume.
const DEVICE: &str = "/dev/mapper/nosuch--vg-data--1";
const NOT_HERE: &str = "another-node";

#[test]
fn good_input_succeeds_or_the_message_says_what_is_missing() {
    let machine = Machine::new();
    let missing = machine.path("missing");
    let missing = missing.to_str().unwrap();
    let host = host_name();
    let cases: &[(&[&str], &str)] = &[
        (&["init"], "Success"),
        (&["attach", JSON, NOT_HERE], "Success"),
        (&["attach", JSON, &host], "Success"),
        (&["isattached", JSON, NOT_HERE], "Success"),
        (&["isattached", JSON, &host], "Success"),
        (&["detach", "data", NOT_HERE], "Success"),
        (&["detach", "data", &host], "Success"),
        (&["detach", DEVICE, &host], "Success"),
        (&["detach", "", &host], "Success"),
        (&["detach", "ö/ ü", &host], "Success"),
        (&["unmount", missing], "Success"),
        (&["unmountdevice", missing], "Success"),
        (&["waitforattach", DEVICE, JSON], "Failure"),
        (&["waitforattach", "", JSON], "Failure"),
        (&["mountdevice", missing, DEVICE, JSON], "Failure"),
        (&["mount", missing, JSON], "Failure"),
        (&["expandfs", JSON, DEVICE, missing, "1", "1"], "Failure"),
        (&["expandfs", JSON, "", missing, "1", "1"], "Failure"),
        (&["expandvolume", JSON, missing, "1", "1"], "Failure"),
    ];
    for (args, status) in cases {
        let reply = machine.call(args);
        assert_eq!(reply.status, *status, "{args:?}: {reply:?}");
        let is_silent = reply.message.is_empty();
        assert_eq!(is_silent, *status == "Success", "{args:?}: {reply:?}");
    }
    assert!(!Path::new(missing).exists());
    // device-mapper doubles hyphens.
    let attached = machine.call(&["attach", JSON, NOT_HERE]).device;
    assert_eq!(attached.as_deref(), Some(DEVICE));
    let elsewhere = machine.call(&["isattached", JSON, NOT_HERE]);
    assert_eq!(elsewhere.attached, Some(true));
}

#[test]
fn init_needs_no_config_and_says_all_five_capabilities() {
    for environment in [None, Some(("FLEXVOLUME_LVM_CONFIG", "/dev/null"))] {
        let mut command = Command::new(driver());
        let output = command.arg("init").env_clear().envs(environment).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(
            text,
            "{\"status\":\"Success\",\"capabilities\":{\"attach\":true,\"fsGroup\":true,\
             \"requiresFSResize\":true,\"selinuxRelabel\":true,\"supportsMetrics\":false}}\n"
        );
    }
}

#[test]
fn a_broken_config_stops_only_what_brings_a_volume_up() {
    needs_root!();
    let machine = Machine::new();
    for (lines, words) in [
        ("defualt_fs = \"xfs\"", "line 4: unknown field `defualt_fs`"),
        ("attach = \"no\"", "line 4"),
        ("attach = ", "line 4"),
        ("[volume_group.\"../x\"]", "../x"),
    ] {
        machine.configure(lines);
        let init = machine.call(&["init"]);
        assert_eq!(init.status, "Success", "{lines}");
        assert_eq!(init.capabilities.unwrap()["attach"], true);
        for words in ["config.toml", words] {
            assert!(init.message.contains(words), "{lines}: {}", init.message);
        }
        brings_nothing_up(&machine, &["config.toml", words]);
        let host = host_name();
        for args in [
            &["isattached", JSON, &host][..],
            &["detach", "data", &host],
            &["unmount", "/nonexistent/x"],
            &["unmountdevice", "/nonexistent/x"],
        ] {
            assert_eq!(machine.call(args).status, "Success", "{lines}: {args:?}");
        }
    }
    let config = machine.path("config.toml");
    fs::rename(&config, machine.path("elsewhere")).unwrap();
    brings_nothing_up(
        &machine,
        &["which FLEXVOLUME_LVM_CONFIG names, cannot be read: No such file"],
    );
    symlink("/nonexistent", &config).unwrap();
    brings_nothing_up(&machine, &["cannot be read: No such file"]);
    fs::remove_file(&config).unwrap();
    run("mkfifo", &[config.to_str().unwrap()]);
    brings_nothing_up(&machine, &["not a regular file"]);
}

/// Checks that every call-out that would bring a volume up or grow it is refused in these words.
fn brings_nothing_up(machine: &Machine, words: &[&str]) {
    for args in [
        &["attach", JSON, &host_name()][..],
        &["waitforattach", "", JSON],
        &["mountdevice", "/mnt/x", DEVICE, JSON],
        &["mount", "/mnt/x", JSON],
        &["expandfs", JSON, DEVICE, "/mnt/x", "1", "1"],
        &["expandvolume", JSON, "/mnt/x", "1", "1"],
    ] {
        machine.refuses(args, words);
    }
}

#[test]
fn a_reply_that_cannot_be_written_is_no_success() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let why = "writing to standard output: No space left on device";
    for (args, why) in [
        (&["init"][..], ""),
        (&["--help"], why),
        (&["status", "--json"], why),
    ] {
        // assert_cmd's output cannot go to a file.
        let mut command = std::process::Command::new(driver());
        let output = command
            .args(args)
            .stdout(full())
            .stderr(Stdio::piped())
            .spawn();
        let output = output.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with(why) && said.is_empty() == why.is_empty(),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_link_to_the_driver_has_its_config_beside_the_link() {
    let machine = Machine::new();
    let link = machine.path("lvm");
    std::os::unix::fs::symlink(driver(), &link).unwrap();
    machine.configure("attach = false");
    for (program, dir) in [
        (link.as_path(), "/".into()),
        (Path::new("./lvm"), machine.path("")),
    ] {
        let mut command = Command::new(program);
        let output = command.arg("init").current_dir(dir).output().unwrap();
        let reply = Reply::of(program, &output);
        assert_eq!(reply.capabilities.unwrap()["attach"], false, "{program:?}");
    }
    // Also when a call begins itself again.
    machine.configure("defualt_fs = 'xfs'");
    let secret = JSON.replacen('{', r#"{"kubernetes.io/secret/key":"VE9Q","#, 1);
    let call = ["mount", "/mnt/x", &secret];
    let output = Command::new(&link).args(call).output().unwrap();
    let config = machine.path("config.toml");
    Reply::of(call, &output).is_failure(&[config.to_str().unwrap(), "defualt_fs"]);
}

#[test]
fn a_log_file_that_may_not_grow_costs_no_reply() {
    let machine = Machine::new();
    let script = "ulimit -f 0; \"$0\" unmount /nonexistent/x | cat";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(driver())
        .env("FLEXVOLUME_LVM_CONFIG", machine.path("config.toml"))
        .output()
        .unwrap();
    assert_eq!(Reply::of("unmount", &output).status, "Success");
    assert_eq!(std::fs::metadata(machine.path("log")).unwrap().len(), 0);
}

#[test]
fn the_config_decides_what_init_says() {
    let machine = Machine::new();
    machine.configure("attach = false\nsupports_metrics = true\nfs_group = false");
    let reply = machine.call(&["init"]);
    let capabilities = reply.capabilities.as_ref().unwrap();
    assert_eq!(capabilities["attach"], false);
    assert_eq!(capabilities["supportsMetrics"], true);
    assert_eq!(capabilities["fsGroup"], false);
    assert_eq!(reply.message, "");
    let mut here = machine.command(&["init"]);
    here.env("FLEXVOLUME_LVM_CONFIG", "config.toml");
    let output = here.current_dir(machine.path("")).output().unwrap();
    assert_eq!(Reply::of("init", &output), reply);
}

#[test]
fn a_tools_words_lose_their_control_characters() {
    let machine = Machine::new();
    let lvs = "echo 'not JSON'; printf 'No \\033[31msuch\\n disk\\n' >&2; exit 5";
    machine.tool("lvs", lvs);
    machine.refuses(&["waitforattach", "", JSON], &["lvs", "disk"]);
}
