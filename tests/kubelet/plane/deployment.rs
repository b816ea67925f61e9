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
        let deployment = Self::that_is_there(&pod.name);
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
        deployment
    }

    pub fn that_is_there(name: &str) -> Self {
        Self {
            name: name.to_owned(),
        }
    }

    /// Waits until it has a pod that is not to end and of which this is true, and returns it.
    pub fn pod_that(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Pod {
        let path = format!("pods?labelSelector=app={}", self.name);
        let is_wanted = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
        wait_for(&format!("{} has a pod that {what}", self.name), || {
            let mut pods = api::list(&path).into_iter();
            let found = pods.find(|pod| is_wanted(pod) && is_it(pod))?;
            Some(Pod::that_is_there(found))
        })
    }

    /// Waits until its pod has been put on this node.
    pub fn pod_on(&self, node: &str) -> Pod {
        self.pod_that(&format!("is on {node}"), |pod| {
            pod["spec"]["nodeName"] == node
        })
    }

    /// Waits until there is a pod for which there is no node.
    pub fn pod_without_node(&self) -> Pod {
        self.pod_that("no node can take", |pod| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut all = conditions.into_iter().flatten();
            pod["spec"]["nodeName"].is_null() && all.any(|one| one["reason"] == "Unschedulable")
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
