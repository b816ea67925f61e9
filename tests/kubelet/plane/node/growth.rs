//! A claim asks for more, and the pod that runs on it sees the space.

use serde_json::{Value, json};

use crate::prelude::*;

in_both_modes! {
    a_claim_grows_until_its_pod_sees_the_space
    a_claim_grows_whose_pod_went_before_the_node_did_its_part
}

fn ask_for(volume: &Volume, size: &str) {
    let wish = json!({"spec": {"resources": {"requests": {"storage": size}}}});
    api::patch(&format!("persistentvolumeclaims/{}", volume.name), &wish);
}

/// Waits until the claim has this size, and nothing is left to be done: not on the controller, not
/// on the node.
fn has_grown(volume: &Volume, size: &str) {
    wait_until(&format!("{} has {size}", volume.name), || {
        let status = claim_of(volume)["status"].take();
        status["capacity"]["storage"] == size && !has_condition(&status, "")
    });
}

/// Whether the claim's status has a condition whose type begins with this.
fn has_condition(status: &Value, kind: &str) -> bool {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    all.any(|one| one["type"].as_str().unwrap_or("").starts_with(kind))
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

    ask_for(&volume, "64Mi");
    pod.says("grown");
    pod.says("kept");
    has_grown(&volume, "64Mi");
    assert_eq!(volume.field("lv_size"), "64.00m");
    pair.all_end(&volume, &[pod]);
    pair.assert_no_failure();
    assert!(pair.node.count("expandfs") >= 1);
}

fn a_claim_grows_whose_pod_went_before_the_node_did_its_part(mode: Mode) {
    let (_running, _, pair, volume) = scene_of_pair("growth-later", mode);
    let volume = claim(&pair.node, &volume);
    let first = Pod::written(&pair.node, "first", &volume);
    pair.all_end(&volume, &[first]);
    ask_for(&volume, "64Mi");
    wait_until("the controller has done its part", || {
        has_condition(&claim_of(&volume)["status"], "FileSystemResizePending")
    });
    assert_eq!(volume.field("lv_size"), "32.00m");

    let second = Pod::finding(&pair.node, "second", &volume);
    has_grown(&volume, "64Mi");
    assert_eq!(volume.field("lv_size"), "64.00m");
    pair.all_end(&volume, &[second]);
    pair.assert_no_failure();
}
