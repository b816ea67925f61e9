//! A node changes from the bash script to this driver and back, with pods running. The script is
//! not part of this project: PEER names it, and without PEER tests/run.sh leaves this out.

use crate::prelude::*;

#[test]
fn the_script_is_replaced_by_the_driver_and_back_with_nothing_lost() {
    let _running = shared();
    let mode = Mode::Attach;
    let script = from_environment("PEER");
    let case = "script";
    let driver = Driver::of_program(case, &script);
    let volume = Volume::new(case, "data");
    let xfs = Volume::xfs(case, "xfs");
    let old = Pod::answering(&driver, "old", &volume);
    let old_xfs = Pod::answering(&driver, "old-xfs", &xfs);
    old.says("written");
    old_xfs.says("written");
    assert_eq!(volume.tags(), "", "the script records nothing");

    driver.upgrade(&from_environment("FLEXVOLUME_LVM_DRIVER"));
    old.answers(&driver, &volume);
    let mut pods = old.makes_way(mode);
    let new = Pod::finding(&driver, "new", &volume);
    // The driver unmounts the script's mounts.
    all_end(&driver, mode, &xfs, &[old_xfs]);
    let new_xfs = Pod::finding(&driver, "new-xfs", &xfs);
    assert!(
        xfs.tags().starts_with("flexvolume.fs=xfs:"),
        "{}",
        xfs.tags()
    );

    driver.upgrade(&script);
    if inline_is_shared(mode) {
        new.ends();
    } else {
        pods.push(new);
    }
    // The script unmounts the driver's mounts.
    all_end(&driver, mode, &xfs, &[new_xfs]);
    let last = Pod::finding(&driver, "last", &xfs);
    all_end(&driver, mode, &xfs, &[last]);
    all_end(&driver, mode, &volume, &pods);
    driver.assert_no_failure();
}
