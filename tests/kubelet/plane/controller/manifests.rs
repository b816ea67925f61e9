//! What users are told to apply, as the API server takes it.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::prelude::*;

/// Without their endings.
const MANIFESTS: &str = "examples/pod-inline examples/pod-readonly examples/pv-pvc \
    examples/static-pod examples/two-pods install/daemonset";

#[test]
fn the_manifests_for_users_are_accepted_with_every_word_of_them() {
    for file in MANIFESTS.split(' ') {
        let path = format!("{}/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let object = Value::deserialize(document).unwrap();
            let made = api::create(&format!("{}?dryRun=All", api::collection(&object)), &object);
            api::assert_kept(&object, &made, Path::new(file));
        }
    }
}
