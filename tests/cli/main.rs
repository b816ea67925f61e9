//! The real executable, called as kubelet calls it: whatever comes in, one JSON document comes out.
//!
//! Nothing here needs LVM or root. The driver finds no tools, or stand-ins that the test wrote.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../executables/mod.rs"]
mod executables;
mod log;
mod machine;
mod tools;

use assert_cmd::Command;
use machine::{DEVICE, JSON, Machine, host_name, read, refuses};
use predicates::prelude::*;
use std::path::Path;

const NOT_HERE: &str = "another-node";

#[test]
fn every_call_out_with_good_input_succeeds_or_says_what_this_machine_lacks() {
    let machine = Machine::new();
    let missing = machine.top.path().join("missing");
    let missing = missing.to_str().unwrap();
    let host = host_name();
    let cases: &[(&[&str], &str)] = &[
        (&["init"], "Success"),
        (&["attach", JSON, NOT_HERE], "Success"),
        (&["attach", JSON, &host], "Success"),
        (&["attach", JSON], "Success"),
        (&["isattached", JSON, NOT_HERE], "Success"),
        (&["isattached", NOT_HERE, JSON], "Success"),
        (&["isattached", JSON, &host], "Success"),
        (&["detach", "data", NOT_HERE], "Success"),
        (&["detach", "data", &host], "Success"),
        (&["detach", DEVICE], "Success"),
        (&["unmount", missing], "Success"),
        (&["unmountdevice", missing], "Success"),
        (&["waitforattach", DEVICE, JSON], "Failure"),
        (&["waitforattach", "", JSON], "Failure"),
        (&["mountdevice", missing, DEVICE, JSON], "Failure"),
        (&["mount", missing, JSON], "Failure"),
        (&["mount", missing, DEVICE, JSON], "Failure"),
        (
            &["expandfs", JSON, DEVICE, missing, "1073741824", "1"],
            "Failure",
        ),
        (
            &["expandfs", JSON, "", missing, "1073741824", "1"],
            "Failure",
        ),
        (
            &["expandvolume", JSON, missing, "1073741824", "1"],
            "Failure",
        ),
        (&["getvolumename", JSON], "Not supported"),
        (&["waitfordetach", DEVICE], "Not supported"),
        (&["frobnicate"], "Not supported"),
        (&["Init"], "Not supported"),
    ];
    for (args, status) in cases {
        let reply = machine.call(args);
        assert_eq!(reply.status(), *status, "{args:?}: {}", reply.document);
        assert_eq!(reply.code, i32::from(*status == "Failure"), "{args:?}");
        let has_reason = !reply.message().is_empty();
        assert_eq!(
            has_reason,
            *status != "Success",
            "{args:?}: {}",
            reply.document
        );
    }
    assert!(!Path::new(missing).exists());
}

#[test]
fn every_call_out_with_bad_input_fails_with_a_reason() {
    let machine = Machine::new();
    let long = "x".repeat(120_000);
    let huge = format!("{{\"volumegroup\":\"{long}\"}}");
    let deep = "[".repeat(10_000);
    let bad_options = [
        "",
        "null",
        "[]",
        "{",
        "\"text\"",
        "{}",
        "{} {}",
        "{\"volumegroup\":\"vg\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":5}",
        "{\"volumegroup\":\"vg\",\"volumeID\":null}",
        "{\"volumegroup\":\"-vg\",\"volumeID\":\"data\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"../data\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"a\\u0000b\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"a\\nb\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"snapshot1\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"data\",\"volumeid\":\"data\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"data\",\"size\":\"much\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"data\",\"mountoptions\":\"bind\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"data\",\"kubernetes.io/fsType\":\"ntfs\"}",
        "{\"volumegroup\":\"vg\",\"volumeID\":\"data\",\"kubernetes.io/readwrite\":\"maybe\"}",
        &huge,
        &deep,
    ];
    for json in bad_options {
        for args in [
            &["attach", json, NOT_HERE][..],
            &["isattached", json, NOT_HERE],
            &["waitforattach", "", json],
            &["mountdevice", "/mnt/x", DEVICE, json],
            &["mount", "/mnt/x", json],
            &["expandfs", json, "", "/mnt/x", "1", "1"],
            &["expandvolume", json, "/mnt/x", "1", "1"],
        ] {
            refuses(&machine, args);
        }
    }
    for dir in ["", "relative", "/mnt/../etc", "/", "/mnt/\n", "-o"] {
        for args in [
            &["mountdevice", dir, DEVICE, JSON][..],
            &["mount", dir, JSON],
            &["unmount", dir],
            &["unmountdevice", dir],
            &["expandfs", JSON, "", dir, "1", "1"],
        ] {
            refuses(&machine, args);
        }
    }
    for size in ["", "-1", "1g", "1.5", "99999999999999999999999"] {
        refuses(&machine, &["expandfs", JSON, "", "/mnt/x", size, "1"]);
        refuses(&machine, &["expandvolume", JSON, "/mnt/x", size, "1"]);
    }
    for device in ["data", "-x", "/etc/passwd", "/dev/../etc/passwd"] {
        refuses(&machine, &["waitforattach", device, JSON]);
        refuses(&machine, &["mountdevice", "/mnt/x", device, JSON]);
    }
}

