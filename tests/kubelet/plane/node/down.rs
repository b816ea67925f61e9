//! The node goes down under a running pod, which the end of this guest is, and comes back. What the
//! cluster does meanwhile is among the controller's cases.

use std::fs;

use serde_json::json;

use crate::prelude::*;

#[test]
fn a_deployment_runs_on_a_claim_when_the_node_goes_down() {
    let _running = shared();
    assert_eq!(node(), NODE_DOWN);
    let case = "down";
    let driver = Driver::new(case, Mode::Attach);
    driver_of_controller(case);
    let volume = Volume::new(case, "data").called("down-data");
    let volume = claim_on(NODE_DOWN, &driver, &volume);
    // Five minutes, if nothing is said.
    let leaves_soon = json!([{
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 5,
    }]);
    let pod = Pod::new(&driver, "web", &volume, crate::power::LINES).with(
        "/spec",
        "tolerations",
        leaves_soon,
    );
    let pod = Deployment::of(&pod).pod_on(NODE_DOWN);
    pod.says("written");
    fs::write(controller_root().join("down"), "").unwrap();
}

#[test]
fn the_node_is_back_and_the_deployment_finds_what_it_wrote() {
    let _running = shared();
    let case = "down";
    let pair = Pair {
        node: Driver::installed(case),
        controller: Some(Driver::that_controller_has(case, &controller_root())),
    };
    let volume = Volume::that_is_there(case, "data").called("down-data");
    let deployment = Deployment::that_is_there("down-web");
    let pod = deployment.pod_on(NODE_DOWN);
    pod.says("found kept");
    pair.all_end_by(&volume, &[pod], || deployment.stop());
    pair.assert_no_failure();
}
