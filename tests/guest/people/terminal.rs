//! The names that pods give their processes and directories, as root sees them. Such a name never writes more on the
//! terminal than its own part of a line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::prelude::*;

/// Clears the screen, begins a line, turns the writing around.
const DIRECTORY: &str = "/run/evil\x1b[2J\nforged/data is ready: nobody has it\r\u{202e}\u{9b}31m";
/// As much as the kernel keeps of a process' name.
const PROCESS: &str = "pod\x1b[2J\nforged\x07";

/// A shell under that name, started by these words. Its file is removed at once: no other case sees it.
fn shell(by: &str, args: &[&str]) -> Process {
    let dir = tempfile::tempdir_in("/run").unwrap();
    let exe = dir.path().join(PROCESS);
    fs::copy("/bin/sh", &exe).unwrap();
    let by: Vec<&str> = by.split(' ').collect();
    let mut command = Command::new(by[0]);
    command.args(&by[1..]).arg(&exe).args(args);
    let process = Process(command.spawn().unwrap());
    eventually("its name", || {
        read(&process.proc("comm")).starts_with("pod")
    });
    process
}

/// The first fault in a person's terminal output, without the driver's own colours: each character must
/// be printable, and each line must be the driver's.
fn wrong(node: &Node, args: &[&str], words: &str) -> Option<String> {
    let mut command = Command::new(node.exe());
    command.args(args).env("CLICOLOR_FORCE", "1");
    let mut said = String::new();
    // On a busy machine the list may have no time to read them all.
    eventually("a list of volumes that are all read", || {
        let output = command.output().unwrap();
        said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        !said.contains("a list must not take long")
    });
    for colour in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m"] {
        said = said.replace(colour, "");
    }
    let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    let mut lines = said.lines();
    let forged = lines.any(|line| {
        line.trim_start_matches([' ', '"', '#'])
            .starts_with("forged")
    });
    let is_json = args.ends_with(&["--json"]);
    let is_whole = !is_json || serde_json::from_str::<Value>(&said).is_ok();
    let is_right = !said.contains(hidden) && !forged && said.contains(words) && is_whole;
    (!is_right).then(|| format!("{args:?}: {words}: {said:?}\n"))
}

#[test]
fn names_of_a_pods_processes_and_directories_add_no_line() {
    let group = Group::new("shown-raw");
    let node = Node::new(Mode::MountOnly);
    let [held, open, hosts] = ["held", "open", "hosts"].map(|lv| group.linear(lv, "32m"));
    for volume in [&held, &open, &hosts] {
        node.write("pod", volume, "kept");
    }
    run("mkfifo", &["/run/evil.fifo"]);
    let line = "mkdir -p \"$1\" && mount \"$0\" \"$1\" && read x < /run/evil.fifo";
    let _held = shell("unshare --mount", &["-c", line, &held.device(), DIRECTORY]);
    let line = "read x 9>> \"$0\" < /run/evil.fifo";
    let _open = shell("env", &["-c", line, &open.device()]);
    let says = |lv: &str, words: &str| {
        let check = ["check", "--idle", &format!("shown-raw/{lv}")];
        node.says(&check).0.contains(words)
    };
    eventually("the mount in another namespace and the open device", || {
        says("held", "mounted in another mount namespace") && says("open", "is open in")
    });
    let dir = PathBuf::from(DIRECTORY);
    fs::create_dir_all(&dir).unwrap();
    run("mount", &[&hosts.device(), text(&dir)]);
    let _hosts = Unmounted(&dir);

    let (held, open, hosts) = ("shown-raw/held", "shown-raw/open", "shown-raw/hosts");
    let mut all = String::new();
    #[rustfmt::skip] // a row is a line
    let rows = [
        (&["check"][..], "evil [2J forged/data is ready"),
        (&["check", held], "mounted elsewhere: pod [2J forged"),
        (&["check", open], "is open in pod [2J forged"),
        (&["check", hosts], "by the host itself at /run/evil [2J forged"),
        (&["status"], "pod [2J forged"),
        (&["status", held], "mounted elsewhere: pod [2J forged"),
        (&["status", open], "used by pod [2J forged"),
        (&["status", hosts], "─ /run/evil [2J forged"),
        (&["check", "--idle", held], "(pod [2J forged (pid "),
        (&["check", "--idle", open], "is open in pod [2J forged (pid "),
        (&["check", "--idle", hosts], r"run `umount $'/run/evil\033[2J\012forged"),
        (&["adopt", open], "is open in pod [2J forged"),
        (&["allow-format", "--yes", open], "is open in pod [2J forged"),
        (&["doctor"], "pod [2J forged (pid "),
        (&["metrics"], "reason=\"open\""),
    ];
    for (args, words) in rows {
        all.extend(wrong(&node, args, words));
        if ["check", "status", "doctor"].contains(&args[0]) {
            all.extend(wrong(&node, &[args, &["--json"]].concat(), "forged"));
        }
    }
    assert_eq!(all, "");
}

/// A mount that goes when this does. Its directory's name is no word of a shell.
struct Unmounted<'a>(&'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        run("umount", &[text(self.0)]);
    }
}
