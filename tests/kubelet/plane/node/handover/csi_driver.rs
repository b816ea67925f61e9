//! The same with csi-driver-lvm at work, which runs beside kubelet without any pod. `tests/run.sh` runs this
//! where `CSI_DRIVERS` names its programs.

use std::fs;
use std::path::Path;
use std::process::Child;

use serde_json::json;

use super::{
    CLAIM, VOLUME, applied, delete_claim, exported, is_bound_to, is_ready, objects, takes_back,
};
use crate::prelude::*;

const NAME: &str = "lvm.csi.metal-stack.io";

/// Starts the driver and what registers it, and waits until kubelet has it.
fn start() -> [Child; 2] {
    let (programs, dir) = (
        from_environment("FLEXVOLUME_LVM_CSI"),
        format!("{KUBELET}/plugins/{NAME}"),
    );
    fs::create_dir_all(&dir).unwrap();
    let socket = format!("{dir}/csi.sock");
    api::apply(&json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": NAME},
        "spec": {"attachRequired": false, "podInfoOnMount": true},
    }));
    let program = |name: &str| format!("{programs}/{name}");
    let args = [
        "--endpoint",
        &socket,
        "--nodeid",
        &node(),
        "--vgname",
        GROUP,
        "--devices",
        "",
    ];
    let csi_driver = in_background(&program("csi-driver-lvm"), &args, "csi-driver-lvm");
    wait_until("csi-driver-lvm listens", || Path::new(&socket).exists());
    let registry = format!("{KUBELET}/plugins_registry");
    // It ends if the driver does not answer within a second.
    let again = "until \"$0\" \"$@\"; do sleep 1; done";
    let args = [
        "-c",
        again,
        &program("csi-node-driver-registrar"),
        "--csi-address",
        &socket,
        "--kubelet-registration-path",
        &socket,
        "--plugin-registration-path",
        &registry,
    ];
    let registrar = in_background("sh", &args, "registrar");
    wait_until("kubelet has the driver", || {
        let node = api::get(&format!("/apis/storage.k8s.io/v1/csinodes/{}", node()));
        node.is_some_and(|node| node["spec"]["drivers"].to_string().contains(NAME))
    });
    [csi_driver, registrar]
}

#[test]
fn a_pods_data_goes_to_csi_driver_lvm_and_back() {
    let (_running, case, pair, volume) = scene_of_pair("metal", Mode::MountOnly);
    let (driver, claim) = (&pair.node, volume.name.clone());
    let _until_the_power_goes = start();
    let found = exported(driver, &volume, &claim, &[]);
    applied(&found, VOLUME);
    applied(&found, CLAIM);
    let claimed = volume.clone().claimed();
    let first = Pod::written(driver, "first", &claimed);
    let tags = volume.tags();

    let found = exported(driver, &volume, &claim, &["--to", "csi-driver-lvm"]);
    let csi = applied(&found, VOLUME);
    let ends = |pod: Pod| {
        pod.ends();
        wait_until("nothing has it", || is_ready(driver, &volume));
        delete_claim(&claim);
    };
    ends(first);
    // That driver formats a volume whose filesystem it does not know.
    let shown = run("lsblk", &["-J", "-f", &volume.device()]);
    assert!(shown.contains(r#""fstype": "ext4""#), "{shown}");
    applied(&found, CLAIM);
    is_bound_to(&claim, &csi);
    let second = Pod::new(
        driver,
        "second",
        &claimed,
        "cat /data/page; echo more > /data/more; sync; echo done",
    );
    let second = second.started();
    second.says("kept");
    second.says("done");
    assert!(!is_ready(driver, &volume));

    let file = format!("/run/{case}.yaml");
    fs::write(&file, api::get(&api::path(&csi)).unwrap().to_string()).unwrap();
    let found = objects(&driver.prints(&["import", &file]));
    let flex = applied(&found, VOLUME);
    takes_back(&flex);
    ends(second);
    applied(&found, CLAIM);
    is_bound_to(&claim, &flex);
    let third = Pod::new(driver, "third", &claimed, "cat /data/page /data/more").started();
    third.says("kept");
    third.says("more");
    pair.all_end(&claimed, &[third]);
    assert_eq!(volume.tags(), tags);
    pair.assert_no_failure();
}
