//! The controller attaches and detaches with the driver on its own host, which has no such volume.

use serde_json::json;

use crate::prelude::*;

/// The controller asks every minute, and would attach again what it hears is gone.
#[test]
fn a_volume_that_is_attached_is_not_attached_again_and_detached_after_its_pod() {
    let node = "asking";
    api::create(
        "/api/v1/nodes",
        &json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node, "annotations": {
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            }},
        }),
    );
    let driver = driver_of_controller(node);
    let volume = Volume::that_is_there(node, "data");
    let pod = Pod::new(&driver, "web", &volume, "");
    let pod = pod.with("/spec", "nodeName", node.into()).started();
    let path = format!("pods/{}", pod.name);
    let is_attached = || attached(node, &driver, &volume) == Some(volume.device());
    let mut changes = 0;
    wait_until("it is attached", || {
        // A driver that is quite new may be missed at first. The controller looks again at a pod that has changed.
        changes += 1;
        let change = json!({"metadata": {"annotations": {"change": changes.to_string()}}});
        api::patch(&path, &change);
        is_attached()
    });
    driver.has_answered("isattached", 2);
    assert_eq!(driver.order(), "attach");
    assert_eq!(driver.count("attach"), 1);
    wait_until("it is attached still", is_attached);
    // There is no kubelet to end it.
    api::delete_by_force(&path);
    wait_until("it is detached", || {
        attached(node, &driver, &volume).is_none()
    });
    driver.has_answered("detach", 1);
    driver.assert_no_failure();
    let calls = driver.calls();
    let made = |name: &str| calls.iter().find(|call| call.args[0] == name).unwrap();
    assert_eq!(made("attach").args[2], node, "for whom");
    assert_eq!(made("detach").args[1..], [&volume.name, node]);
}
