//! The installer, killed before each of its steps in turn.

use crate::node::{Node, OURS, same, says};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

/// The system calls of the installer that change something.
const CHANGES: &str = "mkdir,write,fchmod,fsync,rename,linkat,unlink,rmdir,clone3,flock";

/// Runs the executable under strace(1).
fn traced(node: &Node, args: &[String], options: &[&str]) -> Output {
    let trace = format!("trace={CHANGES}");
    Command::new("timeout")
        .args(["60", "strace", "-qq", "-e", &trace])
        .args(options)
        .args(node.argv("install"))
        .args(args)
        .output()
        .unwrap()
}

/// How often a whole run makes each of these calls.
fn calls(node: &Node, args: &[String]) -> BTreeMap<String, usize> {
    let log = node.path("trace");
    let output = traced(node, args, &["-o", log.to_str().unwrap()]);
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
fn kill_everywhere(args: &[&str], make: impl Fn() -> Node, check: impl Fn(&Node, &str)) {
    let undo = args.contains(&"--undo");
    let all = |node: &Node| {
        let mut all: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if !undo {
            all.push(format!("--binary={}", node.path("b").display()));
        }
        all
    };
    let whole = make();
    let mut points = 0;
    for (call, times) in calls(&whole, &all(&whole)) {
        for n in 1..=times {
            let node = make();
            let inject = format!("inject={call}:signal=SIGKILL:when={n}");
            let output = traced(&node, &all(&node), &["-o", "/dev/null", "-e", &inject]);
            let at = format!("killed before {call} {n}");
            assert!(!output.status.success(), "not {at}");
            assert_ne!(output.status.code(), Some(1), "{at}");
            check(&node, &at);
            points += 1;
        }
    }
    println!("{points} kill points of {args:?}");
    assert!(points > 6, "only {points} calls");
}

#[test]
fn a_first_install_killed_anywhere_is_all_or_nothing() {
    let make = || {
        let node = Node::new();
        node.driver("b", OURS);
        node
    };
    kill_everywhere(&[], make, |node, at| {
        if node.dir().exists() {
            assert!(same(&node.exe(), &node.path("b")), "{at}");
            assert!(node.config().exists(), "{at}");
        }
        node.install(&node.path("b"), &[])
            .success()
            .stdout(says("attach = false"));
        assert!(node.leftovers().is_empty(), "{at}: {:?}", node.leftovers());
        node.undo().success();
        assert!(!node.dir().exists(), "{at}");
    });
}

#[test]
fn an_upgrade_killed_anywhere_leaves_one_driver_whole_and_can_be_finished_or_undone() {
    for args in [&[][..], &["--attach", "false"]] {
        let make = || {
            let node = Node::with_script();
            node.driver("b", OURS);
            node
        };
        let whole = |node: &Node, at: &str| {
            let old = same(&node.exe(), &node.path("script"));
            assert!(old || same(&node.exe(), &node.path("b")), "{at}");
        };
        kill_everywhere(args, make, |node, at| {
            whole(node, at);
            node.install(&node.path("b"), args).success();
            assert!(same(&node.exe(), &node.path("b")), "{at}");
            assert_eq!(node.config().exists(), !args.is_empty(), "{at}");
            assert!(node.leftovers().is_empty(), "{at}: {:?}", node.leftovers());
        });
        kill_everywhere(args, make, |node, at| {
            whole(node, at);
            node.undo().success();
            assert!(same(&node.exe(), &node.path("script")), "{at}");
            assert!(!node.config().exists(), "{at}");
            assert!(node.leftovers().is_empty(), "{at}: {:?}", node.leftovers());
        });
    }
}

#[test]
fn an_undo_killed_anywhere_can_be_finished() {
    let upgraded = || {
        let node = Node::with_script();
        node.install(&node.driver("b", OURS), &["--attach", "false"])
            .success();
        node
    };
    kill_everywhere(&["--undo"], upgraded, |node, at| {
        let old = same(&node.exe(), &node.path("script"));
        assert!(old || same(&node.exe(), &node.path("b")), "{at}");
        node.undo().success();
        assert!(same(&node.exe(), &node.path("script")), "{at}");
        assert!(!node.config().exists(), "{at}");
        assert!(node.leftovers().is_empty(), "{at}: {:?}", node.leftovers());
    });

    let new = || {
        let node = Node::new();
        node.install(&node.driver("b", OURS), &[]).success();
        node
    };
    kill_everywhere(&["--undo"], new, |node, at| {
        node.undo().success();
        assert!(!node.dir().exists(), "{at}");
    });
    kill_everywhere(&["--undo"], new, |node, at| {
        node.install(&node.path("b"), &[])
            .success()
            .stdout(says("attach = false"));
        assert!(node.leftovers().is_empty(), "{at}: {:?}", node.leftovers());
        node.undo().success();
        assert!(!node.dir().exists(), "{at}");
    });
}

#[test]
fn an_undo_killed_anywhere_loses_no_edited_config() {
    const MINE: &str = "attach = false # mine\n";
    let edited = |node: Node, args: &[&str]| {
        node.install(&node.driver("b", OURS), args).success();
        fs::write(node.config(), MINE).unwrap();
        node
    };
    let upgraded = || edited(Node::with_script(), &["--attach", "false"]);
    let new = || edited(Node::new(), &[]);
    let check = |node: &Node, at: &str| {
        node.undo().success();
        let kept = node.path("exec/.kubernetes.io~lvm.config.toml");
        assert_eq!(fs::read_to_string(kept).unwrap(), MINE, "{at}");
        assert!(!node.config().exists(), "{at}");
    };
    kill_everywhere(&["--undo"], upgraded, check);
    kill_everywhere(&["--undo"], new, check);
}
