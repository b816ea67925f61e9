//! kubelet is killed and started again.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::driver::{BOTH_MODES, Driver, Mode};
use crate::interrupted::Gate;
use crate::machine::{alone, kill_kubelet, start_kubelet};
use crate::pod::{Pod, all_end};
use crate::volume::Volume;
use crate::wait_until;

/// One pod in each mode, which has written to its volume.
fn running_pods(case: &str) -> Vec<(Mode, Driver, Volume, Pod)> {
    let start = |mode: Mode| {
        let case = mode.case(case);
        let driver = Driver::new(&case, mode);
        let volume = Volume::new(&case, "data");
        let pod = Pod::answering(&driver, "web", &volume);
        (mode, driver, volume, pod)
    };
    let all: Vec<_> = BOTH_MODES.into_iter().map(start).collect();
    for (_, _, _, pod) in &all {
        pod.says("written");
    }
    all
}

#[test]
fn a_pod_that_is_still_wanted_keeps_its_volume() {
    let _kubelet = alone();
    let pods = running_pods("wanted");
    kill_kubelet();
    start_kubelet();
    for (mode, driver, volume, pod) in pods {
        pod.answers(&driver, &volume);
        // kubelet has found out again what is mounted when a pod comes that needs it.
        let next = Pod::reading(&driver, "next", &volume);
        next.says("kept");
        assert_eq!(pod.log().matches("written").count(), 1, "it ran on");
        all_end(&driver, mode, &volume, &[pod, next]);
        driver.assert_no_failure();
    }
}

#[test]
fn a_volume_whose_pod_has_gone_meanwhile_is_unmounted() {
    let _kubelet = alone();
    let pods = running_pods("meanwhile");
    kill_kubelet();
    for (_, _, _, pod) in &pods {
        pod.delete();
    }
    start_kubelet();
    for (mode, driver, volume, pod) in pods {
        pod.is_gone();
        volume.is_unmounted();
        let next = Pod::reading(&driver, "next", &volume);
        next.says("kept");
        all_end(&driver, mode, &volume, &[next]);
        driver.assert_no_failure();
    }
}

/// What becomes of the driver and of mkfs when kubelet is killed.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Both go on.
    GoOn,
    /// mkfs goes on without the driver.
    DriverDies,
    /// The service manager kills all that kubelet has started.
    AllDie,
}

#[test]
fn a_mkfs_that_was_going_on_ends_well() {
    let _kubelet = alone();
    let mut all = Vec::new();
    for mode in BOTH_MODES {
        for fate in [Fate::GoOn, Fate::DriverDies, Fate::AllDie] {
            let case = mode.case(&format!("making-{fate:?}").to_lowercase());
            let gate = Gate::new(&case);
            let driver = gate.driver(&case, mode);
            let volume = Volume::new(&case, "data");
            let pod = Pod::writing(&driver, "web", &volume, "kept");
            all.push((mode, fate, gate, driver, volume, pod));
        }
    }
    for (_, _, gate, ..) in &all {
        gate.is_reached();
    }
    kill_kubelet();
    for (_, fate, _, driver, ..) in &all {
        let (recorder, real, mkfs) = (
            format!("exec/{}~lvm/", driver.case),
            format!("drivers/{}~lvm", driver.case),
            format!("/gate-{}/mkfs", driver.case),
        );
        match fate {
            Fate::GoOn => {}
            Fate::DriverDies => kill_all(&[&recorder, &real]),
            Fate::AllDie => kill_all(&[&recorder, &real, &mkfs]),
        }
    }
    start_kubelet();
    for (_, _, gate, ..) in &all {
        gate.open();
    }
    for (mode, _, _, driver, volume, pod) in all {
        pod.says("written");
        all_end(&driver, mode, &volume, &[pod]);
        let next = Pod::reading(&driver, "next", &volume);
        next.says("kept");
        all_end(&driver, mode, &volume, &[next]);
    }
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
