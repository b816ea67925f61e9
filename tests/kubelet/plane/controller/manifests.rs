//! What users are told to apply, as the API server takes it.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::prelude::*;

/// Without their endings.
const MANIFESTS: &str = "examples/pod-inline examples/pod-readonly examples/pv-pvc \
    examples/static-pod examples/two-pods install/daemonset";

/// Where objects of a kind are made.
fn collection(object: &Value) -> String {
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    match object["kind"].as_str().unwrap() {
        "StorageClass" => "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
        "PersistentVolume" => "/api/v1/persistentvolumes".to_owned(),
        "DaemonSet" => format!("/apis/apps/v1/namespaces/{namespace}/daemonsets"),
        kind => format!("/api/v1/namespaces/{namespace}/{}s", kind.to_lowercase()),
    }
}

#[test]
fn the_manifests_for_users_are_accepted_with_every_word_of_them() {
    for file in MANIFESTS.split(' ') {
        let path = format!("{}/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let object = Value::deserialize(document).unwrap();
            let made = api::create(&format!("{}?dryRun=All", collection(&object)), &object);
            assert_kept(&object, &made, Path::new(file));
        }
    }
}

/// The server drops what it does not know, a misspelt field for one, and says nothing.
fn assert_kept(written: &Value, kept: &Value, place: &Path) {
    match written {
        Value::Object(fields) => {
            for (name, value) in fields {
                assert_kept(value, &kept[name], &place.join(name));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                assert_kept(item, &kept[index], &place.join(index.to_string()));
            }
        }
        value => assert_eq!(value, kept, "{}", place.display()),
    }
}
