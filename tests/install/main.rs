//! `install/install.sh`, run for real in temporary directories, mostly with stand-in drivers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects)]

mod kills;
mod node;

use assert_cmd::Command;
use node::{Node, OURS, SCRIPT, installer, same, says};
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

    node.undo()
        .success()
        .stdout(says("there was no driver before"));
    assert!(!node.dir().exists());
    assert_eq!(fs::read_dir(node.plugins()).unwrap().count(), 0);
    node.undo().success().stdout(says("nothing"));
}

#[test]
fn the_driver_of_this_build_installs() {
    let node = Node::new();
    let driver = assert_cmd::cargo::cargo_bin!("lvm");
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
        fs::copy(node.driver("before", before), node.exe()).unwrap();
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
fn an_edited_config_outlives_the_driver() {
    let node = Node::new();
    node.install(&node.driver("a", OURS), &[]).success();
    fs::write(node.config(), "attach = false\n# mine\n").unwrap();
    node.undo().success().stdout(says("because it was edited"));
    assert!(!node.dir().exists());
    let kept = node.path("exec/.kubernetes.io~lvm.config.toml");
    assert!(fs::read_to_string(kept).unwrap().contains("# mine"));
}

#[test]
fn undo_leaves_a_directory_that_holds_other_files() {
    let node = Node::new();
    node.install(&node.driver("a", OURS), &[]).success();
    fs::write(node.dir().join("notes"), "").unwrap();
    node.undo().code(1).stderr(says("notes was not put there"));
    assert!(node.exe().exists() && node.config().exists());
}

#[test]
fn undo_is_refused_while_volumes_are_mounted() {
    for place in [
        "pods/1234/volumes/kubernetes.io~lvm/data",
        "plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/data",
    ] {
        let node = Node::new();
        node.install(&node.driver("a", OURS), &[]).success();
        let target = node.path(place);
        fs::create_dir_all(&target).unwrap();
        let script = format!(
            "mount -t tmpfs none '{}' || exit 77; exec bash '{}' --undo --plugin-dir '{}'",
            target.display(),
            installer().display(),
            node.plugins().display()
        );
        let output = Command::new("unshare")
            .args(["-rm", "bash", "-c", &script])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        // Containers often forbid unshare or the mount.
        if output.status.code() == Some(77) || text.starts_with("unshare:") {
            eprintln!("not tested here: {text}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(
                text.contains("are mounted; delete their pods first"),
                "{text}"
            );
        }
        assert!(node.exe().exists());
    }
}

#[test]
fn a_driver_that_does_not_answer_is_not_installed() {
    let noisy = format!("echo 'warning: noise' >&2; {SCRIPT}");
    // Right under its dot name, wrong under its own: only the check at the end can see it.
    let late = format!("case $0 in */.lvm.new) {SCRIPT};; *) exit 3;; esac");
    for (name, body) in [
        ("fails", "exit 1"),
        ("says nothing", "exit 0"),
        ("says Failure", r#"echo '{"status":"Failure"}'"#),
        ("noise on stderr", &noisy),
        (
            "succeeds with exit 1",
            r#"echo '{"status":"Success"}'; exit 1"#,
        ),
        ("goes wrong at the end", &late),
    ] {
        let node = Node::new();
        node.install(&node.driver("bad", body), &[])
            .code(1)
            .stderr(says("Success"));
        assert!(!node.dir().exists(), "{name}");
        assert_eq!(fs::read_dir(node.plugins()).unwrap().count(), 0, "{name}");

        let node = Node::with_script();
        node.install(&node.driver("bad", body), &["--attach", "false"])
            .code(1);
        assert!(same(&node.exe(), &node.path("script")), "{name}");
        assert!(!node.config().exists(), "{name}");
        assert!(
            node.leftovers().is_empty(),
            "{name}: {:?}",
            node.leftovers()
        );
    }
}

#[test]
fn wrong_options_change_nothing() {
    let long = "a".repeat(64);
    let node = Node::new();
    for (args, code, message) in [
        (&["--vendor", "a~b"][..], 2, "not a DNS name"),
        (&["--vendor", "a/b"], 2, "not a DNS name"),
        (&["--vendor", ".a"], 2, "not a DNS name"),
        (&["--vendor", "Example.com"], 2, "not a DNS name"),
        (&["--vendor", ""], 2, "is empty"),
        (&["--driver", ".lvm"], 2, "not a name"),
        (&["--driver", "../lvm"], 2, "not a name"),
        (&["--driver", "a~b"], 2, "not a name"),
        (&["--driver", "-x"], 2, "not a name"),
        (&["--driver", "a\nb"], 2, "not a name"),
        (&["--driver", &long], 2, "not a name"),
        (&["--driver", "config.toml"], 2, "the config file's name"),
        (&["--attach", "maybe"], 2, "not one of"),
        (&["--attach"], 2, "needs a value"),
        (&["--plugin-dir", "relative"], 2, "not an absolute path"),
        (&["--undo"], 2, "neither --binary"),
        (&["--frobnicate"], 2, "unknown option"),
        (&["--binary", "/nonexistent"], 1, "is not a file"),
        (&["--binary", "/dev/null"], 1, "is not a file"),
    ] {
        node.install(&node.driver("a", OURS), args)
            .code(code)
            .stderr(says(message));
        assert!(!node.plugins().exists(), "{args:?}");
    }
    node.command()
        .arg("--help")
        .assert()
        .success()
        .stdout(says("--plugin-dir"));
}

#[test]
fn a_symbolic_link_for_a_directory_is_refused() {
    let node = Node::with_script();
    fs::rename(node.dir(), node.path("real")).unwrap();
    symlink(node.path("real"), node.dir()).unwrap();
    node.install(&node.driver("a", OURS), &[])
        .code(1)
        .stderr(says("symbolic link"));
}
