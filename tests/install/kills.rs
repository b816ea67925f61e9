//! The installer, killed before each of its steps in turn.

use crate::plugin_dir::{OURS, PluginDir, SCRIPT, file, same};
use crate::support::{needs, needs_root};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, Output};

/// The system calls of the installer that change something.
const CHANGES: &str = "mkdir,write,fchmod,fsync,rename,linkat,unlink,rmdir,clone3,flock";

const MINE: &str = "attach = false # mine\n";

/// Runs the executable under strace(1).
fn traced(args: &[OsString], options: &[&str]) -> Output {
    let trace = format!("trace={CHANGES}");
    Command::new("timeout")
        .args(["600", "strace", "-qq", "-e", &trace])
        .args(options)
        .args(args)
        .output()
        .unwrap()
}

/// How often a whole run makes each of these calls.
fn calls(node: &PluginDir, args: &[OsString]) -> BTreeMap<String, usize> {
    let log = node.path("trace");
    let output = traced(args, &["-o", log.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "is strace installed? {text}");
    let mut calls = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        if let Some((name, _)) = line.split_once('(') {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    calls
}

/// Kills a run before each of these calls, in turn. `check` sees what each kill left behind.
fn kill_everywhere(
    command: &str,
    more: &[&str],
    make: impl Fn() -> PluginDir,
    check: impl Fn(&PluginDir, &str),
) {
    let args = |node: &PluginDir| {
        let mut args = node.argv(command);
        args.extend(more.iter().map(OsString::from));
        if command == "install" {
            args.extend(["--binary".into(), node.driver("b", OURS).into()]);
        }
        args
    };
    let whole = make();
    let mut points = 0;
    for (call, times) in calls(&whole, &args(&whole)) {
        for n in 1..=times {
            let node = make();
            let inject = format!("inject={call}:signal=SIGKILL:when={n}");
            let output = traced(&args(&node), &["-o", "/dev/null", "-e", &inject]);
            let at = format!("{command} {more:?} killed before {call} {n}");
            assert!(!output.status.success(), "not {at}");
            assert_ne!(output.status.code(), Some(1), "{at}");
            check(&node, &at);
            points += 1;
        }
    }
    println!("{points} kill points of {command} {more:?}");
    assert!(points > 6, "only {points} calls");
}

#[test]
fn a_first_install_killed_anywhere_is_all_or_nothing() {
    needs_root!();
    needs!("strace", "strace");
    kill_everywhere("install", &[], PluginDir::new, |node, at| {
        if node.dir().exists() {
            assert!(same(&node.exe(), &node.path("b")), "{at}");
            assert!(node.config().exists(), "{at}");
        }
        node.installs(&node.path("b"), &[], "attach = false");
        let names = node.names();
        assert_eq!(names, ["config.toml", "kubernetes.io~lvm", "lvm"], "{at}");
    });
}

#[test]
fn an_upgrade_killed_anywhere_leaves_one_driver_whole() {
    needs!("strace", "strace");
    let script = || PluginDir::running(SCRIPT);
    kill_everywhere("install", &[], script, |node, at| {
        let old = same(&node.exe(), &node.path("before"));
        assert!(old || same(&node.exe(), &node.path("b")), "{at}");
        node.installs(&node.path("b"), &[], "attach = true");
        assert!(same(&node.exe(), &node.path("b")), "{at}");
        assert!(same(&node.original(), &node.path("before")), "{at}");
        assert_eq!(node.names().len(), 4, "{at}: {:?}", node.names());
    });
}

/// A node with this driver, and a config that somebody edited.
fn edited(node: PluginDir) -> PluginDir {
    node.install(&node.driver("a", OURS), &[]).success();
    fs::write(node.config(), MINE).unwrap();
    node
}

#[test]
fn a_killed_upgrade_never_gives_the_old_driver_the_new_config() {
    needs!("strace", "strace");
    let given = file("examples/config.toml");
    let args = ["--config", given.to_str().unwrap()];
    let old = || edited(PluginDir::new());
    kill_everywhere("install", &args, old, |node, at| {
        let is_mine = fs::read_to_string(node.config()).unwrap() == MINE;
        let is_before = same(&node.exe(), &node.path("a"));
        assert!(is_mine || same(&node.config(), &given), "{at}");
        assert!(is_mine || !is_before, "{at}");
        node.installs(&node.path("b"), &args, "checked");
        assert!(same(&node.config(), &given), "{at}");
        assert_eq!(node.names().len(), 3, "{at}: {:?}", node.names());
    });
}

/// All but the file that a run which was killed at its end had locked. The next one removes it.
fn names(node: &PluginDir) -> Vec<String> {
    let mut names = node.names();
    names.retain(|name| name != ".flexvolume-lvm.lock");
    names
}

#[test]
fn an_uninstall_killed_anywhere_loses_nothing() {
    needs!("strace", "strace");
    let script = || edited(PluginDir::running(SCRIPT));
    kill_everywhere("uninstall", &[], script, |node, at| {
        let old = same(&node.exe(), &node.path("before"));
        assert!(old || same(&node.exe(), &node.path("a")), "{at}");
        // The last step is the copy's: there is nothing left to finish.
        if node.original().exists() {
            node.uninstall().success();
        }
        assert!(same(&node.exe(), &node.path("before")), "{at}");
        assert_eq!(names(node).len(), 3, "{at}: {:?}", node.names());
        assert_eq!(node.kept_text(), MINE, "{at}");
    });
}
