//! Tools that hang, print without end, keep their output open, or ignore SIGTERM. Every call ends by its limit, or soon
//! after it is told to stop, with one document that says what it waited for. The tools are stand-ins, so no LVM is
//! needed.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::machine::{Machine, NO_VOLUME, lvs_row};
use support::running::Running;
use support::{eventually, runs};

/// Output of lvs for an inactive volume, so that the driver goes on to lvchange.
fn inactive() -> String {
    format!("set nosuch data; {} \"$@\"", lvs_row())
}

/// A machine whose LVM is stand-ins: `lvs` and `lvchange` are the bodies of shell scripts.
struct SlowTools(Machine);

impl SlowTools {
    fn with_limits(lvs: &str, lvchange: &str, limits: &str) -> Self {
        let machine = Machine::new();
        machine.tool("lvs", lvs);
        machine.tool("lvchange", lvchange);
        machine.configure(&format!("[limits]\n{limits}"));
        Self(machine)
    }

    /// Starts a call that needs LVM, with one further option.
    fn start_with(&self, option: &str) -> Running {
        let json = format!(r#"{{"volumegroup":"nosuch","volumeID":"data"{option}}}"#);
        self.0.start(&["waitforattach", "", &json])
    }

    fn start(&self) -> Running {
        self.start_with("")
    }

    /// Expects a failure that says these words. Returns its whole message.
    fn fails(&self, words: &[&str]) -> String {
        let reply = self.start().reply();
        reply.is_failure(words);
        reply.message
    }
}

const HANG: &str = "echo $$ > $TOP/pid; exec sleep 1000";
const STUBBORN: &str = "trap '' TERM; echo $$ > $TOP/pid; while :; do sleep 1000; done";
/// A tool that prints without end. The driver ends it at 16 MiB.
const FLOOD: &str = "echo $$ > $TOP/pid; trap '' TERM; exec yes";
const COMPLAINTS: &str = "echo $$ > $TOP/pid; trap '' TERM; exec yes >&2";

#[test]
fn a_tool_that_does_not_end_is_killed_and_named() {
    let (asking, activating) = ("asking LVM for nosuch/data", "activating nosuch/data");
    let late = "`lvs -- nosuch/data` did not end within 3 s and was stopped";
    let unfinished = "did not end within 3 s and was stopped; the step may be unfinished";
    let asked =
        "echo $$ > $TOP/pid; trap 'echo stopped > $TOP/asked; exit 1' TERM\nsleep 1000 & wait";
    let cases = [
        (HANG, "", "query = 3", [asking, late]),
        (FLOOD, "", "", [asking, "more than 16 MiB"]),
        (COMPLAINTS, "", "query = 3", [asking, late]),
        (&inactive(), asked, "activate = 3", [activating, unfinished]),
        (
            &inactive(),
            STUBBORN,
            "activate = 3",
            [activating, unfinished],
        ),
        (&inactive(), FLOOD, "", [activating, "more than 16 MiB"]),
    ];
    for (lvs, lvchange, limit, words) in cases {
        let node = SlowTools::with_limits(lvs, lvchange, limit);
        node.fails(&words);
        assert!(!runs(&node.0.wait_for("pid")), "{lvs:?} {lvchange:?}");
        if lvchange == asked {
            assert_eq!(node.0.wait_for("asked"), "stopped");
        }
    }
}

#[test]
fn a_tool_is_killed_with_all_that_it_started() {
    let body = "trap '' TERM INT HUP\nsleep 1000 & echo $! > $TOP/child\nexec sleep 1000";
    let node = SlowTools::with_limits(body, "", "query = 3");
    node.fails(&["did not end within 3 s"]);
    let child = node.0.wait_for("child");
    eventually("the end of the tool's child", || !runs(&child));
}

#[test]
fn a_tool_that_complains_at_length_is_cut() {
    let lvs = "echo the reason >&2; yes 'nothing to see here' | head -c 300000 >&2
        echo the consequence >&2; exit 5";
    let words = ["exit code 5: the reason; nothing", " … ", "the consequence"];
    SlowTools::with_limits(lvs, "", "query = 60").fails(&words);
    // A tool that explains its usage says its reason before that.
    let lvs = "echo too small >&2; echo Usage: lvs >&2; yes option | head -c 3000 >&2; exit 5";
    let message = SlowTools::with_limits(lvs, "", "").fails(&["exit code 5: too small"]);
    let is_cut = !message.contains("Usage") && !message.contains("option");
    assert!(is_cut, "{message}");
}

#[test]
fn of_two_calls_that_ask_lvmlockd_at_once_the_later_one_waits() {
    let lvs = inactive().replace("\"vg_lock_type\":\"\"", "\"vg_lock_type\":\"sanlock\"");
    let node = SlowTools::with_limits(&lvs, "", "query = 60");
    let lvmlockctl = "mkdir $TOP/asked || { echo info=ls vg_name=nosuch; exit; }
        echo socket error -98 >&2; exit 158";
    node.0.tool("lvmlockctl", lvmlockctl);
    node.fails(&["its locks are just being started"]);
}

#[test]
fn a_daemon_that_a_tool_leaves_behind_holds_up_nothing() {
    // With both pipes open, as a daemon that was written carelessly has them.
    let lvs = format!("sleep 1000 & echo $! > $TOP/daemon\n{NO_VOLUME}");
    let node = SlowTools::with_limits(&lvs, "", "query = 900");
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
    let (asking, activating) = (
        "asking LVM for nosuch/data: `lvs",
        "activating nosuch/data: `lvchange",
    );
    let inactive = inactive();
    let cases = [
        (HANG, "", asking),
        (COMPLAINTS, "", asking),
        (&inactive, HANG, activating),
        (&inactive, STUBBORN, activating),
        (&inactive, COMPLAINTS, activating),
    ];
    let other_signals = [Signal::SIGINT, Signal::SIGHUP].map(|signal| (signal, cases[0]));
    let all = cases.map(|case| (Signal::SIGTERM, case));
    for (signal, (lvs, lvchange, step)) in all.into_iter().chain(other_signals) {
        // A call with a secret ends with 0 whatever it says.
        for option in ["", r#","kubernetes.io/secret/key":"VE9Q""#] {
            let node = SlowTools::with_limits(lvs, lvchange, limits);
            let call = node.start_with(option);
            let pid = node.0.wait_for("pid");
            call.signal(signal);
            let words = [step, "was stopped because the driver was told to stop"];
            call.reply().is_failure(&words);
            assert!(!runs(&pid), "{signal}: {lvs:?} {lvchange:?}");
        }
    }
}

#[test]
fn sigterm_ends_a_call_though_a_tool_takes_its_time_to_obey() {
    // kubelet gives the driver 10 seconds, and the driver keeps most of them in hand.
    let slow = "trap 'sleep 5; echo late > $TOP/late; exit 1' TERM; echo $$ > $TOP/pid\n\
        sleep 1000 & wait";
    let node = SlowTools::with_limits(&inactive(), slow, "query = 900\nactivate = 900");
    let call = node.start();
    let pid = node.0.wait_for("pid");
    call.signal(Signal::SIGTERM);
    let words = ["activating nosuch/data", "the driver was told to stop"];
    call.reply().is_failure(&words);
    assert!(!runs(&pid));
    assert!(!node.0.path("late").exists(), "the driver waited for it");
}

#[test]
fn sigterm_between_two_tools_starts_no_other() {
    // lvs tells the driver to stop and answers in full: lvchange must not run any more.
    let lvs = format!("kill -TERM $PPID; {}", inactive());
    let node = SlowTools::with_limits(&lvs, "echo ran > $TOP/ran", "query = 900");
    let message = node.fails(&["told to stop"]);
    assert!(!message.contains("unfinished"), "{message}");
    assert!(!node.0.path("ran").exists());
}
