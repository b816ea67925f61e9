//! The node goes down, which the end of the guest is, and comes back. What the controller does
//! meanwhile is among its own cases.

use std::fs;

use crate::driver::{Driver, Mode};
use crate::machine::shared;
use crate::plane::claim::claim;
use crate::plane::pair::Pair;
use crate::plane::{controller_root, driver_of_controller};
use crate::pod::Pod;
use crate::volume::Volume;

#[test]
fn a_pod_runs_on_a_claim_when_the_node_goes_down() {
    let _running = shared();
    let case = "down";
    let driver = Driver::new(case, Mode::Attach);
    driver_of_controller(case);
    let volume = Volume::new(case, "data").called("down-data");
    let pod = Pod::writing(&driver, "web", &claim(&driver, &volume), "kept");
    pod.says("written");
    fs::write(controller_root().join("down"), "").unwrap();
}

#[test]
fn the_node_is_back_and_another_pod_reads_what_the_first_one_wrote() {
    let _running = shared();
    let case = "down";
    let pair = Pair {
        node: Driver::installed(case),
        controller: Some(Driver::that_controller_has(case, &controller_root())),
    };
    let volume = Volume::that_is_there(case, "data").called("down-data");
    let volume = volume.claimed();
    let pod = Pod::reading(&pair.node, "next", &volume);
    pod.says("kept");
    pair.all_end(&volume, &[pod]);
    pair.assert_no_failure();
}
