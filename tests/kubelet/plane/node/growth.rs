//! A claim asks for more, and the pod that runs on it sees the space.

use serde_json::{Value, json};

use crate::prelude::*;

in_both_modes! {
    a_claim_grows_until_its_pod_sees_the_space
}

fn a_claim_grows_until_its_pod_sees_the_space(mode: Mode) {
    let _running = shared();
    let case = mode.case("growth");
    let pair = Pair::new(&case, mode);
    let volume = Volume::new(&case, "data").called(&format!("{case}-data"));
    let volume = claim(&pair.node, &volume);
    // The blocks of 1 KiB that the filesystem has.
    let lines = "size() { df -P -k /data | tail -n 1 | { read -r _ all _; echo $all; }; }\n\
        echo kept > /data/page && sync && echo written\n\
        while [ $(size) -lt 50000 ]; do sleep 1; done\n\
        echo grown && cat /data/page";
    let pod = Pod::new(&pair.node, "web", &volume, lines).started();
    pod.says("written");

    let wish = json!({"spec": {"resources": {"requests": {"storage": "64Mi"}}}});
    api::patch(&format!("persistentvolumeclaims/{}", volume.name), &wish);
    pod.says("grown");
    pod.says("kept");
    wait_until("the claim says so", || {
        let status = claim_of(&volume)["status"].take();
        status["capacity"]["storage"] == "64Mi" && has_no_conditions(&status)
    });
    assert_eq!(volume.field("lv_size"), "64.00m");
    pair.all_end(&volume, &[pod]);
    pair.assert_no_failure();
    assert!(pair.node.count("expandfs") >= 1);
}

/// Nothing is left to be done: not on the controller, not on the node.
fn has_no_conditions(status: &Value) -> bool {
    status["conditions"].as_array().is_none_or(Vec::is_empty)
}
