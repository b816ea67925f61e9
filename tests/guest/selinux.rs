//! The driver where SELinux is enforcing, with Debian's policy: `tests/run.sh selinux` boots a guest for these cases.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::calls::lives::live_twice;
use crate::crypt::life::lives;
use crate::crypt::{config, key_file, with_key};
use crate::prelude::*;

/// What was denied to the driver and its tools since this was asked last.
fn denied() -> String {
    let log = run("dmesg", &["--read-clear"]);
    let ours = ["initrc_t", "lvm_t", "fsadm_t", "mount_t"].map(|one| format!("_r:{one}:"));
    let is_ours = |line: &str| {
        let subject = line.split("scontext=").nth(1).unwrap_or_default();
        let subject = subject.split(' ').next().unwrap_or_default();
        // That socket is the tests' own, and has not the label that journald gives it.
        let is_log = line.contains("path=\"/dev/log\"");
        // cryptsetup asks for the size of the blocks below the header's file, and does without an answer.
        let is_block_size = line.contains("comm=\"cryptsetup\"")
            && line.contains("{ getattr }")
            && line.ends_with("tclass=filesystem permissive=0");
        line.contains("denied")
            && !is_log
            && !is_block_size
            && ours.iter().any(|one| subject.contains(one))
    };
    let lines = log.lines().filter(|line| is_ours(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "tests/run.sh selinux runs it"]
fn plain_and_encrypted_volumes_live() {
    let group = Group::new("enforcing");
    for mode in BOTH_MODES {
        let node = with_key(mode, "enforcing");
        group.linear(mode.lv(), "32m");
        live_twice(&node, &group, mode.lv(), "ext4");
        let lv = format!("{}-secret", mode.lv());
        lives(&node, &group, &group.linear(&lv, "48m").encrypted(), "ext4");
    }
    assert_eq!(denied(), "");
}

#[test]
#[ignore = "tests/run.sh selinux runs it"]
fn the_tool_of_a_killed_call_keeps_the_lock() {
    let group = Group::new("confined");
    let lines = config(&key_file("confined")) + "[limits]\nlock = 2\n";
    let node = Node::with_config(Mode::MountOnly, &lines);
    // Their domains are lvm_t and fsadm_t.
    for (tool, volume) in [
        ("cryptsetup", group.linear("secret", "64m").encrypted()),
        ("mkfs.ext4", group.linear("plain", "512m")),
    ] {
        let call = node.start_mount("pod", &volume);
        let mut found = Vec::new();
        eventually(tool, || {
            found = processes_named(tool);
            !found.is_empty()
        });
        let pid = Pid::from_raw(found[0]);
        // In this order: a tool that is stopped when its parent ends gets a SIGHUP from the kernel. Source: exit(3),
        // "orphaned".
        call.kill();
        kill(pid, Signal::SIGSTOP).unwrap();
        node.refuses_mount(&volume, &[&format!("is held by {tool} (pid {pid}")]);
        kill(pid, Signal::SIGCONT).unwrap();
        eventually("its end", || !runs(&pid.to_string()));
        node.visit(&volume);
    }
    assert_eq!(denied(), "");
}

#[test]
#[ignore = "tests/run.sh selinux runs it"]
fn what_a_domain_may_not_do_is_not_called_missing() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "kept-away");
    // A domain that may run no LVM.
    let dir = node.exe().parent().unwrap().to_owned();
    run("chcon", &["-R", "-t", "bin_t", text(&dir)]);
    run("chcon", &["-t", "fsadm_exec_t", text(&node.exe())]);
    let hint = "SELinux is enforcing: `ausearch -m avc -ts recent`";
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["opening the lock file", hint]);
    node.prints(
        &["status"],
        "/usr/sbin/lvs may not be run: Permission denied",
        1,
    );
    node.prints(&["status"], hint, 1);
    node.prints(&["install"], hint, 1);
    assert!(denied().contains("lvm_exec_t"));
}
