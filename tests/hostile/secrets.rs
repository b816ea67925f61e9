//! A secret that kubelet hands over is nowhere to be seen again, whatever goes wrong.

use std::ffi::OsString;

use crate::node::{Done, Node, bytes, words};
use crate::vectors::refused;
use crate::{CALLS, DIR, call, options};

/// What nobody may see, in base64 as kubelet has it.
const CANARY: &str = "Y2FuYXJ5LWluLWEtY29hbC1taW5l";
const KEY: &str = "kubernetes.io/secret/password";

/// Options with a secret in the middle.
fn with_secret(option: &str, value: &str) -> String {
    let rest = options(option, value);
    format!("{{\"{KEY}\":\"{CANARY}\",{}", &rest[1..])
}

fn assert_hidden(args: &[OsString], done: &Done) {
    let seen = format!("{done:?}");
    // Half of it would be too much as well. (The exit code is checked where the reply is read.)
    for part in [&CANARY[..10], &CANARY[10..]] {
        assert!(!seen.contains(part), "{args:?}: {seen}");
    }
    assert!(done.log.contains("call="), "{args:?}: {:?}", done.log);
}

/// A secret in good options, in bad ones, and where no options belong.
fn calls() -> Vec<Vec<OsString>> {
    let good = with_secret("x", "\"\"");
    let (head, tail) = good.split_at(good.find(CANARY).unwrap() + 10);
    let mut calls: Vec<_> = (0..CALLS).map(|n| call(n, &good)).collect();
    let missing = with_secret("volumeID", "\"new\"");
    calls.extend((0..CALLS).map(|n| call(n, &missing)));
    let refused = refused().enumerate().step_by(4);
    calls.extend(refused.map(|(n, (option, value, _))| call(n, &with_secret(option, value))));
    let rest = &good[1..];
    let documents = [
        // Broken behind the secret, before it, in it.
        format!("{good}}}"),
        good.replace(",\"volumegroup\"", ",,\"volumegroup\""),
        format!("{{\"a\" \"b\",{rest}"),
        format!("{{\"a\":\u{1},{rest}"),
        head.to_owned(),
        format!("{{\"{KEY}\":\"{CANARY}\\q\",{rest}"),
        // Of another type, twice.
        format!("{{\"{KEY}\":[\"{CANARY}\"],{rest}"),
        format!("{{\"{KEY}\":{{\"a\":\"{CANARY}\"}},{rest}"),
        format!("{{\"{KEY}\":\"{CANARY}\",{rest}"),
        // No object.
        format!("[{good}]"),
        format!("\"{good}"),
        format!("null {good}"),
        // In another option as well, or as the name of one.
        good.replace("\"x\":\"\"", &format!("\"x\":\"{CANARY}\"")),
        good.replace("\"x\":\"\"", &format!("\"x\":[\"{CANARY}\"]")),
    ];
    for (n, json) in documents.iter().enumerate() {
        calls.push(call(n, json));
        calls.push(call(n + 1, json));
    }
    let good = good.as_str();
    let misplaced: [&[&str]; 24] = [
        &[good],
        &["init", good],
        &["attach", good, "other-node"],
        &["attach", good, good],
        &["attach", good, "node", "surplus"],
        &["isattached", good, "other-node"],
        &["isattached", "node", good],
        &["isattached", good, good],
        &["detach", good],
        &["detach", good, "node"],
        &["detach", "data", good],
        &["waitforattach", good],
        &["waitforattach", good, good],
        &["waitforattach", good, ""],
        &["mountdevice", good, "", good],
        &["mountdevice", DIR, good, good],
        &["mountdevice", DIR, good],
        &["mount", good, DIR],
        &["mount", good],
        &["mount", DIR, head, tail],
        &["mount", head, tail],
        &["unmount", good],
        &["expandfs", good, "", DIR, good, "1"],
        &["expandvolume", good, good, "1", "1"],
    ];
    calls.extend(misplaced.map(words));
    let encoded = [&b"\xff"[..], good.as_bytes()].concat();
    calls.push(vec!["mount".into(), DIR.into(), bytes(&encoded)]);
    calls.push(vec!["unmountdevice".into(), bytes(&encoded)]);
    calls
}

#[test]
fn a_secret_is_never_seen_again() {
    let node = Node::new();
    for lines in ["", "deactivate = true\nattach = false"] {
        node.configure(lines);
        for args in calls() {
            assert_hidden(&args, &node.call(&args));
        }
    }
}

/// A tool that shows all that it can see does not see the secret.
#[test]
fn a_tool_that_tells_everything_does_not_know_the_secret() {
    let node = Node::that_tells_everything();
    // isattached runs no tool.
    for n in 0..CALLS - 1 {
        let args = call(n, &with_secret("x", "\"\""));
        let done = node.call(&args);
        let message = &done.reply.message;
        assert!(message.contains("tools/lvs --reportformat"), "{message}");
        assert_hidden(&args, &done);
    }
}
