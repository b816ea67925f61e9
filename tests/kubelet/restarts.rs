//! kubelet is killed and started again.
//!
//! A pod that goes while kubelet is down is among the cases of the control plane: a standalone kubelet
//! 1.20 panics when it finds a volume that no pod wants.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::interrupted::Gate;
use crate::prelude::*;

/// A pod on a volume of its own, with a driver of its own.
struct Life {
    mode: Mode,
    driver: Driver,
    volume: Volume,
    pods: Vec<Pod>,
}

impl Life {
    fn begin(mode: Mode, driver: Driver, pod: fn(&Driver, &str, &Volume) -> Pod) -> Self {
        let volume = Volume::new(&driver.case, "data");
        let pods = vec![pod(&driver, "web", &volume)];
        Self {
            mode,
            driver,
            volume,
            pods,
        }
    }
}

/// One pod in each mode, which has written to its volume.
fn running_pods(case: &str) -> Vec<Life> {
    let start = |mode: Mode| {
        let driver = Driver::new(&mode.case(case), mode);
        Life::begin(mode, driver, Pod::answering)
    };
    let lives: Vec<_> = BOTH_MODES.into_iter().map(start).collect();
    for life in &lives {
        life.pods[0].says("written");
    }
    lives
}

/// Gives each volume one more pod, which finds what the first has written.
fn next_pods_find_the_data(lives: &mut [Life]) {
    for life in &mut *lives {
        let next = Pod::reading(&life.driver, "next", &life.volume);
        life.pods.push(next);
    }
    for life in lives {
        life.pods.last().unwrap().says("kept");
    }
}

/// All at once: most of it is waiting.
fn end(lives: &mut [Life], last: fn(Mode) -> Option<&'static str>) {
    let ends: Vec<_> = lives
        .iter()
        .map(|life| ending_with(last(life.mode), &life.driver, &life.volume, &life.pods))
        .collect();
    for ended in ends {
        ended();
    }
    for life in lives {
        life.pods.clear();
    }
}

/// kubelet has found by itself that the volume is mounted: with what little it knows of it, and
/// without the node's pods. So it asks for the device of one that it has attached, under no name.
fn assert_found_again(life: &Life, calls_before: usize) {
    if life.mode == Mode::Attach {
        life.driver.has_answered("waitforattach", 2);
    }
    let calls = life.driver.calls().split_off(calls_before);
    let made = |name: &str| calls.iter().find(|call| call.args[0] == name);
    for name in ["attach", "mountdevice", "mount", "unmount", "detach"] {
        assert!(made(name).is_none(), "{name}: {calls:#?}");
    }
    if life.mode == Mode::Attach {
        let little = json!({
            "kubernetes.io/fsType": "",
            "kubernetes.io/pvOrVolumeName": life.volume.name,
            "kubernetes.io/readwrite": "rw",
        });
        let asks = made("getvolumename").expect("it wants to know the name");
        let options: Value = serde_json::from_str(&asks.args[1]).unwrap();
        assert_eq!(options, little);
        assert_eq!(made("waitforattach").unwrap().args[1], "");
    }
}

#[test]
fn a_pod_that_is_still_wanted_keeps_its_volume() {
    let _kubelet = alone();
    let mut lives = running_pods("wanted");
    let calls: Vec<_> = lives.iter().map(|life| life.driver.calls().len()).collect();
    kill_kubelet();
    start_kubelet();
    for life in &lives {
        life.pods[0].answers(&life.driver, &life.volume);
    }
    if since(28) {
        for (life, before) in lives.iter().zip(calls) {
            assert_found_again(life, before);
        }
    }
    for life in &lives {
        let log = life.pods[0].log();
        assert_eq!(log.matches("written").count(), 1, "it ran on");
    }
    if since(27) {
        end(&mut lives, last_call_after_restart);
    }
    // kubelet has found out again what is mounted when a pod comes that needs it.
    next_pods_find_the_data(&mut lives);
    end(&mut lives, last_call);
    for life in lives {
        life.driver.assert_no_failure();
    }
}

/// The service manager kills all that kubelet has started, mkfs among it.
#[test]
fn a_mkfs_that_was_killed_with_kubelet_is_made_again() {
    let _kubelet = alone();
    let start = |mode: Mode| {
        let case = mode.case("making");
        let gate = Gate::new(&case);
        let driver = gate.driver(&case, mode);
        (gate, Life::begin(mode, driver, Pod::answering))
    };
    let (gates, mut lives): (Vec<_>, Vec<_>) = BOTH_MODES.into_iter().map(start).unzip();
    gates.iter().for_each(Gate::is_reached);
    kill_kubelet();
    kill_all(&["exec/making-", "drivers/making-", "/gate-making-"]);
    start_kubelet();
    gates.iter().for_each(Gate::open);
    for life in &lives {
        life.pods[0].says("written");
    }
    end(&mut lives, last_call_after_restart);
    next_pods_find_the_data(&mut lives);
    end(&mut lives, last_call);
}

/// Kills the processes with these words in their command line, in this order.
fn kill_all(words: &[&str]) {
    for word in words {
        for pid in processes(word) {
            // It may have ended just now.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        wait_until("they have ended", || processes(word).is_empty());
    }
}

fn processes(word: &str) -> Vec<i32> {
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| pid(entry.ok()?));
    let matches = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains(word)
    };
    pids.filter(matches).collect()
}
