//! Hostile input on the real executable: whatever comes in, one document comes out, nothing is
//! started with a word that was not checked, and nothing on the disk changes.
//!
//! Needs strace. No LVM is asked: the tools are stand-ins.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod around;
mod secrets;
#[path = "../support/mod.rs"]
mod support;
mod traced_machine;
mod vectors;

use crate::support::needs;
use std::ffi::OsString;

use traced_machine::{TracedMachine, bytes, words};
use vectors::{DEVICES, DIRECTORIES, DOCUMENTS, HARMLESS, NAMES, refused};

/// How many call-outs take options.
const CALLS: usize = 7;
const DIR: &str = "/nosuch/kubelet/pods/1/volumes/kubernetes.io~lvm/data";
const BASE: [(&str, &str); 5] = [
    ("kubernetes.io/fsType", r#""ext4""#),
    ("kubernetes.io/readwrite", r#""rw""#),
    ("kubernetes.io/pvOrVolumeName", r#""data""#),
    ("volumegroup", r#""vg""#),
    ("volumeID", r#""data""#),
];

/// Good options, except for this one.
fn options(option: &str, value: &str) -> String {
    let mut pairs: Vec<_> = BASE
        .into_iter()
        .filter(|(name, _)| *name != option)
        .collect();
    pairs.push((option, value));
    let pairs: Vec<_> = pairs.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
    format!("{{{}}}", pairs.join(","))
}

/// Each call-out that takes options; `n` says which.
fn call(n: usize, json: &str) -> Vec<OsString> {
    let host = support::host_name();
    words(&match n % CALLS {
        0 => vec!["mount", DIR, json],
        1 => vec!["mountdevice", DIR, "", json],
        2 => vec!["attach", json, &host],
        3 => vec!["waitforattach", "", json],
        4 => vec!["expandfs", json, "", DIR, "1073741824", "1"],
        5 => vec!["expandvolume", json, DIR, "1073741824", "1"],
        _ => vec!["isattached", json, "another-node"],
    })
}

/// What is wrong with the driver's answer, which must be a refusal for this reason. The driver must do nothing. `None`:
/// nothing is wrong.
fn wrongs(node: &TracedMachine, args: &[OsString], reason: &str) -> Option<String> {
    let done = node.call(args);
    let is_refused = done.reply.status == "Failure" && done.reply.message.contains(reason);
    let shown: String = format!("{args:?}").chars().take(300).collect();
    let is_right = is_refused && done.did_nothing();
    (!is_right).then(|| format!("{shown}\nfor {reason:?}: {done:?}\n"))
}

/// Makes each of these calls, and fails with all that were not refused as they should be.
fn refuses_all<'a>(calls: impl IntoIterator<Item = (Vec<OsString>, &'a str)>) -> usize {
    let node = TracedMachine::new();
    let before = node.files();
    let mut count = 0;
    let wrong: Vec<_> = calls
        .into_iter()
        .inspect(|_| count += 1)
        .filter_map(|(args, reason)| wrongs(&node, &args, reason))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(node.files(), before);
    count
}

#[test]
fn no_option_gets_past_its_check() {
    needs!("strace", "strace");
    let options = refused().map(|(option, value, reason)| (options(option, value), reason));
    let documents = DOCUMENTS.iter();
    let documents = documents.map(|(json, reason)| ((*json).to_owned(), *reason));
    let calls = options.chain(documents).enumerate();
    let count = refuses_all(calls.map(|(n, (json, reason))| (call(n, &json), reason)));
    assert!(count >= 80, "{count}");
}

#[test]
fn a_path_that_is_no_directory_or_device_is_refused() {
    needs!("strace", "strace");
    let json = options("x", r#""""#);
    let dirs = DIRECTORIES.iter().flat_map(|dir| {
        let calls = [
            words(&["mount", dir, &json]),
            words(&["mountdevice", dir, "", &json]),
            words(&["unmount", dir]),
            words(&["unmountdevice", dir]),
            words(&["expandfs", &json, "", dir, "1", "1"]),
        ];
        calls.map(|call| (call, "not a directory to mount on"))
    });
    let devices = DEVICES.iter().flat_map(|device| {
        let calls = [
            words(&["mountdevice", DIR, device, &json]),
            words(&["waitforattach", device, &json]),
        ];
        calls.map(|call| (call, "is not a device"))
    });
    refuses_all(dirs.chain(devices));
}

#[test]
#[rustfmt::skip] // a row is a line
fn arguments_of_any_number_and_encoding_are_answered() {
    needs!("strace", "strace");
    let json = &options("x", r#""""#);
    let long = &"a".repeat(120 << 10);
    let many = [&["mount"], &[long.as_str(); 9][..]].concat();
    let counted: [(&[&str], &str); 13] = [
        (&[], "no call-out given; see `flexvolume-lvm --help`"),
        (&["mount", DIR], "arguments given: 1"),
        (&["mount", DIR, "", json, ""], "arguments given: 4"),
        (&["init", "help"], "arguments given: 1"),
        (&["unmount", DIR, DIR], "arguments given: 2"),
        (&["detach", "data", "node", "-f"], "arguments given: 3"),
        (&["expandfs", json, "", DIR, "1"], "arguments given: 4"),
        (&["expandfs", json, "", DIR, "-1", "1"], "the new size"),
        (&["expandfs", json, "", DIR, "1g", "1"], "the new size"),
        (&["expandfs", json, "", DIR, "", "1"], "the new size"),
        (&["expandvolume", json, DIR, &"9".repeat(20), "1"], "the new size"),
        (&many, "arguments given: 9"),
        (&["mount", long, json], "not a directory to mount on"),
    ];
    let counted = counted.map(|(args, reason)| (words(args), reason));
    let every = NAMES.split_whitespace().flat_map(|name| {
        let eight = [&[name], &["x"; 8][..]].concat();
        [(words(&[name]), "arguments given: 0"), (words(&eight), "arguments given: 8")]
    });
    let encoded: [(&[&[u8]], &str); 5] = [
        (&[b"mount", b"/a\xff", json.as_bytes()], "argument 1 of the call"),
        (&[b"mount", DIR.as_bytes(), b"{\"\xc3\":\"\"}"], "argument 2 of the call"),
        (&[b"unmount", b"/\xed\xa0\x80"], "argument 1 of the call"),
        (&[b"\xff\xfe"], "argument 0 of the call"),
        (&[b"attach", json.as_bytes(), b"n\xff"], "argument 2 of the call"),
    ];
    let encoded = encoded.map(|(args, reason)| (args.iter().map(|arg| bytes(arg)).collect(), reason));
    refuses_all(every.chain(counted).chain(encoded));
}

#[test]
fn a_word_that_is_no_call_out_does_nothing() {
    needs!("strace", "strace");
    let node = TracedMachine::new();
    let json = options("x", r#""""#);
    let (near, far) = (
        ["Mount", "mount ", "mount\n", "../mount"],
        ["$(reboot)", "-", "--", ""],
    );
    for stranger in near
        .into_iter()
        .chain(far)
        .chain(["getvolumename", "waitfordetach"])
    {
        let done = node.call(&words(&[stranger, &json]));
        assert_eq!(done.reply.status, "Not supported", "{stranger:?}: {done:?}");
        assert!(done.did_nothing(), "{stranger:?}: {done:?}");
    }
}

#[test]
fn tools_are_started_with_checked_words_only() {
    needs!("strace", "strace");
    let node = TracedMachine::new();
    let before = node.files();
    let mut started = 0;
    for (option, value) in HARMLESS {
        for n in 0..CALLS {
            let args = call(n, &options(option, value));
            let done = node.call(&args);
            started += done.tools.len();
            for word in done.tools.iter().flatten() {
                assert!(is_checked(word), "{args:?}: {word:?}");
            }
        }
    }
    assert!(started > 100, "{started} tools were started");
    assert_eq!(node.files(), before);
}

/// Whether a word is one of the driver's own, or has only characters without a special meaning.
fn is_checked(word: &str) -> bool {
    const OWN: &str = "--reportformat --units --nosuffix --config --options -- --activate \
        --ignoreactivationskip --yes --addtag --deltag --name --size --virtualsize --thinpool \
        --wipesignatures --zero --select";
    const CONFIGS: [&str; 2] = [
        "report/time_format=\"%s\" report/list_item_separator=\",\" \
         report/binary_values_as_numeric=0 report/compact_output=0 report/compact_output_cols=\"\" report/prefixes=0 \
         log/report_command_log=0 log/command_names=0 log/prefix=\"\"",
        "log{report_command_log=0}global{test=0}",
    ];
    let is_list = word.starts_with("vg_name,");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+_.-/".contains(c);
    // LVM's own answer, and no option of a volume.
    let uuid = word
        .strip_prefix("lv_uuid=\"")
        .and_then(|uuid| uuid.strip_suffix('"'));
    let word = uuid.unwrap_or(word);
    OWN.split(' ').any(|own| own == word)
        || is_list
        || CONFIGS.contains(&word)
        || (word.chars().all(is_plain) && !word.starts_with(['-', '/', '.']))
}
