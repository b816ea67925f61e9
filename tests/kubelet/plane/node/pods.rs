//! Pods get volumes by claims, and in attach mode the controller attaches them. A pod that is deleted while kubelet is
//! down cannot be tested without a control plane: kubelet 1.20 panics then when it finds a volume that no pod wants.

use crate::prelude::*;

in_both_modes! {
    what_a_pod_wrote_through_a_claim_the_next_one_reads
    a_volume_whose_pod_went_while_kubelet_was_down_is_unmounted
}

fn what_a_pod_wrote_through_a_claim_the_next_one_reads(mode: Mode) {
    let (_running, _, pair, volume) = scene_of_pair("claim", mode);
    let (driver, volume) = (&pair.node, claim(&pair.node, &volume));
    let first = Pod::written(driver, "first", &volume);
    let device = (mode == Mode::Attach).then(|| volume.device());
    assert_eq!(attached(NODE, driver, &volume), device);
    pair.all_end(&volume, &[first]);

    let second = Pod::finding(driver, "second", &volume);
    pair.all_end(&volume, &[second]);
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

/// kubelet unmounts the global mount of a name that no pod has any more only while no other mount of the device is left.
/// A restarted kubelet knows the names that pods have, and no other.
#[test]
fn the_last_pod_takes_off_the_global_mount_of_another_name_that_kubelet_forgot() {
    let _kubelet = alone();
    let case = Mode::Attach.case("forgotten");
    let pair = Pair::new(&case, Mode::Attach);
    let volume = Volume::new(&case, "data");
    let [one, other] = ["one", "other"].map(|name| {
        let named = volume.clone().called(&format!("{case}-{name}"));
        claim(&pair.node, &named)
    });
    let first = Pod::written(&pair.node, "first", &one);
    let second = Pod::finding(&pair.node, "second", &other);
    first.ends();
    kill_kubelet();
    start_kubelet();
    second.ends();
    volume.is_unmounted();
    pair.is_detached(&one);
    pair.is_detached(&other);
}
