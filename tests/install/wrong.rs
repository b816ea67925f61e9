//! What `lvm install` refuses.

use crate::executables::put;
use crate::node::{Node, OURS, SCRIPT, driver, same, says};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

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
fn told_to_stop_at_the_last_check_it_keeps_the_driver() {
    let vanished = || {
        let node = Node::new();
        node.install(&driver(), &[]).success();
        fs::remove_file(node.exe()).unwrap();
        node
    };
    for (name, node) in [
        ("a new node", Node::new()),
        ("the script", Node::with_script()),
        ("a driver that has vanished", vanished()),
    ] {
        // Under its own name its first answer does not come: it has the installer told to stop.
        let top = node.path("stopped");
        let top = top.display();
        let body = format!(
            "case $0 in */lvm) if mkdir {top} 2> /dev/null; then kill $PPID; exec sleep 60; fi;; esac\n{OURS}"
        );
        let slow = node.driver("slow", &body);
        let argv = node.argv("install");
        let mut command = Command::new("timeout");
        command.arg("50").args(argv).arg("--binary").arg(&slow);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(node.path("stopped").exists(), "{name}: it was not asked");
        assert!(same(&node.exe(), &slow), "{name}");
        assert!(node.leftovers().is_empty(), "{name}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {output:?}");
        assert!(said.contains("init says Success"), "{name}: {said}");
    }
}

#[test]
fn drivers_beside_it_that_kubelet_cannot_start_are_named() {
    let node = Node::new();
    let beside = |name: &str| node.plugins().join(name);
    for dir in [
        "a.io~empty",
        "b.io~loose",
        "c.io~good",
        "nodir",
        ".hidden~x",
    ] {
        fs::create_dir_all(beside(dir)).unwrap();
    }
    fs::write(beside("b.io~loose/loose"), "").unwrap();
    put(&beside("c.io~good/good"), "#!/bin/sh\n");
    symlink("/nonexistent", beside("nodir/nodir")).unwrap();
    let named = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let lines = text
            .lines()
            .filter(|line| line.contains("no volume plugin matched"));
        let names = lines.map(|line| line.split('/').next_back().unwrap_or("").split(' ').next());
        names
            .map(|name| name.unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    let output = node
        .install(&driver(), &[])
        .success()
        .get_output()
        .stdout
        .clone();
    assert_eq!(named(&output), ["empty", "loose"]);
    let doctor = Command::new(node.exe()).arg("doctor").output().unwrap();
    assert_eq!(named(&doctor.stdout), ["empty", "loose"]);
    // Run from elsewhere, it does not know where kubelet looks.
    let doctor = Command::new(driver()).arg("doctor").output().unwrap();
    assert!(named(&doctor.stdout).is_empty());
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
        (&["--vendor", ""], 2, "not a DNS name"),
        (&["--driver", ".lvm"], 2, "not a name"),
        (&["--driver", "../lvm"], 2, "not a name"),
        (&["--driver", "a~b"], 2, "not a name"),
        (&["--driver=-x"], 2, "not a name"),
        (&["--driver", "a\nb"], 2, "not a name"),
        (&["--driver", &long], 2, "not a name"),
        (&["--driver", "config.toml"], 2, "the config file's name"),
        (
            &["--attach", "maybe"],
            2,
            "possible values: true, false, keep",
        ),
        (&["--attach"], 2, "a value is required"),
        (&["--plugin-dir", "relative"], 2, "not an absolute path"),
        (&["--undo"], 2, "cannot be used with"),
        (&["--frobnicate"], 2, "unexpected argument"),
        (&["--binary=/nonexistent"], 1, "No such file"),
        (&["--binary=/dev/null"], 1, "is not a file"),
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

#[test]
fn a_driver_that_cannot_run_here_is_not_asked_for_its_mode() {
    // In a container there is no shell that could run the bash script.
    let node = Node::with_script();
    put(&node.exe(), "#!/nonexistent/bash\n");
    let driver = node.driver("a", OURS);
    node.install(&driver, &[])
        .code(1)
        .stderr(says("say it with --attach"));
    node.install(&driver, &["--attach", "true"]).success();
    assert!(same(&node.exe(), &driver) && !node.config().exists());
}

#[test]
fn a_driver_that_prints_nothing_is_said_to_print_nothing() {
    let node = Node::new();
    node.install(Path::new("/bin/true"), &[])
        .code(1)
        .stderr(says("nothing was installed: it printed nothing"));
}

#[test]
fn on_a_read_only_filesystem_it_names_what_it_could_not_do() {
    for (command, code, message) in [
        ("install", 1, "making"),
        ("install --undo", 0, "to undo"),
        ("uninstall", 0, "to remove"),
    ] {
        let node = Node::new();
        fs::create_dir(node.plugins()).unwrap();
        let plugins = node.plugins();
        let plugins = plugins.display();
        let script = format!(
            "mount -t tmpfs none '{plugins}' && mount -o remount,ro '{plugins}' || exit 77\n\
             exec '{}' {command} --plugin-dir '{plugins}' 2>&1",
            driver().display(),
        );
        let output = Command::new("unshare")
            .args(["-rm", "bash", "-c", &script])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // Containers often forbid unshare or the mount.
        if output.status.code() == Some(77) || output.stderr.starts_with(b"unshare:") {
            eprintln!("not tested here: {output:?}");
        } else {
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert!(said.contains(message), "{said}");
            assert!(!said.contains("removing"), "{said}");
        }
    }
}
