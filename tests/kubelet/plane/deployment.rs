//! A Deployment, which keeps one pod running on whatever node the scheduler finds for it.

use serde_json::{Value, json};

use crate::prelude::*;

const ALL: &str = "/apis/apps/v1/namespaces/default/deployments";

pub struct Deployment {
    name: String,
}

impl Deployment {
    /// Makes one of pods like this one, with its name.
    pub fn of(pod: &Pod) -> Self {
        let labels = json!({"app": pod.name});
        api::create(
            ALL,
            &json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": pod.name},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod.template()},
                },
            }),
        );
        Self {
            name: pod.name.clone(),
        }
    }

    /// Waits until a pod of it that is not to end has been put on this node, and returns it.
    pub fn pod_on(&self, node: &str) -> Pod {
        let path = format!("pods?labelSelector=app={}", self.name);
        let is_it = |pod: &Value| {
            pod["metadata"]["deletionTimestamp"].is_null() && pod["spec"]["nodeName"] == node
        };
        wait_for(&format!("{} has a pod on {node}", self.name), || {
            let found = api::list(&path).into_iter().find(is_it)?;
            Some(Pod::that_is_there(found))
        })
    }

    /// Wants no pod any more.
    pub fn stop(&self) {
        self.scale(0);
    }

    /// Wants a pod again.
    pub fn start(&self) {
        self.scale(1);
    }

    fn scale(&self, replicas: u32) {
        api::patch(
            &format!("{ALL}/{}", self.name),
            &json!({"spec": {"replicas": replicas}}),
        );
    }
}
