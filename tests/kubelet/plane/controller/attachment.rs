//! The controller attaches and detaches with the driver on its own host, which has no such volume.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::prelude::*;

/// A node on which the controller attaches volumes.
fn node(name: &str) -> String {
    api::create(
        "/api/v1/nodes",
        &json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            }},
        }),
    );
    name.to_owned()
}

/// Changes an object, so that the controller looks at it again.
fn touch(path: &str) {
    static CHANGES: AtomicU32 = AtomicU32::new(0);
    let change = CHANGES.fetch_add(1, Ordering::Relaxed).to_string();
    api::patch(
        path,
        &json!({"metadata": {"annotations": {"change": change}}}),
    );
}

fn pod_on(node: &str, driver: &Driver, name: &str, volume: &Volume) -> Pod {
    let pod = Pod::new(driver, name, volume, "");
    let pod = pod.with("/spec", "nodeName", node.into()).started();
    // A driver that is quite new may be missed at first.
    let path = format!("pods/{}", pod.name);
    wait_until("the controller knows the driver", || {
        touch(&path);
        driver.count("init") > 0
    });
    touch(&path);
    pod
}

fn is_attached(node: &str, driver: &Driver, volume: &Volume) {
    wait_until(&format!("{} is attached", volume.name), || {
        attached(node, driver, volume) == Some(volume.device())
    });
}

fn is_detached(node: &str, driver: &Driver, volume: &Volume) {
    wait_until(&format!("{} is detached", volume.name), || {
        attached(node, driver, volume).is_none()
    });
}

/// The controller asks every minute, and would attach again what it hears is gone.
#[test]
fn a_volume_that_is_attached_is_not_attached_again_and_detached_after_its_pod() {
    let case = "asking";
    let node = node(case);
    let driver = driver_of_controller(case);
    let volume = Volume::that_is_there(case, "data");
    let pod = pod_on(&node, &driver, "web", &volume);
    is_attached(&node, &driver, &volume);
    driver.has_answered("isattached", 2);
    assert_eq!(driver.order(), "attach");
    assert_eq!(driver.count("attach"), 1);
    is_attached(&node, &driver, &volume);
    // There is no kubelet to end it.
    api::delete_by_force(&format!("pods/{}", pod.name));
    is_detached(&node, &driver, &volume);
    driver.has_answered("detach", 1);
    driver.assert_no_failure();
    let calls = driver.calls();
    let made = |name: &str| calls.iter().find(|call| call.args[0] == name).unwrap();
    assert_eq!(made("attach").args[2], node, "for whom");
    assert_eq!(made("detach").args[1..], [volume.name, node]);
}

#[test]
fn why_attach_failed_is_in_an_event_of_the_pod_word_for_word() {
    let case = "refused";
    let node = node(case);
    let driver = driver_of_controller(case);
    let volume = Volume::that_is_there(case, "data");
    // The controller may take the text as a format, so a percent sign is a trap.
    let wrong = volume.with("size", "32%s");
    let pod = pod_on(&node, &driver, "web", &wrong);
    let text = event(&pod.name, "FailedAttachVolume", "option size");
    let failures = driver.failures();
    let reason = failures.first().expect("a call has failed");
    assert!(text.ends_with(reason), "{text:?} holds not {reason:?}");
    // It may have come about all the same, so the controller undoes it.
    api::delete_by_force(&format!("pods/{}", pod.name));
    // kubelet reports all the time, and this one uses no volume.
    touch(&format!("/api/v1/nodes/{node}"));
    driver.has_answered("detach", 1);
    is_detached(&node, &driver, &wrong);
    assert_eq!(driver.order(), "attach detach");
}
