//! The same kubelet under a control plane: `tests/run.sh plane [CASE…]`. etcd, kube-apiserver and
//! kube-controller-manager run on the host, where they are quick, and the guest is their node.
//!
//! Cases of [`node`] run in the guest. Those of [`controller`] run on the host and need no kubelet:
//! their nodes are nothing but objects.

pub mod api;
mod claim;
mod controller;
mod node;
mod pair;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::driver::Driver;
use crate::machine::from_environment;
use crate::run;

/// The guest's name in the cluster. The controller's host must not have it, as on a real one.
pub const NODE: &str = "node-in-the-guest";

const KUBECONFIG: &str = "/run/kubeconfig";
pub const KUBELET_ARGS: [&str; 3] = [
    "--kubeconfig=/run/kubeconfig",
    "--hostname-override=node-in-the-guest",
    // As qemu has it.
    "--node-ip=10.0.2.15",
];

/// Makes the guest a node, and returns kubelet's configuration for that.
pub fn join(config: &str) -> String {
    run("hostname", &[NODE]);
    let config_of_client = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": from_environment(api::SERVER),
            "insecure-skip-tls-verify": true,
        }}],
        // It may do what a node may, and no more.
        "users": [{"name": "node", "user": {"token": "node"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "node"}}],
        "current-context": "test",
    });
    fs::write(KUBECONFIG, config_of_client.to_string()).unwrap();
    let mut config: Value = serde_yaml_ng::from_str(config).unwrap();
    config["enableControllerAttachDetach"] = true.into();
    // The controller detaches a volume only after kubelet has said that it is unmounted.
    config["nodeStatusUpdateFrequency"] = "5s".into();
    config.to_string()
}

/// The controller's plugin directory, and what belongs to it.
fn controller_root() -> PathBuf {
    PathBuf::from(from_environment("FLEXVOLUME_LVM_CONTROLLER"))
}

/// The driver of a case, for the controller.
fn driver_of_controller(case: &str) -> Driver {
    Driver::for_controller(case, &controller_root())
}
