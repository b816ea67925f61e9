use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::Value;
use zeroize::Zeroize;

use crate::names::{LvId, LvName, ObjectName, VgName};
use crate::options::{GROUP, NAME, VOLUME, holds_secret};

/// Whom a call is about, for the log: the volume, the pod, and kubelet's name of the volume, as far
/// as they can be read. Whatever else is wrong with the call, the log has it under these names.
pub fn log_fields(args: &[OsString]) -> Vec<(&'static str, String)> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let json = words.iter().find(|word| word.trim_start().starts_with('{'));
    let found = match (json, words.as_slice()) {
        (Some(json), _) => of_options(json),
        // Cut in pieces, a secret may be in any word of the call.
        (None, ["detach", volume, ..]) if !args.iter().any(holds_secret) => {
            match LvId::from_device(volume) {
                Some(id) => vec![("volume", Some(id.to_string()))],
                None => vec![("name", checked(volume))],
            }
        }
        _ => Vec::new(),
    };
    let known = found.into_iter();
    known
        .filter_map(|(key, value)| value.map(|value| (key, value)))
        .collect()
}

fn of_options(json: &str) -> Vec<(&'static str, Option<String>)> {
    // Also options that hold something else than strings, which a call refuses.
    let mut pairs: BTreeMap<String, Value> = serde_json::from_str(json).unwrap_or_default();
    for (key, value) in &mut pairs {
        if let (true, Value::String(secret)) = (holds_secret(key), value) {
            secret.zeroize();
        }
    }
    let text = |key: &str| pairs.get(key).and_then(Value::as_str);
    let volume = || {
        let vg = VgName::parse(text(GROUP)?).ok()?;
        let lv = LvName::parse(text(VOLUME)?).ok()?;
        Some(LvId::new(vg, lv).to_string())
    };
    let name = |key: &str| checked(text(key)?);
    let pod = name("kubernetes.io/pod.name").map(|pod| {
        let namespace = name("kubernetes.io/pod.namespace");
        namespace.map_or(pod.clone(), |namespace| format!("{namespace}/{pod}"))
    });
    vec![("volume", volume()), ("pod", pod), ("name", name(NAME))]
}

fn checked(name: &str) -> Option<String> {
    Some(ObjectName::parse(name).ok()?.to_string())
}
