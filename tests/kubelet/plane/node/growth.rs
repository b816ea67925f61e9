//! A claim asks for more space, and the pod that runs sees the new space.

use serde_json::json;

use crate::prelude::*;

in_both_modes! {
    a_claim_grows_until_its_pod_sees_the_space
}

/// Waits until the claim has this size, and neither the controller nor the node has anything left to do.
fn has_grown(volume: &Volume, size: &str) {
    wait_until(&format!("{} has {size}", volume.name), || {
        let status = claim_of(volume)["status"].take();
        let mut left = status["conditions"].as_array().into_iter().flatten();
        status["capacity"]["storage"] == size && left.next().is_none()
    });
}

fn a_claim_grows_until_its_pod_sees_the_space(mode: Mode) {
    let (_running, _, pair, volume) = scene_of_pair("growth", mode);
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
    has_grown(&volume, "64Mi");
    assert_eq!(volume.field("lv_size"), "64.00m");
    pair.all_end(&volume, &[pod]);
    pair.assert_no_failure();
    assert!(pair.node.count("expandfs") >= 1);
}
