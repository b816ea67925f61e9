//! A `PersistentVolume` with its claim, and what the cluster knows of volumes.

use serde_json::{Value, json};

use crate::prelude::*;

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

/// Makes a `PersistentVolume` of the volume and a claim that is bound to it, both with the
/// volume's name and of 32 MiB, and returns the volume as pods get it by the claim.
pub fn claim(driver: &Driver, volume: &Volume) -> Volume {
    let class = &driver.case;
    let name = &volume.name;
    let object = |kind: &str, spec: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    // A case may have two claims.
    if api::get(&format!("{CLASSES}/{class}")).is_none() {
        api::create(
            CLASSES,
            &json!({
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": class},
                // Nobody makes volumes of it, but they may grow.
                "provisioner": "kubernetes.io/no-provisioner",
                "allowVolumeExpansion": true,
            }),
        );
    }
    let persistent = json!({
        "storageClassName": class,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "32Mi"},
        "flexVolume": volume.source(&driver.name()),
    });
    let claim = json!({
        "storageClassName": class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "32Mi"}},
    });
    api::create(
        "/api/v1/persistentvolumes",
        &object("PersistentVolume", persistent),
    );
    api::create(
        "persistentvolumeclaims",
        &object("PersistentVolumeClaim", claim),
    );
    wait_until(&format!("{name} is bound"), || {
        let claim = claim_of(volume);
        claim["status"]["phase"] == "Bound" && claim["spec"]["volumeName"] == *name
    });
    volume.clone().claimed()
}

/// The claim as it is now.
pub fn claim_of(volume: &Volume) -> Value {
    api::get(&format!("persistentvolumeclaims/{}", volume.name)).expect("the claim is there")
}

/// The cluster's name of a volume on a node.
pub fn unique_name(driver: &Driver, volume: &Volume) -> String {
    format!("{}/{}", driver.name(), volume.name)
}

/// The device under which the controller has attached the volume to a node, if it has.
pub fn attached(node: &str, driver: &Driver, volume: &Volume) -> Option<String> {
    let node = api::get(&format!("/api/v1/nodes/{node}"))?;
    let all = node["status"]["volumesAttached"].as_array()?.clone();
    let name = unique_name(driver, volume);
    let found = all.into_iter().find(|entry| entry["name"] == *name)?;
    Some(found["devicePath"].as_str().unwrap_or("").to_owned())
}

/// Waits until the cluster warns about a pod with a text that holds these words, and returns it.
pub fn event(pod: &str, reason: &str, words: &str) -> String {
    wait_for(&format!("an event of {pod}: {words:?}"), || {
        let of_pod = format!("events?fieldSelector=involvedObject.name={pod},reason={reason}");
        let events = api::list(&of_pod).into_iter();
        let mut texts = events.filter_map(|event| event["message"].as_str().map(str::to_owned));
        texts.find(|text| text.contains(words))
    })
}
