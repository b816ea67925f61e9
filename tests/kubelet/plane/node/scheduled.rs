//! A pod that names no node: the scheduler puts it where its volume is.

use crate::prelude::*;

in_both_modes! {
    a_deployment_gets_the_volume_on_the_volumes_node
}

fn a_deployment_gets_the_volume_on_the_volumes_node(mode: Mode) {
    let (_running, case, pair, volume) = scene_of_pair("scheduled", mode);
    let volume = claim_on(&node(), &pair.node, &volume);
    assert_eq!(claim_of(&volume)["status"]["phase"], "Pending");
    // One that has more room, so that it would be chosen.
    let other = Bystander::new(&case, &case);
    wait_until("there is another node", || other.is_free());

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
