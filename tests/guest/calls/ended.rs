//! A step's tool that something else ended: the message says what, advises for that, and ends with the step's word.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::data::lvm_conf::LvmConf;
use crate::prelude::*;

#[test]
fn a_tool_that_was_killed_or_cut_off_is_told_as_that() {
    let group = Group::new("ended");
    let killed = "kill -9 $$";
    let cases = [
        ("e2fsck", killed, "e2fsck was killed", "newer", "fsck"),
        (
            "e2fsck",
            "exec sleep 600",
            "`limits.check` of config.toml",
            "newer",
            "fsck",
        ),
        (
            "mkfs.ext4",
            killed,
            "mkfs.ext4 was killed",
            "too small",
            "mkfs",
        ),
        (
            "mount",
            "exit 127",
            "library that it needs",
            "features",
            "mount",
        ),
    ];
    for (n, (tool, body, words, not, step)) in cases.into_iter().enumerate() {
        let lv = format!("lv{n}");
        let volume = group.linear(&lv, "32m");
        let tools = Tools::new().put(tool, body);
        let config = format!("{}[limits]\ncheck = 1\n", tools.config());
        let mut node = Node::new(Mode::MountOnly);
        if tool != "mkfs.ext4" {
            node.write("pod", &volume, &lv);
        }
        node.configure(Mode::MountOnly, &config);
        let reply = node.mount("pod", &volume);
        reply.is_failure(&[words]);
        assert!(!reply.message.contains(not), "{reply:?}");
        assert!(reply.message.ends_with(&format!(" [{step}]")), "{reply:?}");
        if tool == "e2fsck" {
            let (said, code) = node.says(&["check", &group.path(&lv)]);
            assert!(said.contains(words) && !said.contains(not), "{said}");
            assert_eq!(code, 1, "{said}");
        }
        node.configure(Mode::MountOnly, "");
        node.visit(&volume);
    }
}

/// lvm.conf with another program that checks pools.
fn checked_by(program: &str) -> LvmConf {
    LvmConf::new(&format!(
        "global {{ thin_check_executable = \"{program}\" }}\n"
    ))
}

#[test]
fn a_check_of_a_pool_that_takes_longer_than_the_limit_goes_on() {
    let group = Group::new("checked");
    group.pool();
    let volume = group.thin("data", "32m");
    let mut node = Node::new(Mode::MountOnly);
    node.write("pod", &volume, "kept");
    group.deactivate();
    let (go, runs) = ("/run/checked.go", "/run/checked.runs");
    let script = format!(
        "#!/bin/sh\necho >> {runs}\nwhile [ -e $0 ] && [ ! -e {go} ]; do sleep 0.1; done\nexec /usr/sbin/thin_check \"$@\"\n"
    );
    let check = "/run/thin_check";
    fs::write(check, script).unwrap();
    fs::set_permissions(check, fs::Permissions::from_mode(0o755)).unwrap();
    let _away = Finally(format!("rm -f {check} {go} {runs}"));
    let conf = checked_by(check);
    node.configure(Mode::MountOnly, "[limits]\nactivate = 2\nquery = 5\n");
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["thin_check (pid ", "goes on", "`limits.activate`"]);
    assert!(reply.message.ends_with(" [activation]"), "{reply:?}");
    // The next call waits for the check, and begins none.
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["thin_check (pid ", "wait until it ends"]);
    fs::write(go, "").unwrap();
    eventually("the check ends", || group.is_active("data"));
    node.finds(&volume, "kept");
    assert_eq!(fs::read_to_string(runs).unwrap(), "\n");
    drop(conf);
}

#[test]
fn a_check_of_a_pool_that_cannot_be_run_asks_for_no_repair() {
    let group = Group::new("unchecked");
    group.pool();
    let volume = group.thin("data", "32m");
    let node = Node::new(Mode::MountOnly);
    node.write("pod", &volume, "kept");
    let check = "/run/broken_check";
    let _away = Finally(format!("rm -f {check}"));
    // LVM does without a check whose program is missing, but not without one that cannot be run.
    for mode in [0o644, 0o755] {
        fs::write(check, "#!/bin/sh\nexit 127\n").unwrap();
        fs::set_permissions(check, fs::Permissions::from_mode(mode)).unwrap();
        group.deactivate();
        let conf = checked_by(check);
        let reply = node.mount("pod", &volume);
        reply.is_failure(&["could not run the program", "repair nothing"]);
        assert!(!reply.message.contains("lvconvert"), "{reply:?}");
        assert!(reply.message.ends_with(" [activation]"), "{reply:?}");
        drop(conf);
    }
    node.finds(&volume, "kept");
}
