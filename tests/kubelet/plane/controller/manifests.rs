//! The API server accepts the manifests of the pages.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::prelude::*;

#[test]
fn the_manifests_for_users_are_accepted_with_every_word_of_them() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut taken = 0;
    for file in files(top, &["", "docs", "examples", "install"]) {
        let text = || fs::read_to_string(&file).unwrap();
        let manifests = match file.extension().and_then(|ending| ending.to_str()) {
            Some("yaml") => vec![text()],
            Some("md") => blocks(&text()),
            _ => continue,
        };
        for object in manifests.iter().flat_map(|text| objects(text)) {
            let made = api::create(&format!("{}?dryRun=All", api::collection(&object)), &object);
            api::assert_kept(&object, &made, &file);
            taken += 1;
        }
    }
    assert!(taken >= 10, "only {taken} manifests were found");
}

fn files(top: &Path, folders: &[&str]) -> Vec<PathBuf> {
    let entries = folders
        .iter()
        .flat_map(|dir| fs::read_dir(top.join(dir)).unwrap());
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The YAML in a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```yaml\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// The objects of an API server; what a page shows of a pod is put into one.
fn objects(text: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .filter_map(|mut object| {
            if object["volumes"].is_array() {
                object["containers"] = json!([{"name": "main", "image": "main"}]);
                object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "page"}, "spec": object});
            }
            // A kustomization is kubectl's, kubeadm's config is no object either, and these two kinds are known only
            // where a CSI driver has been installed.
            let kind = object["kind"].as_str()?;
            let is_known = !["Kustomization", "LogicalVolume", "LVMVolume"].contains(&kind);
            is_known.then_some(object)
        })
        .collect()
}
