//! The installer, killed before each of its steps in turn.

use crate::node::{Node, OURS, same, says, write_executable};
use std::fs;

/// Puts stand-ins for the tools before PATH; the one that is called `at`-th kills the whole
/// run instead of doing its work.
fn run_killed(node: &Node, at: usize, args: &[&str]) -> bool {
    let tools = node.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let shim = "#!/bin/bash\nread -r n <\"${0%/*}/count\"\necho $((n + 1)) >\"${0%/*}/count\"\n\
                ((n + 1 != KILL_AT)) || kill -9 0\n\
                PATH=${PATH#*:} exec \"${0##*/}\" \"$@\"\n";
    for tool in "chmod cp env ln mkdir mv rm rmdir sha256sum stat sync".split(' ') {
        write_executable(&tools.join(tool), shim);
    }
    fs::write(tools.join("count"), "0\n").unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let output = node
        .command()
        .args(args)
        .env("PATH", path)
        .env("KILL_AT", at.to_string())
        .output()
        .unwrap();
    assert!(
        output.status.code() != Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    !output.status.success()
}

/// Kills a run before each tool it calls, in turn, until one gets through. `check` sees what
/// each kill left behind.
fn kill_everywhere(args: &[&str], make: impl Fn() -> Node, check: impl Fn(&Node, usize)) {
    for at in 1..200 {
        let node = make();
        let driver = node.path("b");
        let mut all = args.to_vec();
        if !args.contains(&"--undo") {
            all.extend(["--binary", driver.to_str().unwrap()]);
        }
        let killed = run_killed(&node, at, &all);
        check(&node, at);
        if !killed {
            assert!(at > 3, "only {at} tools were called");
            return;
        }
    }
    panic!("it never got through");
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
            assert!(same(&node.exe(), &node.path("b")), "kill {at}");
            assert!(node.config().exists(), "kill {at}");
        }
        node.install(&node.path("b"), &[])
            .success()
            .stdout(says("attach = false"));
        assert!(
            node.leftovers().is_empty(),
            "kill {at}: {:?}",
            node.leftovers()
        );
        node.undo().success();
        assert!(!node.dir().exists(), "kill {at}");
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
        let whole = |node: &Node, at: usize| {
            let old = same(&node.exe(), &node.path("script"));
            assert!(old || same(&node.exe(), &node.path("b")), "kill {at}");
        };
        kill_everywhere(args, make, |node, at| {
            whole(node, at);
            node.install(&node.path("b"), args).success();
            assert!(same(&node.exe(), &node.path("b")), "kill {at}");
            assert_eq!(node.config().exists(), !args.is_empty(), "kill {at}");
            assert!(
                node.leftovers().is_empty(),
                "kill {at}: {:?}",
                node.leftovers()
            );
        });
        kill_everywhere(args, make, |node, at| {
            whole(node, at);
            node.undo().success();
            assert!(same(&node.exe(), &node.path("script")), "kill {at}");
            assert!(!node.config().exists(), "kill {at}");
            assert!(
                node.leftovers().is_empty(),
                "kill {at}: {:?}",
                node.leftovers()
            );
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
        assert!(old || same(&node.exe(), &node.path("b")), "kill {at}");
        node.undo().success();
        assert!(same(&node.exe(), &node.path("script")), "kill {at}");
        assert!(!node.config().exists(), "kill {at}");
        assert!(
            node.leftovers().is_empty(),
            "kill {at}: {:?}",
            node.leftovers()
        );
    });

    let new = || {
        let node = Node::new();
        node.install(&node.driver("b", OURS), &[]).success();
        node
    };
    kill_everywhere(&["--undo"], new, |node, at| {
        node.undo().success();
        assert!(!node.dir().exists(), "kill {at}");
    });
    kill_everywhere(&["--undo"], new, |node, at| {
        node.install(&node.path("b"), &[])
            .success()
            .stdout(says("attach = false"));
        assert!(
            node.leftovers().is_empty(),
            "kill {at}: {:?}",
            node.leftovers()
        );
        node.undo().success();
        assert!(!node.dir().exists(), "kill {at}");
    });
}
