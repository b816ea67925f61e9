//! The same kubelet under a control plane: `tests/run.sh plane [CASE…]`. etcd, kube-apiserver and
//! kube-controller-manager run on the host, where they are quick, and the guest is their node.
//!
//! Cases of [`node`] run in a guest. Those of [`controller`] run on the host and need no kubelet:
//! their nodes are nothing but objects. A node that dies is in `failover`.

pub mod api;
pub mod claim;
mod controller;
pub mod deployment;
mod node;
pub mod pair;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::prelude::*;

/// The guest's name in the cluster, if tests/run.sh says no other. The controller's host must not
/// have it, as on a real one.
pub const NODE: &str = "node-in-the-guest";

const KUBECONFIG: &str = "/run/kubeconfig";
pub const KUBELET_ARGS: [&str; 2] = [
    "--kubeconfig=/run/kubeconfig",
    // As qemu has it.
    "--node-ip=10.0.2.15",
];

/// The name of this guest.
pub fn node() -> String {
    std::env::var("FLEXVOLUME_LVM_NODE").unwrap_or_else(|_| NODE.to_owned())
}

/// Makes the guest a node, and returns kubelet's configuration for that.
pub fn join(config: &str) -> String {
    let node = node();
    run("hostname", &[&node]);
    let config_of_client = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": from_environment(api::SERVER),
            "insecure-skip-tls-verify": true,
        }}],
        // It may do what a node may, and no more. tests/run.sh has made the tokens like that.
        "users": [{"name": "node", "user": {"token": node}}],
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
pub fn controller_root() -> PathBuf {
    PathBuf::from(from_environment("FLEXVOLUME_LVM_CONTROLLER"))
}

/// The driver of a case, for the controller.
pub fn driver_of_controller(case: &str) -> Driver {
    Driver::for_controller(case, &controller_root())
}

/// Says that a node is off, as an operator does who knows it, or that it no longer is.
pub fn out_of_service(node: &str, is: bool) {
    const KEY: &str = "node.kubernetes.io/out-of-service";
    let path = format!("/api/v1/nodes/{node}");
    let mut node = api::get(&path).expect("the node is there");
    let mut taints = match node["spec"]["taints"].take() {
        Value::Array(taints) => taints,
        _ => Vec::new(),
    };
    taints.retain(|one| one["key"] != KEY);
    if is {
        taints.push(json!({"key": KEY, "value": "nodeshutdown", "effect": "NoExecute"}));
    }
    api::patch(&path, &json!({"spec": {"taints": taints}}));
}
