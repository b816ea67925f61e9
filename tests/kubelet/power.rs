//! The power goes while pods run. This takes two boots with the same disks: after the first, the
//! guest is cut off, and a file in the shared directory asks for the second.

use std::fs;

use crate::prelude::*;

const CASE: &str = "power";
const FILESYSTEMS: [&str; 2] = ["ext4", "xfs"];

/// Says what it finds, or writes.
pub const LINES: &str = "if [ -e /data/page ]; then echo found $(cat /data/page)\n\
    else echo kept > /data/page && sync && echo written; fi";

#[test]
fn pods_have_written_when_the_power_goes() {
    let _running = shared();
    let mut pods = Vec::new();
    for mode in BOTH_MODES {
        let case = mode.case(CASE);
        let driver = Driver::new(&case, mode);
        for fs in FILESYSTEMS {
            let volume = match fs {
                "xfs" => Volume::xfs(&case, fs),
                _ => Volume::new(&case, fs),
            };
            pods.push(Pod::new(&driver, fs, &volume, LINES).started());
        }
    }
    for pod in pods {
        pod.says("written");
    }
    fs::write(from_environment("FLEXVOLUME_LVM_BOOT_AGAIN"), "").unwrap();
}

#[test]
fn after_the_power_came_back_each_pod_has_its_data() {
    let _running = shared();
    for mode in BOTH_MODES {
        let case = mode.case(CASE);
        let driver = Driver::installed(&case);
        for fs in FILESYSTEMS {
            let volume = Volume::that_is_there(&case, fs);
            let pod = Pod::that_was_started(&format!("{case}-{fs}"));
            pod.says("found kept");
            ending_with(last_call_after_restart(mode), &driver, &volume, &[pod])();
        }
        driver.assert_no_failure();
    }
}
