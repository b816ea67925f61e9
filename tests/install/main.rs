//! `lvm install` and `lvm uninstall`, run for real in temporary directories, mostly with stand-in drivers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[path = "../executables/mod.rs"]
mod executables;
mod follow;
mod image;
mod kills;
mod node;
mod removal;
mod wrong;

use assert_cmd::Command;
use executables::put;
use node::{Node, OURS, SCRIPT, driver, file, same, says};
use predicates::prelude::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn a_new_node_gets_the_driver_and_attach_false_and_undo_takes_it_off() {
    let node = Node::new();
    let driver = node.driver("a", OURS);
    node.install(&driver, &[])
        .success()
        .stdout(says("init says Success, attach = false"));
    assert!(same(&node.exe(), &driver));
    assert_eq!(
        fs::metadata(node.exe()).unwrap().permissions().mode() & 0o7777,
        0o755
    );
    assert!(
        fs::read_to_string(node.config())
            .unwrap()
            .contains("\nattach = false\n")
    );
    assert!(node.leftovers().is_empty(), "{:?}", node.leftovers());

    node.undo().success().stdout(says("removed"));
    assert!(!node.dir().exists());
    assert_eq!(fs::read_dir(node.plugins()).unwrap().count(), 0);
    node.undo().success().stdout(says("nothing"));
}

