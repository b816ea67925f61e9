//! `lvm install --follow`, as the container of the `DaemonSet` runs it.

use crate::node::{Node, OURS, SCRIPT, driver, same};
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A run that ends with the test.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(node: &Node) -> Self {
        Self::start_with(node, &driver())
    }

    fn start_with(node: &Node, binary: &Path) -> Self {
        let argv = node.argv("install");
        let mut child = Command::new("timeout")
            .arg("120")
            .args(argv)
            .arg("--follow")
            .arg("--binary")
            .arg(binary)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads on to a line that begins like this.
    fn wait_for(&mut self, word: &str) -> String {
        self.lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.starts_with(word))
            .unwrap_or_else(|| panic!("it ended and never said {word}"))
    }

    /// timeout(1) hands SIGTERM on.
    fn terminate(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        self.wait_for("stopped");
        self.child.wait().unwrap();
    }
}

#[test]
fn installs_again_when_the_file_is_missing_or_older_and_ends_at_sigterm() {
    let node = Node::new();
    let mut following = Following::start(&node);
    following.wait_for("installed");
    following.wait_for("checked");
    assert!(same(&node.exe(), &driver()));

    fs::remove_file(node.exe()).unwrap();
    following.wait_for("missing");
    following.wait_for("checked");
    assert!(same(&node.exe(), &driver()), "missing");

    fs::rename(node.driver("script", SCRIPT), node.exe()).unwrap();
    following.wait_for("missing");
    following.wait_for("checked");
    assert!(same(&node.exe(), &driver()), "the script");

    fs::remove_file(node.exe()).unwrap();
    fs::remove_file(node.config()).unwrap();
    let rest = [".lvm.first", ".lvm.previous"];
    for name in rest {
        fs::remove_file(node.dir().join(name)).unwrap();
    }
    fs::remove_dir(node.dir()).unwrap();
    following.wait_for("installed");
    following.wait_for("checked");
    assert!(same(&node.exe(), &driver()), "the whole directory");
    following.terminate();
    assert!(node.exe().exists());
}

#[test]
fn leaves_a_newer_version_alone() {
    let node = Node::new();
    let mut following = Following::start(&node);
    following.wait_for("checked");
    let newer = node.path("newer");
    crate::executables::put(&newer, "#!/bin/sh\necho lvm 99.0.0\n");
    fs::rename(&newer, node.exe()).unwrap();
    let line = following.wait_for("left");
    assert!(line.contains("newer version"), "{line}");
    following.terminate();
    assert!(!same(&node.exe(), &driver()));
}

#[test]
fn installs_its_own_version_at_the_start_so_that_a_rollout_can_be_undone() {
    let node = Node::new();
    node.install(&driver(), &[]).success();
    let newer = node.path("newer");
    crate::executables::put(&newer, "#!/bin/sh\necho lvm 99.0.0\n");
    fs::rename(&newer, node.exe()).unwrap();
    let mut following = Following::start(&node);
    following.wait_for("installed");
    following.wait_for("checked");
    assert!(same(&node.exe(), &driver()));
    following.terminate();
}

#[test]
fn says_a_failure_once_and_again_when_it_is_another() {
    let node = Node::new();
    // Every round asks the driver once: the third and fourth answers fail alike, the fifth does not.
    let asked = node.path("asked");
    let asked = asked.display();
    let body = format!(
        "[ $1 = init ] && echo >> {asked}\ncase $(wc -l < {asked}) in\n\
         3 | 4) echo one reason; exit ;;\n5) echo another reason; exit ;;\nesac\n{OURS}"
    );
    let binary = node.driver("fails", &body);
    let mut following = Following::start_with(&node, &binary);
    following.wait_for("checked");
    fs::remove_file(node.exe()).unwrap();
    let said = ["missing", "failed", "failed"].map(|word| {
        let line = following.wait_for("");
        assert!(line.starts_with(word), "{line}");
        line
    });
    assert!(said[1].ends_with("one reason"), "{said:?}");
    assert!(said[2].ends_with("another reason"), "{said:?}");
    following.wait_for("checked");
    assert!(same(&node.exe(), &binary));
    following.terminate();
}
