//! A secret that kubelet hands to the driver can be seen nowhere afterwards, whatever goes wrong.

use crate::support::needs;
use std::ffi::{OsStr, OsString};

use crate::support::machine::Machine;
use crate::support::reply::Reply;
use crate::traced_machine::{Done, TracedMachine, bytes};
use crate::vectors::refused;
use crate::{CALLS, DIR, call, options};

/// A secret that nobody may see, in base64 as kubelet has it.
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
    assert!(done.log.contains(r#""call":"#), "{args:?}: {:?}", done.log);
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
        // A secret that is a list, one that is an object, and one that is there twice.
        format!("{{\"{KEY}\":[\"{CANARY}\"],{rest}"),
        format!("{{\"{KEY}\":{{\"a\":\"{CANARY}\"}},{rest}"),
        format!("{{\"{KEY}\":\"{CANARY}\",{rest}"),
        // No object.
        format!("[{good}]"),
        format!("\"{good}"),
        format!("null {good}"),
        // The secret is in another option as well.
        good.replace("\"x\":\"\"", &format!("\"x\":\"{CANARY}\"")),
        good.replace("\"x\":\"\"", &format!("\"x\":[\"{CANARY}\"]")),
    ];
    for (n, json) in documents.iter().enumerate() {
        calls.push(call(n, json));
        calls.push(call(n + 1, json));
    }
    let good = good.as_str();
    // {} is the whole document, and < and > its halves.
    let misplaced = "{}|init {}|attach {} other-node|attach {} {}|attach {} node surplus|\
        isattached {} other-node|isattached node {}|isattached {} {}|detach {}|detach {} node|\
        detach data {}|waitforattach {}|waitforattach {} {}|mountdevice {} DIR {}|\
        mountdevice DIR {} {}|mountdevice DIR {}|mount {} DIR|mount {}|mount DIR < >|mount < >|\
        unmount {}|expandfs {} DIR DIR {} 1|expandvolume {} {} 1 1";
    let word = |word: &str| match word {
        "{}" => good.into(),
        "<" => head.into(),
        ">" => tail.into(),
        "DIR" => DIR.into(),
        word => word.into(),
    };
    calls.extend(
        misplaced
            .split('|')
            .map(|call| call.split(' ').map(word).collect()),
    );
    let encoded = [&b"\xff"[..], good.as_bytes()].concat();
    calls.push(vec!["mount".into(), DIR.into(), bytes(&encoded)]);
    calls.push(vec!["unmountdevice".into(), bytes(&encoded)]);
    calls
}

#[test]
fn a_secret_is_never_seen_again() {
    needs!("strace", "strace");
    let node = TracedMachine::new();
    for lines in ["", "deactivate = true\nattach = false"] {
        node.configure(lines);
        for args in calls() {
            assert_hidden(&args, &node.call(&args));
        }
    }
}

#[test]
fn a_call_that_cannot_hide_its_secret_does_and_logs_nothing() {
    let machine = Machine::new();
    let args = call(0, &with_secret("x", "\"\""));
    // No descriptor is left for a pipe.
    let short = ["bash", "-c", "ulimit -n 3; exec \"$0\" \"$@\""].map(OsStr::new);
    let output = machine.under(&short, &args).output().unwrap();
    let words = ["could not take that off its command line", "open files"];
    Reply::of(&args, &output).is_failure(&words);
    assert!(!machine.path("log").exists());
}
