//! The container of install/daemonset.yaml puts the driver into a kubelet that runs.

use serde_json::{Value, json};

use crate::prelude::*;

/// The container of the `DaemonSet`, with kubelet's plugin directory, and with a driver's name that no other case uses.
/// There is no network for pods here, so the container has the host's.
fn spec(vendor: &str) -> Value {
    let daemonset: Value =
        serde_yaml_ng::from_str(include_str!("../../install/daemonset.yaml")).unwrap();
    let mut spec = daemonset["spec"]["template"]["spec"].clone();
    spec["hostNetwork"] = json!(true);
    spec["volumes"][0]["hostPath"]["path"] = json!(format!("{KUBELET}/exec"));
    let container = &mut spec["containers"][0];
    container["name"] = json!("main");
    let args = container["args"].as_array_mut().unwrap();
    args.push(json!(format!("--vendor={vendor}")));
    spec
}

#[test]
fn the_daemonsets_container_installs_the_driver() {
    let _running = shared();
    let case = "container";
    let image = from_environment("FLEXVOLUME_LVM_INSTALLER");
    run("ctr", &["--namespace", "k8s.io", "image", "import", &image]);
    let driver = Driver::installed(case);
    let volume = Volume::new(case, "data");
    let installer = Pod::new(&driver, "installer", &volume, "")
        .with("", "spec", spec(case))
        .started();
    installer.says("checked    init says Success, attach = false");

    let first = Pod::written(&driver, "first", &volume);
    all_end(&driver, Mode::MountOnly, &volume, &[first]);

    // The driver stays when its installer goes.
    installer.ends();
    let second = Pod::finding(&driver, "second", &volume);
    all_end(&driver, Mode::MountOnly, &volume, &[second]);
}
