//! A volume goes to a claim, to a CSI driver and back, by what `export` prints. No CSI driver runs here: a
//! claim of its `PersistentVolume` is bound, and pods of that claim wait, but in [`csi_driver`], which starts one.

mod csi_driver;

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::power::LINES;
use crate::prelude::*;

/// The objects in a text of YAML.
pub fn objects(text: &str) -> Vec<Value> {
    let documents = serde_yaml_ng::Deserializer::from_str(text);
    let objects = documents.map(|document| Value::deserialize(document).unwrap());
    objects.filter(|object| !object.is_null()).collect()
}

/// The output of `export` for the volume and this claim.
pub fn exported(driver: &Driver, volume: &Volume, claim: &str, more: &[&str]) -> Vec<Value> {
    let (id, claim) = (volume.id(), format!("default/{claim}"));
    objects(&driver.prints(&[&["export", &id, "--claim", &claim], more].concat()))
}

/// Applies the object of a kind, twice, as somebody does who was interrupted.
pub fn applied(objects: &[Value], kind: &str) -> Value {
    let object = objects.iter().find(|object| object["kind"] == kind);
    let object = object.unwrap_or_else(|| panic!("no {kind}: {objects:?}"));
    api::apply(object);
    api::apply(object)
}

pub const VOLUME: &str = "PersistentVolume";
pub const CLAIM: &str = "PersistentVolumeClaim";

/// Waits until an object is in this phase.
fn has_phase(object: &Value, phase: &str) {
    let path = api::path(object);
    wait_until(&format!("{path} is {phase}"), || {
        let now = api::get(&path).expect("it is there");
        now["status"]["phase"] == phase
    });
}

/// Waits until a claim is bound to this `PersistentVolume`.
pub fn is_bound_to(claim: &str, volume: &Value) {
    let name = &volume["metadata"]["name"];
    wait_until(&format!("{claim} is bound to {name}"), || {
        let claim = api::get(&format!("persistentvolumeclaims/{claim}"));
        claim.is_some_and(|claim| {
            claim["status"]["phase"] == "Bound" && claim["spec"]["volumeName"] == *name
        })
    });
}

/// Deletes an object and waits until it is gone, which may be so already.
fn delete(path: &str) {
    for _ in 0..2 {
        if api::get(path).is_some() {
            api::delete(path);
        }
        wait_until(&format!("{path} is gone"), || api::get(path).is_none());
    }
}

pub fn delete_claim(claim: &str) {
    delete(&format!("persistentvolumeclaims/{claim}"));
}

/// Whether nothing has the volume, as the node says.
pub fn is_ready(driver: &Driver, volume: &Volume) -> bool {
    driver.says(&["check", "--idle", &volume.id()]).1 == 0
}

/// Lets a released `PersistentVolume` wait for its claim again.
fn takes_back(volume: &Value) {
    let path = api::path(volume);
    for _ in 0..2 {
        api::patch(&path, &json!({"spec": {"claimRef": {"uid": null}}}));
    }
    has_phase(volume, "Available");
}

#[test]
fn a_pod_with_an_inline_volume_becomes_one_with_a_claim() {
    let (_running, case, pair, volume) = scene_of_pair("exported", Mode::Attach);
    let driver = &pair.node;
    let inline = Pod::written(driver, "inline", &volume);
    let found = exported(driver, &volume, &volume.name, &[]);
    let made = applied(&found, VOLUME);
    applied(&found, CLAIM);
    is_bound_to(&volume.name, &made);
    assert!(!is_ready(driver, &volume), "{case}: a pod has it");
    pair.all_end(&volume, &[inline]);

    let claimed = volume.claimed();
    let pod = Pod::finding(driver, "claimed", &claimed);
    pair.all_end(&claimed, &[pod]);
    pair.assert_no_failure();
}

#[test]
fn a_stateful_sets_claim_goes_to_a_csi_driver_and_comes_back() {
    let (_running, case, pair, volume) = scene_of_pair("stateful", Mode::MountOnly);
    let driver = &pair.node;
    let claim = format!("{}-{case}-db-0", volume.name);
    let flex = applied(&exported(driver, &volume, &claim, &[]), VOLUME);
    let set = Deployment::stateful(&Pod::new(driver, "db", &volume, LINES), &volume);
    let pod = set.pod_on(&node());
    pod.says("written");
    is_bound_to(&claim, &flex);

    // The new PersistentVolume waits beside the old one, and the pod runs on.
    let to = ["--to", "csi-driver-lvm"];
    let found = exported(driver, &volume, &claim, &to);
    let csi = applied(&found, VOLUME);
    has_phase(&csi, "Available");
    assert!(!is_ready(driver, &volume));
    let ends = |pod: Pod| {
        set.stop();
        pod.is_gone();
        wait_until("nothing has it", || is_ready(driver, &volume));
    };
    ends(pod);
    delete_claim(&claim);
    has_phase(&flex, "Released");
    // Who starts it too early has lost nothing: the claim that it makes is the same.
    set.start();
    is_bound_to(&claim, &csi);

    // Back, as the steps undo it.
    set.stop();
    wait_until("nothing has it", || is_ready(driver, &volume));
    delete_claim(&claim);
    delete(&api::path(&csi));
    takes_back(&flex);
    let mut undone = found.clone();
    for object in undone.iter_mut().filter(|object| object["kind"] == CLAIM) {
        object["spec"]["volumeName"] = flex["metadata"]["name"].clone();
    }
    applied(&undone, CLAIM);
    is_bound_to(&claim, &flex);
    set.start();
    let pod = set.pod_on(&node());
    pod.says("found kept");

    // There again, with the claim made before what it waits for, and the old one gone for good.
    ends(pod);
    delete_claim(&claim);
    let waits = applied(&found, CLAIM);
    has_phase(&waits, "Pending");
    applied(&found, VOLUME);
    is_bound_to(&claim, &csi);
    delete(&api::path(&flex));

    // Back by a new one, of what the cluster has.
    let file = format!("/run/{case}.yaml");
    let is = api::get(&api::path(&csi)).unwrap();
    fs::write(&file, is.to_string()).unwrap();
    let found = objects(&driver.prints(&["import", &file]));
    let flex = applied(&found, VOLUME);
    has_phase(&flex, "Available");
    delete_claim(&claim);
    has_phase(&csi, "Released");
    applied(&found, CLAIM);
    is_bound_to(&claim, &flex);
    delete(&api::path(&csi));
    set.start();
    let pod = set.pod_on(&node());
    pod.says("found kept");
    set.stop();
    pod.is_gone();
    pair.assert_no_failure();
}

