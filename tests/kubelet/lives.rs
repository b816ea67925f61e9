//! A pod writes, goes, and the next pod finds what it wrote.

use crate::prelude::*;

in_both_modes! {
    ext4_keeps_its_data
    xfs_keeps_its_data
}

/// What kubelet calls for one pod after the other.
fn calls_for_two_lives(mode: Mode) -> String {
    let (up, down) = match mode {
        Mode::Attach => (
            "attach waitforattach mountdevice mount",
            "unmount unmountdevice detach",
        ),
        Mode::MountOnly => ("mount", "unmount"),
    };
    format!("{up} {down} {up} {down}")
}

fn live_twice(case: &str, mode: Mode, fs: &str) {
    let _running = shared();
    let case = mode.case(case);
    let driver = Driver::new(&case, mode);
    let volume = match fs {
        "xfs" => Volume::xfs(&case, "data"),
        _ => Volume::new(&case, "data").fs(fs),
    };
    let first = Pod::written(&driver, "web", &volume);
    first.ends();
    volume.is_unmounted();
    let tags = volume.tags();
    assert!(tags.starts_with(&format!("flexvolume.fs={fs}:")), "{tags}");

    // The same pod, by its name.
    let second = Pod::finding(&driver, "web", &volume);
    second.ends();
    volume.is_unmounted();
    if mode == Mode::Attach {
        driver.has_answered("detach", 2);
    }
    assert_eq!(volume.tags(), tags, "made once, not again");
    driver.assert_no_failure();
    driver.assert_order(&calls_for_two_lives(mode));
}

fn ext4_keeps_its_data(mode: Mode) {
    live_twice("ext4", mode, "ext4");
}

fn xfs_keeps_its_data(mode: Mode) {
    live_twice("xfs", mode, "xfs");
}
