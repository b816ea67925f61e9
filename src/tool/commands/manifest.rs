//! The volumes of a manifest, as kubelet would name them to the driver.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

use driver::names::{Foreign, Shown};
use driver::options::{FS_TYPE, NAME, READ_WRITE};

/// One volume of the driver.
#[derive(Debug, PartialEq)]
pub struct FlexVolume {
    /// Where it stands: `Pod shop/web, volume data`. None: it was given by hand.
    pub place: Option<Foreign>,
    /// The options of the call, or what the API server would say.
    pub options: Result<Map<String, Value>, String>,
    /// Whether it names a Secret.
    pub has_secret: bool,
}

/// Every flexVolume of a driver whose name ends in `/lvm`, in every document of the text, whatever the
/// object is: a pod, a Deployment, a `PersistentVolume`, a list of them.
pub fn volumes(text: &str) -> Result<Vec<FlexVolume>> {
    let mut found = Vec::new();
    for document in documents(text)? {
        collect(&document, "", &mut found);
    }
    Ok(found)
}

fn collect(value: &Value, above: &str, found: &mut Vec<FlexVolume>) {
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, above, found)),
        Value::Object(fields) => {
            let name = value.get("metadata").and_then(|data| text(data, "name"));
            let namespace = value
                .get("metadata")
                .and_then(|data| text(data, "namespace"));
            let name = match (namespace, name) {
                (Some(namespace), Some(name)) => Some(format!("{namespace}/{name}")),
                (_, name) => name,
            };
            let place = match (text(value, "kind"), &name) {
                (Some(kind), Some(name)) => format!("{kind} {name}"),
                (Some(kind), None) => kind,
                (None, _) => above.to_owned(),
            };
            for (key, below) in fields {
                match (key.as_str(), text(below, "driver")) {
                    ("flexVolume", Some(driver)) if driver.ends_with("/lvm") => {
                        found.push(flex_volume(&place, text(value, "name"), below));
                    }
                    _ => collect(below, &place, found),
                }
            }
        }
        _ => {}
    }
}

/// `name`: that of a pod's volume. A `PersistentVolume` has none beside its `flexVolume`.
fn flex_volume(place: &str, name: Option<String>, source: &Value) -> FlexVolume {
    let mut options = Map::new();
    let mut set = |key: &str, value: &str| options.insert(key.to_owned(), Value::from(value));
    if let Some(fs) = source.get("fsType").and_then(Value::as_str) {
        set(FS_TYPE, fs);
    }
    // kubelet takes no notice of a PersistentVolume's own: the pod that uses the claim says it.
    let read_only = name.is_some() && source.get("readOnly") == Some(&Value::Bool(true));
    set(READ_WRITE, if read_only { "ro" } else { "rw" });
    let called = name.as_deref().or(place.split(' ').nth(1));
    set(NAME, called.unwrap_or_default());
    let given = source.get("options").and_then(Value::as_object);
    let not_text = given
        .into_iter()
        .flatten()
        .find(|(_, value)| !value.is_string());
    let options = if let Some((key, value)) = not_text {
        Err(format!(
            "option {} is {}, which is no string to YAML: write it in quotes",
            key.shown(),
            value.to_string().shown()
        ))
    } else {
        options.extend(given.cloned().unwrap_or_default());
        Ok(options)
    };
    let place = match name {
        Some(name) => format!("{place}, volume {name}").shown(),
        None => place.shown(),
    };
    let place = Some(place);
    let has_secret = source.get("secretRef").is_some_and(Value::is_object);
    FlexVolume {
        place,
        options,
        has_secret,
    }
}

/// More values than any manifest has: with aliases, a few lines can stand for billions.
const MOST: usize = 100_000;
const DEEPEST: usize = 100;

/// A list or mapping that has begun and not ended, its anchor, and the key that waits for its value.
struct Open {
    value: Value,
    anchor: usize,
    key: Option<String>,
}

/// The documents of YAML, or of JSON, which is YAML too.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, Value> = BTreeMap::new();
    let mut number = 0_usize;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|e| {
            anyhow::anyhow!("line {}: this is not YAML: {}", e.marker().line(), e.info())
        })?;
        let (value, anchor) = match event {
            Event::MappingStart(anchor, _) | Event::SequenceStart(anchor, _) => {
                let value = match event {
                    Event::MappingStart(..) => Value::Object(Map::new()),
                    _ => Value::Array(Vec::new()),
                };
                let key = None;
                open.push(Open { value, anchor, key });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let ended = open.pop().context("a list ends that did not begin")?;
                (ended.value, ended.anchor)
            }
            Event::Scalar(text, ScalarStyle::Plain, anchor, None) => (plain(&text), anchor),
            Event::Scalar(text, _, anchor, _) => (Value::from(text.into_owned()), anchor),
            Event::Alias(anchor) => (anchors.get(&anchor).cloned().unwrap_or_default(), 0),
            _ => continue,
        };
        number = number.saturating_add(size(&value));
        if number > MOST || open.len() > DEEPEST {
            bail!("this is no manifest: it has more than {MOST} values, or {DEEPEST} levels");
        }
        if anchor > 0 {
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            None => documents.push(value),
            Some(Open {
                value: Value::Array(items),
                ..
            }) => items.push(value),
            Some(Open {
                value: Value::Object(fields),
                key,
                ..
            }) => match key.take() {
                Some(key) => drop(fields.insert(key, value)),
                None => {
                    *key = Some(
                        value
                            .as_str()
                            .map_or_else(|| value.to_string(), str::to_owned),
                    );
                }
            },
            Some(_) => {}
        }
    }
    Ok(documents)
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.values().map(size).sum(),
        _ => 1,
    }
}

