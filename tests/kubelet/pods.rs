//! Requests that pods may make of a volume, in both modes.

use serde_json::json;

use crate::prelude::*;

in_both_modes! {
    two_pods_share_one_volume
    fs_group_owns_what_is_in_the_volume
}

fn two_pods_share_one_volume(mode: Mode) {
    if !inline_is_shared(mode) {
        return;
    }
    let (_running, _, driver, volume) = scene("share", mode);
    let one = Pod::written(&driver, "one", &volume);
    let two = Pod::finding(&driver, "two", &volume);
    one.ends();
    let three = Pod::finding(&driver, "three", &volume);
    all_end(&driver, mode, &volume, &[two, three]);
    driver.assert_no_failure();
}

fn fs_group_owns_what_is_in_the_volume(mode: Mode) {
    let (_running, _, driver, volume) = scene("fsgroup", mode);
    let lines = "touch /data/mine\necho groups $(stat -c %g /data) $(stat -c %g /data/mine)";
    let user = json!({"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000});
    let pod = Pod::new(&driver, "web", &volume, lines);
    let pod = pod.with("/spec", "securityContext", user).started();
    pod.says("groups 2000 2000");
    all_end(&driver, mode, &volume, &[pod]);
    driver.assert_no_failure();
}
