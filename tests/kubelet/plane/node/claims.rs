//! Pods get volumes by claims or by name, and the controller attaches these where it is asked to.

use crate::prelude::*;

in_both_modes! {
    what_a_pod_wrote_through_a_claim_the_next_one_reads
    what_a_pod_wrote_to_an_inline_volume_the_next_one_reads
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