/// A word without quotes, as kubectl understands it.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        _ => {}
    }
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => return Value::Bool(true),
        "false" | "no" | "off" | "n" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-']).replace('_', "");
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && (digits.parse::<f64>().is_ok()
            || digits
                .strip_prefix("0x")
                .is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok()));
    if is_number {
        return serde_json::from_str(text).unwrap_or_default();
    }
    Value::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    use crate::hostile::{has_lines, hostile};

    fn found(text: &str) -> Vec<(String, String)> {
        let volumes = volumes(text).unwrap();
        let shown = volumes.into_iter().map(|volume| {
            let options = volume
                .options
                .map(|options| Value::from(options).to_string());
            (
                volume.place.unwrap().to_string(),
                options.unwrap_or_else(|e| e),
            )
        });
        shown.collect()
    }

    #[test]
    fn volumes_are_found_in_whatever_object_has_them() {
        let text = r#"
kind: StorageClass
metadata: { name: lvm }
---
kind: Pod
metadata:
  name: web
  namespace: shop
spec:
  volumes:
    - name: other
      flexVolume: {driver: example.com/nfs}
    - name: data
      flexVolume:
        driver: kubernetes.io/lvm
        fsType: xfs
        readOnly: true
        options: &of { volumegroup: vg0, volumeID: 'data', size: 10g }
    - {name: more, flexVolume: {driver: a.b/lvm, options: *of}}
    - name: wrong
      flexVolume: {driver: kubernetes.io/lvm, options: {size: 512}}
---
{"kind": "List", "items": [{"kind": "PersistentVolume", "metadata": {"name": "db"}, "spec":
  {"flexVolume": {"driver": "kubernetes.io/lvm", "readOnly": true, "options": {"volumeID": "x"}}}}]}
"#;
        let got = found(text);
        let places: Vec<&str> = got.iter().map(|(place, _)| &**place).collect();
        let want = [
            "Pod shop/web, volume data",
            "Pod shop/web, volume more",
            "Pod shop/web, volume wrong",
            "PersistentVolume db",
        ];
        assert_eq!(places, want);
        let options: Vec<&str> = got.iter().map(|(_, options)| &**options).collect();
        let known = r#""size":"10g","volumeID":"data","volumegroup":"vg0"}"#;
        let [data, more, wrong, db] = options[..] else {
            panic!("{got:?}")
        };
        assert!(
            data.contains(r#""kubernetes.io/fsType":"xfs""#) && data.contains(r#"readwrite":"ro""#)
        );
        assert!(
            data.contains(r#"pvOrVolumeName":"data""#) && data.ends_with(known),
            "{data}"
        );
        assert!(
            more.contains(r#"readwrite":"rw""#) && more.ends_with(known),
            "{more}"
        );
        assert_eq!(
            wrong,
            "option size is 512, which is no string to YAML: write it in quotes"
        );
        // The pod that uses its claim says whether it is read only.
        assert!(
            db.contains(r#"readwrite":"rw""#) && db.contains(r#"pvOrVolumeName":"db""#),
            "{db}"
        );
    }

    #[test]
    fn words_without_quotes_are_what_kubectl_takes_them_for() {
        for (word, is_text) in [
            ("data", true),
            ("10g", true),
            ("1.5g", true),
            ("'512'", true),
            ("\"true\"", true),
            ("-", true),
            (".hidden", true),
            ("e1", true),
            ("inf", true),
            ("512", false),
            ("-1", false),
            ("1e3", false),
            ("1_000", false),
            ("0x10", false),
            (".5", false),
            ("yes", false),
            ("Off", false),
            ("true", false),
            ("null", false),
            ("", false),
        ] {
            let text = format!("a: {word}");
            let value = documents(&text).map(|all| all[0]["a"].is_string());
            // A hyphen alone begins a list.
            assert_eq!(value.unwrap_or(word == "-"), is_text, "{word}");
        }
    }

    #[test]
    fn a_text_that_is_no_manifest_is_refused() {
        assert_eq!(found(""), []);
        let error = |text: &str| format!("{:#}", volumes(text).unwrap_err());
        assert!(error("a: [\nb: }").starts_with("line 2: this is not YAML: "));
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(error(&deep).contains("100 levels"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let alias = format!("*a{}, ", n - 1).repeat(10);
            bomb.extend([format!("a{n}: &a{n} [{alias}]\n")]);
        }
        assert!(error(&bomb).contains("100000 values"));
    }

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_a_place(hostile in hostile()) {
            let pod = json!({"kind": hostile, "metadata": {"name": hostile}, "spec": {"volumes": [
                {"name": hostile, "flexVolume": {"driver": "a.b/lvm", "options": {&*hostile: 1}}},
            ]}});
            for (place, options) in found(&pod.to_string()) {
                prop_assert!(has_lines(&place, 1) && has_lines(&options, 1), "{place:?} {options:?}");
            }
        }
    }
}
