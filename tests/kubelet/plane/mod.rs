//! The same kubelet under a control plane: `tests/run.sh plane [CASE…]`. etcd, kube-apiserver and
//! kube-controller-manager run on the host, where they are quick, and the guest is their node.
//!
//! Cases of [`node`] run in a guest. Those of [`controller`] run on the host and need no kubelet.

pub mod api;
pub mod claim;
pub mod pair;

/// Cases on the host, where no kubelet runs.
mod controller {
    mod manifests;
}
mod node {
    mod growth;
    mod pods;
    mod secrets;
}

use std::fs;

use serde_json::{Value, json};

use crate::prelude::*;

/// The guest's name in the cluster. The controller's host has another name, as on a real cluster.
pub const NODE: &str = "node-in-the-guest";

const KUBECONFIG: &str = "/run/kubeconfig";
pub const KUBELET_ARGS: [&str; 2] = [
    "--kubeconfig=/run/kubeconfig",
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
        // It may do what a node may, and no more. tests/run.sh has made the tokens like that.
        "users": [{"name": "node", "user": {"token": NODE}}],
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
