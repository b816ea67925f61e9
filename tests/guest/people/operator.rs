//! Commands for people: the verdict on the next mount, and permissions for it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::prelude::*;
use crate::signatures::put;

#[test]
fn a_permission_is_for_what_it_names_and_only_where_a_mount_asks_for_it() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "permits");
    let allow = ["allow-format", "permits/data", "--yes"];
    // Blank: nothing needs to be given up, and nothing is.
    node.prints(&allow, "in any case", 0);
    assert_eq!(group.tags("data"), "");
    // Raw data: it is named first, and nobody is there to answer.
    put(&volume.device(), 0, b"raw");
    node.prints(&allow[..2], "data at byte 0", 1);
    assert_eq!(group.tags("data"), "");
    node.prints(&allow, "Given up: data at byte 0", 0);
    // Something else is there by now.
    put(&volume.device(), 0, &[0; 8]);
    put(&volume.device(), 1024, b"other");
    node.refuses_mount(&volume, &["data at byte 1024", "allow-format"]);
    node.prints(&allow, "", 0);
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
    node.prints(&allow, "is mounted at", 1);
}

/// `allow-format` on a terminal, with its question on the screen.
struct Asked(std::process::Child);

impl Asked {
    const SCREEN: &str = "/run/asked";

    fn of(node: &Node, volume: &str) -> Self {
        let line = format!("{} allow-format {volume}", node.exe().display());
        let _ = fs::remove_file(Self::SCREEN);
        let mut terminal = Command::new("script");
        terminal.args(["-qfec", &line, Self::SCREEN]);
        let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let asked = Self(terminal.unwrap());
        let screen = || fs::read_to_string(Self::SCREEN).unwrap_or_default();
        eventually("the question", || screen().contains("Type yes"));
        asked
    }

    /// Gives this answer. Then the screen must have these words, and the command must end with this code.
    #[track_caller]
    fn ends(mut self, answer: &[u8], words: &str, code: i32) {
        self.0.stdin.as_mut().unwrap().write_all(answer).unwrap();
        let is = self.0.wait().unwrap().code();
        let said = read(Path::new(Self::SCREEN));
        assert!(said.contains(words) && is == Some(code), "{is:?} {said}");
    }
}

#[test]
fn an_open_question_locks_nothing_and_an_answer_counts_only_for_the_same_volume() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "asked");
    put(&volume.device(), 0, b"raw");
    let asked = Asked::of(&node, "asked/data");
    node.refuses_mount(&volume, &["data at byte 0", "allow-format"]);
    put(&volume.device(), 0, &[0; 8]);
    node.up("pod", &volume);
    asked.ends(b"yes\n", "is mounted at", 1);
    node.down("pod", &volume);
    run("wipefs", &["--all", "--quiet", &volume.device()]);
    let record = group.tags("data");
    let asked = Asked::of(&node, "asked/data");
    put(&volume.device(), 0, b"other");
    asked.ends(b"yes\n", "has changed since", 1);
    assert_eq!(group.tags("data"), record);
    Asked::of(&node, "asked/data").ends(b"yes\n", "may format asked/data", 0);
    assert!(group.tags("data").contains("flexvolume.mayformat="));
}

#[test]
fn no_permission_for_what_cannot_be_read_or_is_in_use() {
    let node = Node::new(Mode::MountOnly);
    let (disk, group, volume) = Disk::with_data("badly", "ext4", 64);
    disk.fail(0..64 << 20);
    let allow = ["allow-format", "badly/data", "--yes"];
    let unread = "cannot be read at byte 0";
    for args in [&allow[..], &["adopt", "badly/data"]] {
        node.prints(args, unread, 1);
    }
    node.prints(&["status", "badly/data"], unread, 0);
    disk.heal();
    put(&volume.device(), 0, b"raw");
    let device = run("losetup", &["--find", "--show", &volume.device()]);
    node.prints(&allow, "loop device", 1);
    run("losetup", &["--detach", &device]);
    assert_eq!(group.tags("data"), "");
}

#[test]
fn check_waits_for_a_call_that_works_on_the_volume() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "worked");
    let uuid = sh("lvs --noheadings -o lv_uuid worked/data").replace(['-', ' '], "");
    // As that call leaves it half way.
    node.visit(&volume);
    let call = holds(&format!("/run/flexvolume-lvm/{uuid}.lock"));
    // A busy volume is neither refused nor an alarm, and whether it would mount is not known yet.
    let busy = node.prints(&["check", "worked/data"], " is held by ", 1);
    assert!(busy.contains("sleep (pid "), "{busy}");
    node.prints(&["check"], "0 would be refused, 1 busy", 1);
    node.prints(&["status"], "busy", 0);
    let refused = r#"next_mount_refused{vg="worked",lv="data",verdict="busy",reason=""} 0"#;
    node.prints(&["metrics"], refused, 0);
    let (said, _) = node.says(&["doctor"]);
    assert!(!said.contains("worked/data"), "{said}");
    drop(call);
    node.prints(&["check", "worked/data"], "mount ext4", 0);
}
