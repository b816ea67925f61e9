//! `check`, `status`, `doctor`, the metrics and the next mount agree on states of a node, of a snapshot
//! and of the config.

use std::fs;

use super::row::is_told_by_all;
use crate::crypt::{config, key_file};
use crate::prelude::*;

/// Checks that the mount of the volume `data` is refused in these words, and that all commands report the refusal with
/// this word.
#[track_caller]
pub fn agreed(node: &Node, volume: &Volume, group: &Group, word: &str, words: &str) {
    node.refuses_mount(volume, &[words]);
    let id = group.path("data");
    let said = node.prints(&["check", &id, "--json"], words, 1);
    assert!(said.contains(&format!("\"reason\": \"{word}\"")), "{said}");
    node.prints(&["status", "-x"], &id, 1);
    let counted = format!("lv=\"data\",verdict=\"refuse\",reason=\"{word}\"}} 1");
    node.prints(&["metrics"], &counted, 0);
    is_told_by_all(node, group, words);
}

#[test]
fn what_a_node_lacks_is_told_by_all() {
    let group = Group::new("judged");
    let key = key_file("judged");
    let lines = format!("log = '/run/judged.log'\n{}", config(&key));
    let mut node = Node::with_config(Mode::MountOnly, &lines);
    let volume = group.linear("data", "48m").encrypted();
    node.write("pod", &volume, "page");

    let hidden = key.with_extension("hidden");
    fs::rename(&key, &hidden).unwrap();
    agreed(&node, &volume, &group, "no-key", "key_file /run/judged.key");
    fs::rename(&hidden, &key).unwrap();

    bash(
        "mkdir /run/judged.tools && ln -s /usr/sbin/* /run/judged.tools && rm /run/judged.tools/cryptsetup",
    );
    let without = "tool_dirs = ['/run/judged.tools', '/usr/bin']\n";
    node.configure(Mode::MountOnly, &format!("{without}{lines}"));
    let words = "cryptsetup is not installed";
    agreed(&node, &volume, &group, "no-tool", words);
    // What nobody has used is no pod's yet, so only who asks for it is told.
    bash("rm /run/judged.tools/mkfs.ext4");
    let blank = group.linear("blank", "32m");
    let words = "mkfs.ext4 is not installed";
    node.refuses_mount(&blank, &[words]);
    node.prints(&["check", "judged/blank", "--fs", "ext4"], words, 1);
    node.configure(Mode::MountOnly, &lines);
    node.up("pod", &volume);
}

#[test]
fn a_mistake_in_the_config_leaves_the_log_and_is_said_by_status() {
    let (group, volume) = Group::with_data("mistaken");
    let log = "log = '/run/mistaken.log'\n";
    let mut node = Node::with_config(Mode::MountOnly, log);
    node.write("pod", &volume, "page");
    node.configure(Mode::MountOnly, &format!("{log}nonsense = 1"));
    node.refuses_mount(&volume, &["nonsense"]);
    node.prints(&["status"], "nonsense", 0);
    node.prints(&["log"], &group.path("data"), 0);
}
