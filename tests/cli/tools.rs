//! Tools that fail or hang.

use crate::machine::{JSON, Machine, read, refuses};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

#[test]
fn a_tool_that_fails_is_quoted_and_its_noise_stays_out_of_the_document() {
    let machine = Machine::new();
    machine.tool(
        "lvs",
        "echo 'not JSON'; printf 'No \\033[31msuch\\n disk\\n' >&2; exit 5",
    );
    let reply = refuses(&machine, &["waitforattach", "", JSON]);
    let message = reply.message();
    assert!(
        message.contains("lvs") && message.contains("disk"),
        "{message}"
    );
}

#[test]
fn a_tool_that_hangs_is_ended_at_its_limit() {
    let machine = Machine::new();
    machine.configure("[limits]\nquery = 1");
    machine.tool("lvs", "/bin/sleep 100");
    let started = Instant::now();
    let reply = refuses(&machine, &["waitforattach", "", JSON]);
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    let message = reply.message();
    assert!(
        message.contains("lvs") && message.contains("1 s"),
        "{message}"
    );
}

#[test]
fn sigterm_ends_a_call_whose_tool_hangs_with_a_failure() {
    let machine = Machine::new();
    let (began, ended) = (
        machine.top.path().join("began"),
        machine.top.path().join("ended"),
    );
    let script = format!(
        ": > '{}'; /bin/sleep 100; : > '{}'",
        began.display(),
        ended.display()
    );
    machine.tool("lvs", &script);
    #[allow(clippy::disallowed_methods)] // assert_cmd's cannot be sent a signal
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("lvm"))
        .args(["waitforattach", "", JSON])
        .env("FLEXVOLUME_LVM_CONFIG", machine.config())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !began.exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "lvs never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Instant::now();
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        sent.elapsed() < Duration::from_secs(5),
        "{:?}",
        sent.elapsed()
    );
    let reply = read(&["waitforattach"], &output);
    assert_eq!(
        (reply.status(), reply.code),
        ("Failure", 1),
        "{}",
        reply.document
    );
    assert!(!ended.exists());
}
