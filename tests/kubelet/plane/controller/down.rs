//! The node has gone down under a running pod: its guest has ended like that.

use serde_json::{Value, json};

use crate::prelude::*;

const ZONE: &str = "zone-of-the-node-that-goes-down";

fn the_node() -> (String, Value) {
    let path = format!("/api/v1/nodes/{NODE_DOWN}");
    let node = api::get(&path).expect("the node is there");
    (path, node)
}

/// Nobody has heard of it for 40 seconds, and pods are to leave it.
fn is_given_up() -> bool {
    let (_, node) = the_node();
    let any = |pointer: &str, is_it: &dyn Fn(&Value) -> bool| {
        let all = node.pointer(pointer).and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(is_it))
    };
    any("/status/conditions", &|one| {
        one["type"] == "Ready" && one["status"] == "Unknown"
    }) && any("/spec/taints", &|one| {
        one["key"] == "node.kubernetes.io/unreachable" && one["effect"] == "NoExecute"
    })
}

#[test]
fn the_volume_of_a_node_that_is_down_is_detached() {
    let case = "down";
    let driver = Driver::that_controller_has(case, &controller_root());
    let volume = Volume::that_is_there(case, "data").called("down-data");
    let deployment = Deployment::that_is_there("down-web");
    let pod = deployment.pod_on(NODE_DOWN);
    assert_eq!(attached(NODE_DOWN, &driver, &volume), Some(volume.device()));
    assert!(in_use(NODE_DOWN, &driver, &volume), "said kubelet at last");

    // Were no node of its zone well, the controller would think that it is itself cut off.
    let (path, _) = the_node();
    let zone = json!({"topology.kubernetes.io/zone": ZONE});
    api::patch(&path, &json!({"metadata": {"labels": zone}}));
    let other = Bystander::new("node-that-stays", ZONE);
    wait_until("the node is given up", || {
        other.is_well();
        is_given_up()
    });
    let path = format!("pods/{}", pod.name);
    wait_until("the pod is evicted", || {
        other.is_well();
        let pod = api::get(&path).expect("its node has not ended it");
        !pod["metadata"]["deletionTimestamp"].is_null()
    });
    // Its volume is on the node that is down.
    let next = deployment.pod_without_node();
    assert_eq!(driver.count("detach"), 0, "it may still be mounted");

    // An operator who knows that the node is off sets this taint. Without it the controller waits six
    // minutes more for a kubelet to unmount the volume.
    if since(28) {
        out_of_service(NODE_DOWN, true);
        wait_until("the pod is gone", || api::get(&path).is_none());
    } else {
        api::delete_by_force(&path);
    }
    driver.has_answered("detach", 1);
    wait_until("the volume is detached", || {
        attached(NODE_DOWN, &driver, &volume).is_none()
    });
    out_of_service(NODE_DOWN, false);
    assert_eq!(driver.order(), "attach detach");
    let calls = driver.calls();
    let detach = calls.iter().find(|call| call.args[0] == "detach").unwrap();
    assert_eq!(detach.args[1..], ["down-data", NODE_DOWN], "from where");
    assert_eq!(deployment.pod_without_node().name, next.name);
    driver.assert_no_failure();
}
