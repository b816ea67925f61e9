//! The installer puts the driver into a kubelet that runs, and takes it away: as a program, and as the
//! container of install/daemonset.yaml.

use serde_json::{Value, json};

use crate::prelude::*;

/// The container of the `DaemonSet`, with kubelet's plugin directory and a driver's name of its own, so
/// that other cases are not touched. There is no network for pods here, so it has the host's.
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

#[test]
fn a_running_kubelet_forgets_a_driver_that_is_uninstalled_and_takes_it_again() {
    let _running = shared();
    let case = "uninstalled";
    let (driver, volume) = (Driver::installed(case), Volume::new(case, "data"));
    let exec = format!("{KUBELET}/exec");
    let program = from_environment("FLEXVOLUME_LVM_DRIVER");
    let lvm = |command: &str| {
        let line = format!("{program} {command} --plugin-dir {exec} --vendor {case} 2>&1 || true");
        let mut said = String::new();
        // The installer of another case may be at work there.
        wait_until("its turn", || {
            said = run("sh", &["-c", &line]);
            !said.contains("another run is at work")
        });
        said
    };
    let said = lvm("install");
    assert!(!said.contains("warning"), "{said}");
    let doctor = format!("{exec}/{case}~lvm/lvm doctor || true");
    let doctor = run("sh", &["-c", &doctor]);
    let is_well = |line: &str| line.starts_with("ok") && line.contains("kubelet (pid");
    assert!(doctor.lines().any(is_well), "{doctor}");
    let first = Pod::written(&driver, "first", &volume);
    all_end(&driver, Mode::MountOnly, &volume, &[first]);

    lvm("uninstall");
    let second = Pod::reading(&driver, "second", &volume);
    wait_until("kubelet knows no such driver", || {
        let log = kubelet_log();
        let mut lines = log.lines().filter(|line| line.contains(&second.name));
        lines.any(|line| line.contains("no volume plugin matched"))
    });
    lvm("install");
    second.says("kept");
    all_end(&driver, Mode::MountOnly, &volume, &[second]);
}
