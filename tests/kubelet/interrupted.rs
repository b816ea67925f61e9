//! A pod that is deleted before its volume is up.

use std::fs;
use std::path::PathBuf;

use crate::prelude::*;
use crate::support::put;

in_both_modes! {
    a_pod_deleted_while_its_mount_is_in_progress_leaves_nothing
}

fn a_pod_deleted_while_its_mount_is_in_progress_leaves_nothing(mode: Mode) {
    let _running = shared();
    let case = mode.case("hasty");
    // A mkfs.ext4 that waits until it is let go.
    let dir = PathBuf::from(format!("/run/gate-{case}"));
    fs::create_dir(&dir).unwrap();
    let script = format!(
        "#!/bin/sh\ncd {}\ntouch reached\nwhile [ ! -e open ]; do sleep 0.2; done\n\
         exec /sbin/mkfs.ext4 \"$@\"\n",
        dir.display()
    );
    put(&dir.join("mkfs.ext4"), script);
    let dirs = format!(
        "tool_dirs = ['{}', '/usr/sbin', '/usr/bin', '/sbin', '/bin']",
        dir.display()
    );
    let driver = Driver::with_config(&case, mode, &dirs);
    let volume = Volume::new(&case, "data");
    let pod = Pod::writing(&driver, "first", &volume, "never");
    wait_until("mkfs runs", || dir.join("reached").exists());
    pod.delete();
    // Newer kubelets remove the empty directories of a pod that has gone, also this one.
    let has_no_place = mode == Mode::MountOnly && since(27);
    if has_no_place {
        pod.is_gone();
    }
    fs::write(dir.join("open"), "").unwrap();
    if has_no_place {
        driver.has_answered("mount", 1);
    } else {
        driver.has_answered("unmount", 1);
    }
    pod.is_gone();
    volume.is_unmounted();
    if mode == Mode::Attach {
        driver.has_answered("detach", 1);
    }
    // Nothing was taken away before the volume was up, and then all of it.
    driver.assert_order(match mode {
        Mode::Attach => "mountdevice mount unmount unmountdevice detach",
        Mode::MountOnly if has_no_place => "mount",
        Mode::MountOnly => "mount unmount",
    });
    let failures = driver.failures();
    assert_eq!(failures.len(), usize::from(has_no_place), "{failures:#?}");

    let next = Pod::written(&driver, "next", &volume);
    all_end(&driver, mode, &volume, &[next]);
    assert_eq!(driver.failures(), failures);
}
