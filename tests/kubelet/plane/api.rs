//! Speaks to the API server, by way of curl, which knows TLS.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::prelude::*;

/// The environment variable with the API server's address, as seen from here.
pub const SERVER: &str = "FLEXVOLUME_LVM_API";

/// Whether there is a control plane.
pub fn is_there() -> bool {
    std::env::var_os(SERVER).is_some()
}

/// The path of an object, or of a kind of objects. `short`: a whole path, or the part after the namespace.
fn path_of(short: &str) -> String {
    match short.strip_prefix('/') {
        Some(_) => short.to_owned(),
        None => format!("/api/v1/namespaces/default/{short}"),
    }
}

/// The answer. `None`: there is no such object.
pub fn get(path: &str) -> Option<Value> {
    match request("GET", path, None) {
        (404, _) => None,
        answer => Some(good("GET", path, answer)),
    }
}

/// The objects of a kind.
pub fn list(path: &str) -> Vec<Value> {
    let mut answer = good("GET", path, request("GET", path, None));
    match answer["items"].take() {
        Value::Array(items) => items,
        other => panic!("{path}: {other}"),
    }
}

/// Makes an object of a kind.
pub fn create(path: &str, object: &Value) -> Value {
    send("POST", path, object)
}

/// Changes an object in these parts.
pub fn patch(path: &str, change: &Value) -> Value {
    send("PATCH", path, change)
}

/// Where objects of a kind are made.
pub fn collection(object: &Value) -> String {
    const OF_NO_NAMESPACE: &str =
        "CSIDriver CustomResourceDefinition LogicalVolume Namespace PersistentVolume StorageClass";
    let [kind, version] = ["kind", "apiVersion"].map(|key| object[key].as_str().unwrap());
    let api = if version.contains('/') { "apis" } else { "api" };
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = if OF_NO_NAMESPACE.split(' ').any(|one| one == kind) {
        String::new()
    } else {
        format!("namespaces/{}/", namespace.unwrap_or("default"))
    };
    let end = if kind.ends_with('s') { "es" } else { "s" };
    format!("/{api}/{version}/{namespace}{}{end}", kind.to_lowercase())
}

/// Checks that the server has kept everything that was written. It drops fields that it does not know, for example
/// misspelt ones, and says nothing.
pub fn assert_kept(written: &Value, kept: &Value, place: &Path) {
    match written {
        Value::Object(fields) => {
            for (name, value) in fields {
                let place = place.join(name);
                if name == "stringData" {
                    // Of a Secret, which keeps it in base64, as `data`.
                    let mut keys = value.as_object().unwrap().keys();
                    let is_kept = keys.all(|key| kept["data"][key].is_string());
                    assert!(is_kept, "{}", place.display());
                    continue;
                }
                assert_kept(value, &kept[name], &place);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                assert_kept(item, &kept[index], &place.join(index.to_string()));
            }
        }
        // It may leave out what is empty.
        value if *value == "" && kept.is_null() => {}
        value => assert_eq!(value, kept, "{}", place.display()),
    }
}

/// Asks for the end of an object. A node takes its time to end a pod.
pub fn delete(path: &str) {
    good("DELETE", path, request("DELETE", path, None));
}

/// Takes a pod away without asking its node.
pub fn delete_by_force(path: &str) {
    let options = json!({"gracePeriodSeconds": 0});
    good("DELETE", path, request("DELETE", path, Some(&options)));
}

fn send(method: &str, path: &str, object: &Value) -> Value {
    good(method, path, request(method, path, Some(object)))
}

fn good(method: &str, path: &str, (code, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&code), "{method} {path}: {answer}");
    answer
}

fn request(method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let (method, kind) = match method {
        "PATCH" => (method, "Content-Type: application/merge-patch+json"),
        _ => (method, "Content-Type: application/json"),
    };
    let url = from_environment(SERVER) + &path_of(path);
    let mut curl = Command::new("curl");
    // Of HTTP/2, curl and the server do not think alike.
    curl.args(["--silent", "--show-error", "--insecure", "--http1.1"])
        .args(["--max-time", "60", "--write-out", "\n%{http_code}"])
        .args(["--header", "Authorization: Bearer admin", "--header", kind])
        .args(["--request", method, &url]);
    if body.is_some() {
        curl.args(["--data-binary", "@-"]);
    }
    let mut curl = curl
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = body.map(Value::to_string).unwrap_or_default();
    let mut stdin = curl.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = curl.wait_with_output().unwrap();
    assert!(output.status.success(), "{method} {url}: {}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let (answer, code) = text.rsplit_once('\n').unwrap();
    let answer = serde_json::from_str(answer).unwrap_or_else(|_| answer.into());
    (code.parse().unwrap(), answer)
}
