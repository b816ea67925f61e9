//! A pod that goes while its volume is being mounted: the controller must wait for that.

use crate::interrupted::Gate;
use crate::prelude::*;

#[test]
fn a_volume_is_not_detached_while_its_mount_is_in_progress() {
    let _running = shared();
    let mode = Mode::Attach;
    let case = "in-progress";
    let gate = Gate::new(case);
    let pair = Pair::of(gate.driver(case, mode), mode);
    let volume = Volume::new(case, "data");
    let pod = Pod::writing(&pair.node, "web", &volume, "never");
    gate.is_reached();
    assert!(in_use(NODE, &pair.node, &volume));

    pod.delete();
    wait_until("the pod is gone", || {
        api::get(&format!("pods/{}", pod.name)).is_none()
    });
    // Time for kubelet to say, and for the controller to do, what would be wrong.
    for _ in 0..3 {
        node_has_reported_again();
    }
    assert!(in_use(NODE, &pair.node, &volume));
    let controller = pair.controller.as_ref().unwrap();
    assert_eq!(controller.count("detach"), 0);
    assert!(attached(NODE, &pair.node, &volume).is_some());

    gate.open();
    wait_until("kubelet no longer uses it", || {
        !in_use(NODE, &pair.node, &volume)
    });
    controller.has_answered("detach", 1);
    pair.is_detached(&volume);
    volume.is_unmounted();

    let next = Pod::written(&pair.node, "next", &volume);
    pair.all_end(&volume, &[next]);
    pair.assert_no_failure();
}

/// Waits until kubelet has told the cluster how the node is.
fn node_has_reported_again() {
    let times = || {
        let node = api::get(&format!("/api/v1/nodes/{NODE}")).expect("the node is there");
        let conditions = node["status"]["conditions"].as_array().unwrap().clone();
        conditions
            .into_iter()
            .map(|mut one| one["lastHeartbeatTime"].take())
    };
    let before: Vec<_> = times().collect();
    wait_for("kubelet reports", || {
        (!times().eq(before.clone())).then_some(())
    });
}
