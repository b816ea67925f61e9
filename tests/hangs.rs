//! Tools that hang, flood, cling or will not die: every call ends by its limit, or soon after it is
//! told to stop, with one document that says what it waited for. The tools are stand-ins, so this
//! needs neither LVM nor root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods
)]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::machine::{LVS_ROW, Machine, NO_VOLUME};
use support::running::Running;
use support::{eventually, runs};

/// Waits until the test is over, however long that is, without a child of its own.
const FOR_EVER: &str = "exec sleep 1000";

/// What lvs says of a volume that is not active, so that the driver goes on to lvchange.
fn inactive() -> String {
    format!("set nosuch data; {LVS_ROW} \"$@\"")
}

/// A machine whose LVM is stand-ins: `lvs` and `lvchange` are the bodies of shell scripts.
struct Node(Machine);

impl Node {
    /// The limits are 1 second.
    fn new(lvs: &str, lvchange: &str) -> Self {
        Self::with_limits(lvs, lvchange, "query = 1\nactivate = 1")
    }

    fn with_limits(lvs: &str, lvchange: &str, limits: &str) -> Self {
        let machine = Machine::new();
        machine.tool("lvs", lvs);
        machine.tool("lvchange", lvchange);
        machine.configure(&format!("[limits]\n{limits}"));
        Self(machine)
    }

    /// Makes a call that needs LVM.
    fn start(&self) -> Running {
        let json = r#"{"volumegroup":"nosuch","volumeID":"data"}"#;
        self.0.start(&["waitforattach", "", json])
    }

    /// A failure that says these words. Returns all of them.
    fn fails(&self, words: &[&str]) -> String {
        let reply = self.start().reply();
        reply.is_failure(words);
        reply.message
    }
}

#[test]
fn lvs_that_never_returns_is_killed_at_its_limit_and_named() {
    let node = Node::new(&format!("echo $$ > $TOP/pid; {FOR_EVER}"), "");
    node.fails(&[
        "asking LVM for nosuch/data",
        "`lvs -- nosuch/data` did not end within 1 s and was stopped",
    ]);
    assert!(!runs(&node.0.wait_for("pid")));
}

#[test]
fn a_tool_is_killed_with_all_that_it_started() {
    let body = format!("trap '' TERM INT HUP\nsleep 1000 & echo $! > $TOP/child\n{FOR_EVER}");
    let node = Node::new(&body, "");
    node.fails(&["did not end within 1 s"]);
    let child = node.0.wait_for("child");
    eventually("the end of the tool's child", || !runs(&child));
}

#[test]
fn a_writer_is_asked_to_stop_before_it_is_killed() {
    let change = "echo $$ > $TOP/pid; trap 'echo stopped > $TOP/asked; exit 1' TERM\n\
        sleep 1000 & wait";
    let node = Node::new(&inactive(), change);
    node.fails(&[
        "activating nosuch/data",
        "`lvchange --activate y",
        "did not end within 1 s and was stopped; the step may be unfinished",
    ]);
    assert_eq!(node.0.wait_for("asked"), "stopped");
}

#[test]
fn a_writer_that_ignores_sigterm_is_killed_in_the_end() {
    let change = "echo $$ > $TOP/pid; trap '' TERM; while :; do sleep 1000; done";
    let node = Node::new(&inactive(), change);
    node.fails(&["activating nosuch/data", "did not end within 1 s"]);
    assert!(!runs(&node.0.wait_for("pid")));
}

#[test]
fn a_tool_that_floods_its_output_is_stopped() {
    let node = Node::new("echo $$ > $TOP/pid; exec yes", "");
    node.fails(&["asking LVM for nosuch/data", "`lvs", "more than 16 MiB"]);
    assert!(!runs(&node.0.wait_for("pid")));
}

#[test]
fn a_tool_that_floods_its_standard_error_floods_no_message() {
    let node = Node::new("exec yes >&2", "");
    node.fails(&["`lvs", "did not end within 1 s"]);
}

#[test]
fn a_tool_that_complains_at_length_is_cut_in_the_middle() {
    let lvs = "echo the reason >&2; yes 'nothing to see here' | head -c 300000 >&2
        echo the consequence >&2; exit 5";
    let words = ["exit code 5: the reason; nothing", " … ", "the consequence"];
    Node::with_limits(lvs, "", "query = 60").fails(&words);
}