#[test]
fn a_reclaim_policy_of_delete_that_was_left_loses_nothing() {
    let (_running, _, pair, volume) = scene_of_pair("left-delete", Mode::MountOnly);
    let driver = &pair.node;
    let found = exported(driver, &volume, &volume.name, &[]);
    let flex = applied(&found, VOLUME);
    let policy = |policy: &str| {
        let spec = json!({"persistentVolumeReclaimPolicy": policy});
        api::patch(&api::path(&flex), &json!({"spec": spec}));
    };
    policy("Delete");
    applied(&found, CLAIM);
    is_bound_to(&volume.name, &flex);
    let claimed = volume.clone().claimed();
    let pod = Pod::written(driver, "first", &claimed);
    pair.all_end(&claimed, &[pod]);
    delete_claim(&volume.name);
    has_phase(&flex, "Failed");

    policy("Retain");
    takes_back(&flex);
    applied(&found, CLAIM);
    is_bound_to(&volume.name, &flex);
    let pod = Pod::finding(driver, "second", &claimed);
    pair.all_end(&claimed, &[pod]);
    pair.assert_no_failure();
}

/// The kinds of the CSI drivers: as much of them as decides what the server keeps.
const KINDS: &str = r#"[
    {"group": "topolvm.io", "version": "v1", "kind": "LogicalVolume", "scope": "Cluster",
     "subresources": {"status": {}}},
    {"group": "local.openebs.io", "version": "v1alpha1", "kind": "LVMVolume", "scope": "Namespaced",
     "subresources": {}}]"#;

/// Makes the kinds of the CSI drivers known.
fn knows_kinds() {
    let fields = json!({"type": "object", "additionalProperties": {"type": "string"}});
    for kind in serde_json::from_str::<Vec<Value>>(KINDS).unwrap() {
        let singular = kind["kind"].as_str().unwrap().to_lowercase();
        let name = format!("{singular}s.{}", kind["group"].as_str().unwrap());
        let schema = json!({"type": "object", "properties": {"spec": fields, "status": fields}});
        let definition = api::apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {
                "group": kind["group"],
                "scope": kind["scope"],
                "names": {"kind": kind["kind"], "singular": singular, "plural": format!("{singular}s")},
                "versions": [{"name": kind["version"], "served": true, "storage": true,
                    "subresources": kind["subresources"], "schema": {"openAPIV3Schema": schema}}],
            },
        }));
        let path = api::path(&definition);
        wait_until(&format!("{name} is known"), || {
            let now = api::get(&path).unwrap();
            let mut all = now["status"]["conditions"].as_array().into_iter().flatten();
            all.any(|one| one["type"] == "Established" && one["status"] == "True")
        });
    }
    api::apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openebs"}}));
}

#[test]
fn the_objects_of_each_csi_driver_are_accepted_with_every_word_of_them() {
    let (_running, _, pair, volume) = scene_of_pair("kinds", Mode::MountOnly);
    let driver = &pair.node;
    let pod = Pod::written(driver, "web", &volume);
    pair.all_end(&volume, &[pod]);
    knows_kinds();
    for (to, kinds) in [
        ("topolvm", vec!["LogicalVolume", VOLUME, CLAIM]),
        ("lvm-localpv", vec!["LVMVolume", VOLUME, CLAIM]),
        ("csi-driver-lvm", vec![VOLUME, CLAIM]),
    ] {
        let found = exported(driver, &volume, &volume.name, &["--to", to]);
        let of: Vec<&str> = found
            .iter()
            .map(|one| one["kind"].as_str().unwrap())
            .collect();
        assert_eq!(of, kinds, "{to}");
        // They go again, but for the claim, which may only be tried.
        for object in &found {
            api::tried(object);
            if object["kind"] != CLAIM {
                applied(&found, object["kind"].as_str().unwrap());
                let path = api::path(object);
                api::patch(&path, &json!({"metadata": {"finalizers": null}}));
                delete(&path);
            }
        }
    }
}
