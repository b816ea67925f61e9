//! A node that is nothing but an object, and says that it is well.

use serde_json::json;

use crate::prelude::*;

pub struct Bystander {
    path: String,
}

impl Bystander {
    /// Adds it to the cluster, in a zone of this name.
    pub fn new(name: &str, zone: &str) -> Self {
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": zone,
            }},
        });
        api::create("/api/v1/nodes", &node);
        let path = format!("/api/v1/nodes/{name}");
        let bystander = Self { path };
        bystander.is_well();
        bystander
    }

    /// Reports, as a kubelet does every few seconds.
    pub fn is_well(&self) {
        let now = run("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]);
        let room = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
        let ready = json!({
            "type": "Ready",
            "status": "True",
            "reason": "Test",
            "message": "there is no kubelet",
            "lastHeartbeatTime": now,
        });
        let status = json!({"capacity": room, "allocatable": room, "conditions": [ready]});
        api::patch(&format!("{}/status", self.path), &json!({"status": status}));
    }

    /// Whether a pod would be put there: the controller has heard that it is well.
    pub fn is_free(&self) -> bool {
        self.is_well();
        let node = api::get(&self.path).expect("the node is there");
        node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
    }
}
