//! The cost of a call that starts no process. The instructions are counted, not timed, so the cost is the same on every
//! machine.

use crate::support::driver::driver;
use crate::support::needs;
use crate::{JSON, NOT_HERE};
use assert_cmd::Command;

use crate::support::trace::trace;

const MISSING: &str = "/nonexistent/x";

#[test]
fn a_call_that_needs_nothing_starts_nothing_and_makes_few_system_calls() {
    const MOST: usize = 80;
    needs!("strace", "strace");
    for args in [
        &["init"][..],
        &["isattached", JSON, NOT_HERE],
        &["attach", JSON, NOT_HERE],
        &["detach", "data", NOT_HERE],
        &["unmount", MISSING],
        &["unmountdevice", MISSING],
    ] {
        let trace = trace(driver(), args);
        assert!(trace.stdout.contains("Success"), "{args:?}: {trace:?}");
        assert_eq!(trace.others, 0, "{args:?} started {:?}", trace.programs);
        assert!(trace.calls < MOST, "{args:?}: {} calls", trace.calls);
    }
}

/// The bounds are thousands of instructions of a development build. A release build takes a quarter of that. Two thirds
/// are relocations of the executable, which grow with its size. The bounds are a tenth above the count.
#[test]
fn a_call_that_needs_nothing_takes_few_instructions() {
    needs!("valgrind", "valgrind");
    // An option that the driver does not know is compared with those that it knows.
    let unknown = JSON.replace("\"size\":\"64m\"", "\"purpose\":\"backups\"");
    let calls: [(&[&str], u32); 7] = [
        (&["init"], 800),
        (&["isattached", JSON, NOT_HERE], 1010),
        (&["attach", JSON, NOT_HERE], 1030),
        (&["attach", &unknown, NOT_HERE], 1410),
        (&["detach", "data", NOT_HERE], 765),
        (&["unmount", MISSING], 760),
        (&["unmountdevice", MISSING], 760),
    ];
    let counted = calls.map(|(args, most)| (args, instructions(args) / 1000, most));
    let is_more = counted.iter().any(|(_, count, most)| count > most);
    assert!(!is_more, "{counted:#?}");
}

fn instructions(args: &[&str]) -> u32 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(driver())
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("FLEXVOLUME_LVM_CONFIG", "/dev/null")
        .output()
        .unwrap_or_else(|error| panic!("valgrind, which counts for this test: {error}"));
    let said = String::from_utf8(output.stderr).unwrap();
    let (_, count) = said
        .split_once("Collected : ")
        .unwrap_or_else(|| panic!("{said}"));
    count.lines().next().unwrap().parse().unwrap()
}