#[test]
fn a_wrong_number_of_arguments_is_a_failure_that_says_which_are_right() {
    let machine = Machine::new();
    for name in [
        "attach",
        "detach",
        "waitforattach",
        "isattached",
        "mountdevice",
        "unmountdevice",
        "mount",
        "unmount",
        "expandfs",
        "expandvolume",
    ] {
        let reply = refuses(&machine, &[name]);
        assert!(reply.message().contains('<'), "{}", reply.document);
        refuses(&machine, &[name, "1", "2", "3", "4", "5", "6", "7"]);
    }
}

#[test]
fn a_word_that_is_not_text_is_answered_too() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let machine = Machine::new();
    let broken = OsStr::from_bytes(b"\xff\xfe");
    for call in ["attach", "unmount", "mount", "detach"] {
        let output = machine.command(&[call]).arg(broken).output().unwrap();
        read(&[call], &output);
    }
    let output = machine.command(&[]).arg(broken).output().unwrap();
    read(&[], &output);
}

#[test]
fn without_a_call_out_the_failure_points_to_the_help() {
    let reply = refuses(&Machine::new(), &[]);
    assert!(reply.message().contains("--help"), "{}", reply.document);
}

#[test]
fn init_needs_no_config_and_says_all_five_capabilities() {
    for environment in [None, Some(("FLEXVOLUME_LVM_CONFIG", "/dev/null"))] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("lvm"));
        let output = command.arg("init").env_clear().envs(environment).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(
            text,
            "{\"status\":\"Success\",\"capabilities\":{\"attach\":true,\"selinuxRelabel\":true,\
             \"supportsMetrics\":false,\"fsGroup\":true,\"requiresFSResize\":true}}\n"
        );
    }
}

#[test]
fn a_broken_config_is_told_by_init_and_stops_only_what_brings_a_volume_up() {
    let machine = Machine::new();
    for (lines, words) in [
        ("defualt_fs = \"xfs\"", "line 3, defualt_fs: unknown key"),
        ("attach = \"no\"", "line 3"),
        ("attach = ", "line 3"),
        ("[volume_group.\"../x\"]", "../x"),
    ] {
        machine.configure(lines);
        let init = machine.call(&["init"]);
        assert_eq!((init.status(), init.code), ("Success", 0), "{lines}");
        assert_eq!(init.document["capabilities"]["attach"], true);
        let host = host_name();
        for args in [
            &["attach", JSON, &host][..],
            &["waitforattach", "", JSON],
            &["mountdevice", "/mnt/x", DEVICE, JSON],
            &["mount", "/mnt/x", JSON],
        ] {
            let reply = refuses(&machine, args);
            for message in [reply.message(), init.message()] {
                assert!(message.contains("config.toml"), "{lines}: {message}");
                assert!(message.contains(words), "{lines}: {message}");
            }
        }
        for args in [
            &["isattached", JSON, &host][..],
            &["detach", "data", &host],
            &["unmount", "/nonexistent/x"],
            &["unmountdevice", "/nonexistent/x"],
        ] {
            assert_eq!(machine.call(args).status(), "Success", "{lines}: {args:?}");
        }
    }
}

#[test]
fn a_reply_that_cannot_be_written_is_no_success() {
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for args in [&["init"][..], &["--help"], &["status", "--json"]] {
        #[allow(clippy::disallowed_methods)] // assert_cmd's output cannot go to a file
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("lvm"));
        let status = command.args(args).stdout(full()).status().unwrap();
        assert_eq!(status.code(), Some(1), "{args:?}");
    }
}

#[test]
fn a_link_to_the_driver_has_its_config_beside_the_link_however_it_is_called() {
    let machine = Machine::new();
    let link = machine.top.path().join("lvm");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("lvm"), &link).unwrap();
    machine.configure("attach = false");
    for (program, dir) in [
        (link.to_str().unwrap(), "/"),
        ("./lvm", machine.top.path().to_str().unwrap()),
    ] {
        let mut command = Command::new(program);
        let output = command.arg("init").current_dir(dir).output().unwrap();
        let reply = read(&["init"], &output);
        assert_eq!(reply.document["capabilities"]["attach"], false, "{program}");
    }
}

