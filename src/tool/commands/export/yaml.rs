//! Objects of Kubernetes as YAML. Each text from elsewhere is quoted, so that none is read as more than it is.

use std::fmt::Write;

use super::volume::{ClaimName, Exported};
use crate::output::wrapped;
use driver::names::is_printable;

/// Tells the objects of a file apart: `kubectl apply -l flexvolume-lvm/part=claim`.
pub const PART: &str = "flexvolume-lvm/part";

/// How long a line of a comment is.
const WIDTH: usize = 100;

/// A text as a YAML scalar: what JSON has for a string is one, in ASCII.
pub fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let mut ascii = String::new();
    for c in json.chars() {
        // YAML takes some of these for the end of a line.
        let _ = match u32::from(c) {
            code @ 0x7f..=0xffff => write!(ascii, "\\u{code:04x}"),
            code @ 0x1_0000.. => write!(ascii, "\\U{code:08x}"),
            _ => write!(ascii, "{c}"),
        };
    }
    ascii
}

/// Lines as comments, the long ones wrapped.
pub fn comment(text: &str) -> String {
    let lines = text.lines().flat_map(|line| wrapped(line, WIDTH));
    lines.map(|line| as_comment(&line)).collect()
}

/// Lines as comments, as they are: what can be pasted stays on its line.
pub fn comment_as_it_is(text: &str) -> String {
    text.lines().map(as_comment).collect()
}

fn as_comment(line: &str) -> String {
    let shown = |c: char| if is_printable(c) { c } else { '?' };
    let line: String = line.chars().map(shown).collect();
    format!("{}\n", format!("# {line}").trim_end())
}

/// The `PersistentVolume`. `key`: the label of its node; `rest`: what follows in its `spec`, indented.
pub fn persistent_volume(volume: &Exported, key: &str, rest: &str) -> String {
    let Exported {
        object,
        claim,
        class,
        ..
    } = volume;
    let mut text = format!(
        "---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: {}
  labels: {{{PART}: volume}}
spec:
  storageClassName: {}
  capacity: {{storage: {}}}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {{apiVersion: v1, kind: PersistentVolumeClaim, namespace: {}, name: {}}}
",
        quoted(object),
        quoted(class),
        quoted(&volume.quantity()),
        quoted(&claim.namespace),
        quoted(&claim.name),
    );
    if let Some(node) = &volume.node {
        let _ = write!(
            text,
            "  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions:
            - {{key: {key}, operator: In, values: [{}]}}
",
            quoted(node)
        );
    }
    text.push_str(rest);
    text
}

/// The claim that gets it.
pub fn claim(volume: &Exported) -> String {
    let ClaimName { namespace, name } = &volume.claim;
    format!(
        "---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {}
  namespace: {}
  labels: {{{PART}: claim}}
spec:
  storageClassName: {}
  accessModes: [ReadWriteOnce]
  volumeName: {}
  resources: {{requests: {{storage: {}}}}}
",
        quoted(name),
        quoted(namespace),
        quoted(&volume.class),
        quoted(&volume.object),
        quoted(&volume.quantity()),
    )
}
