//! Pods get volumes by claims or by name, the controller attaches these where it is asked to, and waits for a mount in
//! progress. A pod that goes while kubelet is down cannot be tested without a control plane: kubelet 1.20 panics then
//! when it finds a volume that no pod wants.

use crate::interrupted::Gate;
use crate::prelude::*;

in_both_modes! {
    what_a_pod_wrote_through_a_claim_the_next_one_reads
    what_a_pod_wrote_to_an_inline_volume_the_next_one_reads
    a_deployment_gets_the_volume_on_the_volumes_node
    a_volume_whose_pod_went_while_kubelet_was_down_is_unmounted
}

fn what_a_pod_wrote_through_a_claim_the_next_one_reads(mode: Mode) {
    let (_running, _, pair, volume) = scene_of_pair("claim", mode);
    live_twice(mode, &pair, &claim(&pair.node, &volume));
}

fn what_a_pod_wrote_to_an_inline_volume_the_next_one_reads(mode: Mode) {
    let (_running, _, pair, volume) = scene_of_pair("inline", mode);
    live_twice(mode, &pair, &volume);
}

fn live_twice(mode: Mode, pair: &Pair, volume: &Volume) {
    let driver = &pair.node;
    let first = Pod::written(driver, "first", volume);
    let device = (mode == Mode::Attach).then(|| volume.device());
    assert_eq!(attached(NODE, driver, volume), device);
    pair.all_end(volume, &[first]);

    let second = Pod::finding(driver, "second", volume);
    pair.all_end(volume, &[second]);
    pair.assert_no_failure();
    let life = match mode {
        Mode::Attach => "waitforattach mountdevice mount unmount unmountdevice",
        Mode::MountOnly => "mount unmount",
    };
    driver.assert_order(&format!("{life} {life}"));
    if let Some(controller) = &pair.controller {
        assert_eq!(controller.order(), "attach detach attach detach");
    }
}

/// The scheduler puts it where its volume is.
fn a_deployment_gets_the_volume_on_the_volumes_node(mode: Mode) {
    let (_running, _, pair, volume) = scene_of_pair("scheduled", mode);
    let volume = claim_on(&node(), &pair.node, &volume);
    assert_eq!(claim_of(&volume)["status"]["phase"], "Pending");
    let lines = "echo kept > /data/page && sync && echo written";
    let deployment = Deployment::of(&Pod::new(&pair.node, "web", &volume, lines));
    let pod = deployment.pod_on(&node());
    is_bound(&volume);
    pod.says("written");
    pair.all_end_by(&volume, &[pod], || deployment.stop());

    let next = Pod::finding(&pair.node, "next", &volume);
    pair.all_end(&volume, &[next]);
    pair.assert_no_failure();
}

fn a_volume_whose_pod_went_while_kubelet_was_down_is_unmounted(mode: Mode) {
    let _kubelet = alone();
    let case = mode.case("meanwhile");
    let pair = Pair::new(&case, mode);
    let volume = Volume::new(&case, "data");
    let pod = Pod::written(&pair.node, "web", &volume);

    kill_kubelet();
    api::delete_by_force(&format!("pods/{}", pod.name));
    start_kubelet();
    pod.is_gone();
    volume.is_unmounted();
    pair.is_detached(&volume);
    let last = match mode {
        Mode::Attach => "unmount unmountdevice",
        Mode::MountOnly => "unmount",
    };
    assert!(pair.node.order().ends_with(last), "{}", pair.node.order());

    let next = Pod::finding(&pair.node, "next", &volume);
    pair.all_end(&volume, &[next]);
    pair.assert_no_failure();
}

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
