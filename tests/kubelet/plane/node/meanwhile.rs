//! A pod that goes while kubelet is down. Without a control plane this cannot be tested: kubelet
//! 1.20 panics then when it finds a volume that no pod wants.

use crate::prelude::*;

in_both_modes! {
    a_volume_whose_pod_went_while_kubelet_was_down_is_unmounted
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
