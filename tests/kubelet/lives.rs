//! A pod writes, goes, and the next pod finds what it wrote.

use crate::prelude::*;

in_both_modes! {
    ext4_keeps_its_data
}

fn ext4_keeps_its_data(mode: Mode) {
    let (_running, _, driver, volume) = scene("ext4", mode);
    let first = Pod::written(&driver, "web", &volume);
    first.ends();
    volume.is_unmounted();
    let tags = volume.tags();
    assert!(tags.starts_with("flexvolume.fs=ext4:"), "{tags}");

    // The same pod, by its name.
    let second = Pod::finding(&driver, "web", &volume);
    second.ends();
    volume.is_unmounted();
    if mode == Mode::Attach {
        driver.has_answered("detach", 2);
    }
    assert_eq!(volume.tags(), tags, "made once, not again");
    driver.assert_no_failure();
    let (up, down) = match mode {
        Mode::Attach => (
            "attach waitforattach mountdevice mount",
            "unmount unmountdevice detach",
        ),
        Mode::MountOnly => ("mount", "unmount"),
    };
    driver.assert_order(&format!("{up} {down} {up} {down}"));
}
