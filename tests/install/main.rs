//! `flexvolume-lvm install` and `flexvolume-lvm uninstall`, run for real in temporary directories, mostly with stand-in
//! drivers.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod image;
mod kills;
mod kubelets;
mod moved;
mod plugin_dir;
mod removal;
mod signature;
#[path = "../support/mod.rs"]
mod support;
mod wrong;

use assert_cmd::Command;
use plugin_dir::{OURS, PluginDir, SCRIPT, driver, file, same, says};
use predicates::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use support::needs_root;

#[test]
fn a_new_node_gets_the_driver_and_attach_false() {
    let node = PluginDir::new();
    let args = ["--vendor", "example.com", "--driver", "disk"];
    node.installs(&driver(), &args, "init says Success, attach = false");
    assert_eq!(node.names(), ["example.com~disk"]);
    let dir = node.path("exec/example.com~disk");
    let exe = dir.join("disk");
    assert!(same(&exe, &driver()));
    let mode = fs::metadata(&exe).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    Command::new(&exe)
        .arg("init")
        .assert()
        .success()
        .stdout(says(r#""attach":false"#));
    node.installs(&driver(), &args, "unchanged");

    let example = fs::read_to_string(file("examples/config.toml")).unwrap();
    let config = fs::read_to_string(dir.join("config.toml")).unwrap();
    let lines = example.lines().zip(config.lines());
    let changed: Vec<_> = lines.filter(|(one, other)| one != other).collect();
    assert_eq!(changed, [("#attach = true", "attach = false")]);
}

#[test]
fn an_existing_driver_keeps_its_mode_and_comes_back() {
    needs_root!();
    let detached = r#"echo '{"status":"Success","capabilities":{"attach": false}}'"#;
    let (no, yes) = (Some("attach = false\n"), Some("attach = true # mine\n"));
    for (name, before, config, attach) in [
        ("the bash script", SCRIPT, None, true),
        ("a script that says attach false", detached, None, false),
        ("this one without a config", OURS, None, true),
        ("its config says false", OURS, no, false),
        ("its config says true", OURS, yes, true),
    ] {
        let node = PluginDir::running(before);
        if let Some(text) = config {
            fs::write(node.config(), text).unwrap();
        }
        for new in ["a", "b"] {
            let new = node.driver(new, OURS);
            node.installs(&new, &[], &format!("attach = {attach}"));
            assert!(same(&node.exe(), &new), "{name}");
        }
        let text = fs::read_to_string(node.config()).unwrap();
        match config {
            Some(config) => assert_eq!(text, config, "{name}"),
            None => assert!(text.contains(&format!("\nattach = {attach}\n")), "{name}"),
        }

        let said = node.uninstall().success();
        // Another plugin directory has no driver that says the mode.
        let is_kept = config.is_some() || attach;
        assert_eq!(node.kept_config().exists(), is_kept, "{name}");
        if before == OURS {
            said.stdout(says("removed"));
            assert!(!node.dir().exists(), "{name}");
        } else {
            said.stdout(says("restored"));
            assert!(same(&node.exe(), &node.path("before")), "{name}");
            let kept = is_kept.then_some(".kubernetes.io~lvm.config.toml");
            let names: Vec<_> = kept
                .into_iter()
                .chain(["kubernetes.io~lvm", "lvm"])
                .collect();
            assert_eq!(node.names(), names, "{name}");
        }
    }
}

#[test]
fn the_mode_of_a_config_is_never_changed() {
    needs_root!();
    let node = PluginDir::running(SCRIPT);
    let driver = node.driver("a", OURS);
    let said = node.install(&driver, &["--attach", "false"]).success();
    said.stdout(says("attach = false").and(says(".lvm.original, the driver before")));
    node.installs(&driver, &["--attach", "false"], "unchanged");
    node.refuses(
        &node.driver("b", OURS),
        &["--attach", "true"],
        "config.toml says attach = false and is never changed",
    );
    assert!(same(&node.exe(), &driver));

    fs::remove_file(node.exe()).unwrap();
    node.installs(&driver, &[], "attach = false");
    assert!(same(&node.original(), &node.path("before")));
}

#[test]
fn a_config_that_is_given_takes_the_place_of_the_one_that_is_there() {
    let node = PluginDir::new();
    let given = node.path("given.toml");
    let args = ["--config", given.to_str().unwrap()];
    let is_given = || same(&node.config(), &given);
    let lists = ["config.toml", "kubernetes.io~lvm", "lvm"];
    fs::write(&given, "attach = true\n").unwrap();
    node.installs(&driver(), &args, "config.toml: attach = true");
    assert!(is_given());
    node.installs(&driver(), &args, "unchanged");

    // Also one that cannot be read, and that an operator has edited.
    for before in ["attach = true\n", "attach = perhaps\n"] {
        fs::write(node.config(), before).unwrap();
        fs::write(&given, "attach = false # all nodes\n").unwrap();
        node.installs(&driver(), &args, "config.toml: replaced, attach = false");
        assert!(is_given() && node.names() == lists, "{:?}", node.names());
    }

    fs::write(&given, "attach = false\ncolour = 1\n").unwrap();
    let unknown = "given.toml, line 2: unknown field `colour`";
    node.refuses(&driver(), &args, unknown);
    fs::write(&given, b"attach = false # \xFF\n").unwrap();
    node.refuses(&driver(), &args, "nothing was changed");
    fs::write(&given, "attach = false\n").unwrap();
    let both = [&args[..], &["--attach", "true"]].concat();
    node.refuses(
        &driver(),
        &both,
        "given.toml says attach = false, and --attach does not",
    );
    node.refuses(&driver(), &["--config", "/none"], "/none");
    let kept = fs::read_to_string(node.config()).unwrap();
    assert_eq!(kept, "attach = false # all nodes\n");
    assert_eq!(node.names(), lists);
}

#[test]
fn a_second_driver_of_somebody_else_is_not_lost_either() {
    let node = PluginDir::running(SCRIPT);
    let driver = node.driver("a", OURS);
    node.install(&driver, &[]).success();
    support::put(&node.exe(), fs::read(node.original()).unwrap());
    node.install(&driver, &[]).success();

    fs::rename(node.driver("other", SCRIPT), node.exe()).unwrap();
    let other = fs::read(node.exe()).unwrap();
    node.refuses(
        &driver,
        &[],
        ".lvm.original, which was there before; move one",
    );
    assert_eq!(fs::read(node.exe()).unwrap(), other);
    assert!(same(&node.original(), &node.path("before")));
    fs::remove_file(node.original()).unwrap();
    node.install(&driver, &[]).success();
    assert_eq!(fs::read(node.original()).unwrap(), other);
}

#[test]
fn image_sh_says_what_is_wrong_with_its_driver() {
    let node = PluginDir::new();
    let missing = "there is no executable /nonexistent";
    for (driver, message) in [
        ("/nonexistent", missing),
        ("/bin/ls", "/bin/ls is not this driver"),
        ("/etc", "there is no executable /etc"),
    ] {
        Command::new("bash")
            .arg(file("install/image.sh"))
            .arg(node.path("archive"))
            .env("DRIVER", driver)
            .assert()
            .code(1)
            .stderr(says(message));
    }
}