#[test]
fn the_driver_of_this_build_installs() {
    let node = Node::new();
    let driver = &driver();
    node.install(driver, &["--vendor", "example.com", "--driver", "disk"])
        .success()
        .stdout(says("init says Success, attach = false").and(says("warning").not()));
    let exe = node.path("exec/example.com~disk/disk");
    Command::new(&exe)
        .arg("init")
        .assert()
        .success()
        .stdout(says(r#""attach":false"#));
    node.install(driver, &["--attach", "true"])
        .success()
        .stdout(says("init says Success, attach = true").and(says("control-plane")));
}

#[test]
fn an_existing_driver_keeps_its_mode() {
    let detached = r#"echo '{"status":"Success","capabilities":{"attach": false}}'"#;
    for (name, before, config, want) in [
        ("the bash script", SCRIPT, None, true),
        ("a script that says attach false", detached, None, false),
        ("a broken driver", "exit 1", None, true),
        (
            "its config says false",
            OURS,
            Some("attach = false\n"),
            false,
        ),
        (
            "its config says true",
            OURS,
            Some("attach = true # mine\n"),
            true,
        ),
    ] {
        let node = Node::with_script();
        put(
            &node.exe(),
            fs::read(node.driver("before", before)).unwrap(),
        );
        if let Some(text) = config {
            fs::write(node.config(), text).unwrap();
        }
        node.install(&node.driver("a", OURS), &[])
            .success()
            .stdout(says(&format!("attach = {want}")));
        if let Some(text) = config {
            assert_eq!(fs::read_to_string(node.config()).unwrap(), text, "{name}");
        } else {
            assert_eq!(node.config().exists(), !want, "{name}");
        }
        node.undo().success();
        assert!(same(&node.exe(), &node.path("before")), "{name}");
        assert_eq!(node.config().exists(), config.is_some(), "{name}");
    }
}

#[test]
fn an_upgrade_can_be_undone_once_and_never_removes_the_script() {
    let node = Node::with_script();
    let driver = node.driver("a", OURS);
    node.install(&driver, &[])
        .success()
        .stdout(says(".lvm.previous"));
    node.install(&driver, &[])
        .success()
        .stdout(says("unchanged"));
    assert!(same(&node.exe(), &driver));
    node.undo().success().stdout(says("restored"));
    assert!(same(&node.exe(), &node.path("script")));
    node.undo().success().stdout(says("nothing"));
    assert!(same(&node.exe(), &node.path("script")));
    assert!(node.leftovers().is_empty(), "{:?}", node.leftovers());
}

#[test]
fn a_symbolic_link_is_replaced_and_comes_back_as_a_link() {
    let node = Node::with_script();
    fs::rename(node.exe(), node.path("elsewhere")).unwrap();
    symlink("../../elsewhere", node.exe()).unwrap();
    node.install(&node.driver("a", OURS), &[]).success();
    assert!(!node.exe().is_symlink());
    node.undo().success();
    assert_eq!(
        fs::read_link(node.exe()).unwrap(),
        Path::new("../../elsewhere")
    );
}

#[test]
fn the_mode_can_be_changed_where_there_is_no_config_and_is_refused_where_there_is() {
    let node = Node::with_script();
    let driver = node.driver("a", OURS);
    node.install(&driver, &[])
        .success()
        .stdout(says("attach = true"));
    node.install(&driver, &["--attach", "false"])
        .success()
        .stdout(says("attach = false"));
    node.install(&driver, &["--attach", "false"])
        .success()
        .stdout(says("unchanged"));
    node.install(&driver, &["--attach", "true"])
        .code(1)
        .stderr(says("config.toml says attach = false and is never changed"));
    node.undo().success();
    assert!(same(&node.exe(), &driver) && !node.config().exists());
}

#[test]
fn the_config_of_a_new_node_explains_every_key() {
    let node = Node::new();
    node.install(&driver(), &[]).success();
    let example = fs::read_to_string(file("examples/config.toml")).unwrap();
    let config = fs::read_to_string(node.config()).unwrap();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let changed: Vec<_> = lines(&example)
        .into_iter()
        .zip(lines(&config))
        .filter(|(one, other)| one != other)
        .collect();
    assert_eq!(
        changed,
        [("#attach = true".to_owned(), "attach = false".to_owned())]
    );
}

#[test]
fn the_shell_script_installs_what_this_checkout_built() {
    let node = Node::new();
    let script = || {
        let mut command = Command::new("bash");
        command
            .arg(file("install/install.sh"))
            .env("DRIVER", driver())
            .arg("--plugin-dir")
            .arg(node.plugins());
        command
    };
    script()
        .assert()
        .success()
        .stdout(says("init says Success, attach = false"));
    assert!(same(&node.exe(), &driver()));
    script()
        .arg("--undo")
        .assert()
        .success()
        .stdout(says("removed"));
    assert!(!node.dir().exists());
}

#[test]
fn the_shell_scripts_say_what_is_wrong_with_the_driver_that_they_are_given() {
    let node = Node::new();
    fs::create_dir(node.path("bin")).unwrap();
    put(&node.path("bin/cargo"), "#!/bin/sh\necho builds >&2\n");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", node.path("bin").display());
    for (script, driver, message) in [
        (
            "install.sh",
            "/nonexistent",
            "DRIVER: there is no executable /nonexistent",
        ),
        (
            "install.sh",
            "/etc/passwd",
            "DRIVER: there is no executable /etc/passwd",
        ),
        ("install.sh", "/etc", "DRIVER: there is no executable /etc"),
        (
            "image.sh",
            "/nonexistent",
            "there is no executable /nonexistent",
        ),
        ("image.sh", "/bin/ls", "/bin/ls is not this driver"),
        ("image.sh", "/bin/false", "/bin/false is not this driver"),
    ] {
        Command::new("bash")
            .arg(file("install").join(script))
            .arg(node.path("archive"))
            .env("DRIVER", driver)
            .env("PATH", &path)
            .assert()
            .code(1)
            .stderr(says(message).and(says("builds").not()));
    }
    // A bare name is a file in this directory, and not the command of that name.
    Command::new("bash")
        .arg(file("install/install.sh"))
        .arg("--plugin-dir")
        .arg(node.plugins())
        .current_dir(driver().parent().unwrap())
        .env("DRIVER", "lvm")
        .assert()
        .success();
    assert!(same(&node.exe(), &driver()));
}

#[test]
fn a_driver_that_has_vanished_comes_back_in_its_mode_and_the_script_can_still_be_restored() {
    let node = Node::with_script();
    let driver = node.driver("a", OURS);
    node.install(&driver, &[]).success();
    fs::remove_file(node.exe()).unwrap();
    node.install(&driver, &[])
        .success()
        .stdout(says("attach = true"));
    assert!(!node.config().exists());
    node.undo().success();
    assert!(same(&node.exe(), &node.path("script")));
}
