//! Two pods whose inline volumes have one name, but are two logical volumes. Attach mode has a case in
//! `tests/guest/users/collisions.rs` instead: since 1.27, kubelet makes no call for the second pod's volume.

use crate::prelude::*;

const LINES: &str = "cat /data/page || echo blank\n\
    echo other > /data/page && sync && echo written";

#[test]
fn in_mount_only_mode_both_run_at_once() {
    let _running = shared();
    let mode = Mode::MountOnly;
    let case = mode.case("namesakes");
    let driver = Driver::new(&case, mode);
    let [one, other] = ["one", "other"].map(|lv| Volume::new(&case, lv).called("data"));
    let first = Pod::written(&driver, "first", &one);
    let second = Pod::new(&driver, "second", &other, LINES).started();
    second.says("blank");
    second.says("written");
    let again = Pod::finding(&driver, "again", &one);
    all_end(&driver, mode, &one, &[first, again]);
    all_end(&driver, mode, &other, &[second]);
    driver.assert_no_failure();
}
