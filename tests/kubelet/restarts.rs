//! kubelet is killed and started again.
//!
//! A pod that goes while kubelet is down is among the cases of the control plane: a standalone kubelet
//! 1.20 panics when it finds a volume that no pod wants.

use crate::prelude::*;

/// A pod on a volume of its own, with a driver of its own.
struct Life {
    mode: Mode,
    driver: Driver,
    volume: Volume,
    pods: Vec<Pod>,
}

/// Ends all lives at the same time, since ending one is mostly waiting.
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

#[test]
fn a_pod_that_is_still_wanted_keeps_its_volume() {
    let _kubelet = alone();
    let mut lives = BOTH_MODES.map(|mode| {
        let driver = Driver::new(&mode.case("wanted"), mode);
        let volume = Volume::new(&driver.case, "data");
        let pods = vec![Pod::answering(&driver, "web", &volume)];
        Life {
            mode,
            driver,
            volume,
            pods,
        }
    });
    for life in &lives {
        life.pods[0].says("written");
    }
    kill_kubelet();
    start_kubelet();
    for life in &lives {
        life.pods[0].answers(&life.driver, &life.volume);
    }
    for life in &lives {
        let log = life.pods[0].log();
        assert_eq!(log.matches("written").count(), 1, "it ran on");
    }
    if since(27) {
        // kubelet does not know any more that it has attached what it found when it started, since 1.28.
        let last =
            |mode| last_call(mode).map(|last| if since(28) { "unmountdevice" } else { last });
        end(&mut lives, last);
    }
    // kubelet has found out again what is mounted when a pod comes that needs it.
    for life in &mut lives {
        let next = Pod::reading(&life.driver, "next", &life.volume);
        life.pods.push(next);
    }
    for life in &lives {
        life.pods.last().unwrap().says("kept");
    }
    end(&mut lives, last_call);
    for life in lives {
        life.driver.assert_no_failure();
    }
}