#[test]
fn a_log_file_that_may_not_grow_costs_no_reply() {
    let machine = Machine::new();
    let log = machine.top.path().join("log");
    machine.configure("");
    let text = std::fs::read_to_string(machine.config()).unwrap();
    let text = text.replace("\"none\"", &format!("{:?}", log.to_str().unwrap()));
    std::fs::write(machine.config(), text).unwrap();
    let script = "ulimit -f 0; \"$0\" unmount /nonexistent/x | cat";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(assert_cmd::cargo::cargo_bin!("lvm"))
        .env("FLEXVOLUME_LVM_CONFIG", machine.config())
        .output()
        .unwrap();
    assert_eq!(read(&["unmount"], &output).status(), "Success");
    assert_eq!(std::fs::metadata(log).unwrap().len(), 0);
}

#[test]
fn the_config_decides_what_init_says() {
    let machine = Machine::new();
    machine.configure("attach = false\nsupports_metrics = true\nfs_group = false");
    let reply = machine.call(&["init"]);
    let capabilities = &reply.document["capabilities"];
    assert_eq!(capabilities["attach"], false);
    assert_eq!(capabilities["supportsMetrics"], true);
    assert_eq!(capabilities["fsGroup"], false);
    assert_eq!(reply.message(), "");
    let mut here = machine.command(&["init"]);
    here.env("FLEXVOLUME_LVM_CONFIG", "config.toml");
    let output = here.current_dir(machine.top.path()).output().unwrap();
    assert_eq!(read(&["init"], &output).document, reply.document);
}

#[test]
fn the_device_doubles_hyphens_as_device_mapper_does() {
    let reply = Machine::new().call(&["attach", JSON, NOT_HERE]);
    assert_eq!(reply.document["device"], DEVICE);
}

#[test]
fn an_option_that_is_nearly_a_known_one_is_refused_with_a_suggestion_and_others_are_not() {
    let machine = Machine::new();
    let with = |key: &str| JSON.replace("\"size\"", &format!("\"{key}\""));
    for (typo, meant) in [
        ("Size", "size"),
        ("mountoption", "mountoptions"),
        ("volumeid", "volumeID"),
    ] {
        let reply = refuses(&machine, &["attach", &with(typo), NOT_HERE]);
        assert!(reply.message().contains(meant), "{}", reply.document);
    }
    let reply = machine.call(&["attach", &with("team"), NOT_HERE]);
    assert_eq!(reply.status(), "Success", "{}", reply.document);
}

#[test]
fn a_failure_with_a_secret_exits_0_and_never_prints_it() {
    let machine = Machine::new();
    let canary = "Y2FuYXJ5LWluLWEtc2VjcmV0";
    let secret = format!("\"kubernetes.io/secret/pass\":\"{canary}\",");
    let good = JSON.replacen('{', &format!("{{{secret}"), 1);
    let bad = good.replace("nosuch-vg", "no/such");
    let broken = good.replace('}', "");
    let number = good.replace("\"64m\"", "64");
    for json in [&good, &bad, &broken, &number] {
        for args in [
            &["mount", "/nonexistent/x", json][..],
            &["waitforattach", "", json],
            &["mountdevice", "/nonexistent/x", DEVICE, json],
            &["mount", json],
            &["mount", json, "/mnt"],
            &["unmount", json],
            &["attach", json, json, json],
            &["expandfs", json, json, "/mnt/x", json, json],
        ] {
            let output = machine.command(args).output().unwrap();
            let reply = read(&[args[0]], &output);
            assert_eq!(reply.status(), "Failure", "{}", reply.document);
            assert_eq!(reply.code, 0, "{}", reply.document);
            assert!(
                !reply.document.to_string().contains(canary),
                "{}",
                reply.document
            );
        }
        let output = machine.command(&[json]).output().unwrap();
        assert!(!read(&[], &output).document.to_string().contains(canary));
    }
}

#[test]
fn help_and_version_are_text_for_people() {
    let machine = Machine::new();
    let help = predicate::str::contains("mountdevice").and(predicate::str::contains("doctor"));
    machine.command(&["--help"]).assert().success().stdout(help);
    let version = predicate::str::contains(env!("CARGO_PKG_VERSION"));
    machine
        .command(&["--version"])
        .assert()
        .success()
        .stdout(version);
    let status = machine
        .command(&["status", "--frobnicate"])
        .assert()
        .code(2);
    status
        .stdout("")
        .stderr(predicate::str::contains("--frobnicate"));
}
