//! Refusals and warnings of `flexvolume-lvm install`.

use crate::plugin_dir::{OURS, PluginDir, SCRIPT, driver, same, says};
use crate::support::{eventually, put};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_driver_that_does_not_answer_is_not_installed() {
    let noisy = format!("echo 'warning: noise' >&2; {SCRIPT}");
    for (body, message) in [
        ("exit 1", "nothing was changed: "),
        ("exit 0", "nothing was changed: it printed nothing"),
        (r#"echo '{"status":"Failure"}'"#, r#"{"status":"Failure"}"#),
        (&noisy, "it writes to standard error: warning: noise"),
        (r#"echo '{"status":"Success"}'; exit 1"#, "exit code 1"),
    ] {
        let node = PluginDir::new();
        node.refuses(&node.driver("bad", body), &[], message);
        assert!(node.names().is_empty(), "{body}");

        let node = PluginDir::running(SCRIPT);
        node.refuses(&node.driver("bad", body), &["--attach", "false"], message);
        assert!(same(&node.exe(), &node.path("before")), "{body}");
        assert_eq!(node.names(), ["kubernetes.io~lvm", "lvm"], "{body}");
    }
}

#[test]
fn what_is_no_file_keeps_nobody_waiting() {
    let node = PluginDir::new();
    let fifo = node.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for file in [fifo.to_str().unwrap(), "/dev/zero"] {
        let why = format!("reading {file}: it is not a regular file");
        node.refuses(&driver(), &["--config", file], &why);
        node.refuses(Path::new(file), &[], &why);
        assert!(node.names().is_empty(), "{file}");
    }
    // In a directory where others may write.
    let lock = node.plugins().join(".flexvolume-lvm.lock");
    nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).unwrap();
    node.install(&driver(), &[]).success();
}

#[test]
fn behind_a_symbolic_link_kubelet_has_to_be_restarted() {
    let node = PluginDir::new();
    let link = node.path("link");
    symlink(node.plugins(), &link).unwrap();
    let install = |dir: &Path| {
        let mut install = assert_cmd::Command::new(driver());
        install
            .args(["install", "--plugin-dir"])
            .arg(dir)
            .assert()
            .success()
    };
    let words = format!("restart kubelet, or give it {}", node.plugins().display());
    install(&link).stdout(says(&words));
    // To it that is a directory.
    install(&node.plugins()).stdout(says("kubelet finds it by itself"));
}

#[test]
fn a_plugin_directory_that_others_may_write_is_named() {
    let node = PluginDir::new();
    fs::set_permissions(node.plugins(), fs::Permissions::from_mode(0o777)).unwrap();
    node.installs(&driver(), &[], "exec can be written by others than root");
}

#[test]
fn a_plugin_directory_where_nothing_can_be_run_is_named() {
    let node = PluginDir::new();
    let argv = node.argv("install");
    let line = "mount -t tmpfs -o noexec none \"$0\" && exec \"$@\"";
    let mut command = assert_cmd::Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", line])
        .arg(node.plugins());
    let refused = command.args(argv).assert().code(1);
    refused.stderr(says("is mounted noexec (`findmnt -T "));
}

#[test]
fn wrong_options_change_nothing() {
    let long = "a".repeat(64);
    let node = PluginDir::new();
    let missing = node.path("no/exec");
    let missing = missing.to_str().unwrap();
    for (args, code, message) in [
        (&["--vendor", "a~b"][..], 2, "not a DNS name"),
        (&["--driver", "../lvm"], 2, "not a name"),
        (&["--driver", &long], 2, "not a name"),
        (&["--driver", "config.toml"], 2, "the config file's name"),
        (&["--attach", "maybe"], 2, "values: true, false, keep]"),
        (&["--attach"], 2, "a value is required"),
        (&["--plugin-dir", "relative"], 2, "not an absolute path"),
        (&["--frobnicate"], 2, "unexpected argument"),
        (&["--binary=/nonexistent"], 1, "No such file"),
        (&["--plugin-dir", missing], 1, "make it: mkdir -p "),
    ] {
        node.install(&node.driver("a", OURS), args)
            .code(code)
            .stderr(says(message));
        assert!(
            node.names().is_empty() && !fs::exists(missing).unwrap(),
            "{args:?}"
        );
    }
}

#[test]
fn a_symbolic_link_for_a_directory_is_refused() {
    let node = PluginDir::running(SCRIPT);
    fs::rename(node.dir(), node.path("real")).unwrap();
    symlink(node.path("real"), node.dir()).unwrap();
    node.refuses(&node.driver("a", OURS), &[], "symbolic link");
}

#[test]
fn the_mode_of_a_driver_that_does_not_answer_has_to_be_said() {
    // In a container there is no shell that could run the bash script.
    for text in ["#!/nonexistent/bash\n", "#!/bin/sh\nexit 1\n"] {
        let node = PluginDir::running(SCRIPT);
        put(&node.exe(), text);
        let driver = node.driver("a", OURS);
        node.refuses(&driver, &[], "say it with --attach");
        assert_eq!(node.names(), ["kubernetes.io~lvm", "lvm"]);
        node.install(&driver, &["--attach", "true"]).success();
        assert!(same(&node.exe(), &driver) && node.original().exists());
    }
}

#[test]
fn one_run_at_a_time() {
    let node = PluginDir::new();
    let file = node.plugins().join(".flexvolume-lvm.lock");
    let other = File::create(&file).unwrap();
    other.lock().unwrap();
    node.refuses(&node.driver("a", OURS), &[], "another run is at work on");
    assert_eq!(node.names(), [".flexvolume-lvm.lock"]);
    // A killed run's lock file keeps nobody out.
    drop(other);
    node.installs(&node.driver("a", OURS), &[], "checked");
    assert!(!file.exists());
}

/// Everyone who can open a directory or a file can lock it.
#[test]
fn no_lock_that_a_user_can_take_keeps_root_from_installing() {
    let node = PluginDir::running(OURS);
    let mut follow = Command::new("timeout");
    follow.arg("600").args(node.argv("install")).arg("--follow");
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let lock = node.plugins().join(".flexvolume-lvm.lock");
    eventually("the lock of a run", || lock.exists());
    let mode = fs::metadata(&lock).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // `install --follow` waits for SIGTERM when it has installed. timeout(1) hands the signal on.
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut wait_for = |word: &str| {
        let mut lines = lines.by_ref().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with(word)), "no {word}");
    };
    wait_for("checked");
    assert!(follow.try_wait().unwrap().is_none());
    let id = Pid::from_raw(follow.id().cast_signed());
    kill(id, Signal::SIGTERM).unwrap();
    wait_for("stopped");
    follow.wait().unwrap();
    eventually("its end", || !lock.exists());
    assert!(same(&node.exe(), &driver()));
    let held = [node.plugins(), node.dir(), node.exe(), node.config()];
    let held = held.map(|path| {
        let file = File::open(path).unwrap();
        file.lock().unwrap();
        file
    });
    node.installs(&node.driver("a", OURS), &[], "checked");
    node.uninstall().success();
    drop(held);
}
