//! Two pods whose inline volumes have one name, but are two logical volumes.

use crate::prelude::*;

const LINES: &str = "cat /data/page || echo blank\n\
    echo other > /data/page && sync && echo written";

/// A case, its driver, and two volumes that kubelet knows by one name.
fn namesakes(mode: Mode) -> (String, Driver, Volume, Volume) {
    let case = mode.case("namesakes");
    let driver = Driver::new(&case, mode);
    let one = Volume::new(&case, "one").called("data");
    let other = Volume::new(&case, "other").called("data");
    (case, driver, one, other)
}

#[test]
fn in_attach_mode_the_second_is_refused_with_the_reason() {
    let _running = shared();
    let mode = Mode::Attach;
    let (case, driver, one, other) = namesakes(mode);
    let first = Pod::written(&driver, "first", &one);
    let second = Pod::new(&driver, "second", &other, LINES).started();
    if inline_is_shared(mode) {
        let text = warning(
            &second.name,
            "give the volumes of the two pods different names",
        );
        assert!(text.contains(&format!("pods/{case}-one")), "{text}");
        assert!(text.contains(&format!("pods/{case}-other")), "{text}");
    } else {
        // The driver is not even asked.
        stumbles_over(&driver, &one);
    }
    assert_eq!(other.tags(), "", "nothing was made on it");
    all_end(&driver, mode, &one, &[first, second]);

    // One after the other they may have the same name.
    let second = Pod::new(&driver, "second", &other, LINES).started();
    second.says("blank");
    second.says("written");
    all_end(&driver, mode, &other, &[second]);
    let first = Pod::finding(&driver, "first", &one);
    all_end(&driver, mode, &one, &[first]);
}

#[test]
fn in_mount_only_mode_both_run_at_once() {
    let _running = shared();
    let mode = Mode::MountOnly;
    let (_, driver, one, other) = namesakes(mode);
    let first = Pod::written(&driver, "first", &one);
    let second = Pod::new(&driver, "second", &other, LINES).started();
    second.says("blank");
    second.says("written");
    let again = Pod::finding(&driver, "again", &one);
    all_end(&driver, mode, &one, &[first, again]);
    all_end(&driver, mode, &other, &[second]);
    driver.assert_no_failure();
}