#[test]
fn a_tool_that_explains_its_usage_is_cut_after_its_reason() {
    let lvs = "echo too small >&2; echo Usage: lvs >&2; yes option | head -c 3000 >&2; exit 5";
    let message = Node::new(lvs, "").fails(&["exit code 5: too small"]);
    assert!(message.ends_with("too small"), "{message}");
}

#[test]
fn a_writer_that_floods_and_ignores_sigterm_is_killed() {
    let change = "echo $$ > $TOP/pid; trap '' TERM; exec yes";
    let node = Node::new(&inactive(), change);
    node.fails(&["activating nosuch/data", "more than 16 MiB"]);
    assert!(!runs(&node.0.wait_for("pid")));
}

#[test]
fn a_daemon_that_a_tool_leaves_behind_holds_up_nothing() {
    // With both pipes open, as a daemon that was written carelessly has them.
    let lvs = format!("sleep 1000 & echo $! > $TOP/daemon\n{NO_VOLUME}");
    let node = Node::with_limits(&lvs, "", "query = 900");
    node.fails(&["there is no logical volume nosuch/data"]);
    let daemon = node.0.wait_for("daemon");
    assert!(runs(&daemon), "what a tool starts for good is not killed");
    let pid = Pid::from_raw(daemon.parse().unwrap());
    kill(pid, Signal::SIGKILL).unwrap();
}

#[test]
fn sigterm_ends_a_call_while_a_tool_hangs() {
    // The limit is far off: only the signal can end these.
    let limits = "query = 900\nactivate = 900";
    let hang = format!("echo $$ > $TOP/pid; {FOR_EVER}");
    let stubborn = "trap '' TERM; echo $$ > $TOP/pid; while :; do sleep 1000; done";
    let flood = "trap '' TERM; echo $$ > $TOP/pid; exec yes >&2";
    let inactive = inactive();
    let cases = [
        (hang.as_str(), "", "asking LVM for nosuch/data: `lvs"),
        (flood, "", "asking LVM for nosuch/data: `lvs"),
        (
            &inactive,
            hang.as_str(),
            "activating nosuch/data: `lvchange",
        ),
        (&inactive, stubborn, "activating nosuch/data: `lvchange"),
        (&inactive, flood, "activating nosuch/data: `lvchange"),
    ];
    let other_signals = [Signal::SIGINT, Signal::SIGHUP].map(|signal| (signal, cases[0]));
    let all = cases.map(|case| (Signal::SIGTERM, case));
    for (signal, (lvs, lvchange, step)) in all.into_iter().chain(other_signals) {
        let node = Node::with_limits(lvs, lvchange, limits);
        let call = node.start();
        let pid = node.0.wait_for("pid");
        call.signal(signal);
        call.reply()
            .is_failure(&[step, "was stopped because the driver was told to stop"]);
        assert!(!runs(&pid), "{signal}: {lvs:?} {lvchange:?}");
    }
}

#[test]
fn sigterm_ends_a_call_though_a_tool_takes_its_time_to_obey() {
    // kubelet gives the driver 10 seconds, and the driver keeps most of them in hand.
    let slow = "trap 'sleep 5; echo late > $TOP/late; exit 1' TERM; echo $$ > $TOP/pid\n\
        sleep 1000 & wait";
    let node = Node::with_limits(&inactive(), slow, "query = 900\nactivate = 900");
    let call = node.start();
    let pid = node.0.wait_for("pid");
    call.signal(Signal::SIGTERM);
    call.reply()
        .is_failure(&["activating nosuch/data", "the driver was told to stop"]);
    assert!(!runs(&pid));
    assert!(!node.0.path("late").exists(), "the driver waited for it");
}

#[test]
fn sigterm_between_two_tools_starts_no_other() {
    // lvs tells the driver to stop and answers in full: lvchange must not run any more.
    let lvs = format!("kill -TERM $PPID; {}", inactive());
    let node = Node::with_limits(&lvs, "echo ran > $TOP/ran", "query = 900");
    let message = node.fails(&["told to stop"]);
    assert!(!message.contains("unfinished"), "{message}");
    assert!(!node.0.path("ran").exists());
}
