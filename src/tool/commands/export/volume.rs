//! A volume as its objects name it, and the names that Kubernetes takes.

use std::fmt;

use anyhow::{Context, Result, bail};

use driver::names::{Bytes, FsType, LvId, ObjectName};

/// All that the objects of a volume hold.
#[derive(Debug, Clone)]
pub struct Exported {
    pub id: LvId,
    pub size: Bytes,
    pub fs: FsType,
    /// Whether the filesystem is there, whole, and was seen just now.
    pub is_seen: bool,
    pub is_thin: bool,
    pub is_encrypted: bool,
    /// The node that has it. None: the nodes that share its group.
    pub node: Option<String>,
    /// The name of its `PersistentVolume`.
    pub object: String,
    pub claim: ClaimName,
    /// The `StorageClass`; empty for none.
    pub class: String,
    pub mount_options: Option<String>,
    /// The pods that have it, or had it last.
    pub users: Vec<User>,
    /// Notes on the volume, a line each.
    pub notes: Vec<String>,
}

/// A pod, and what it calls the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// `namespace/name`, or its UID.
    pub pod: String,
    /// The name of the volume in the pod, or of its `PersistentVolume`: this node cannot tell them apart.
    pub name: String,
    pub read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimName {
    pub namespace: String,
    pub name: String,
}

impl ClaimName {
    pub fn parse(text: &str) -> Result<Self> {
        let parts = text.split_once('/');
        let (namespace, name) = parts.context("a claim is NAMESPACE/NAME, such as default/web")?;
        if namespace.contains('.') {
            bail!("{namespace:?} is no name for a namespace: it holds a dot");
        }
        Ok(Self {
            namespace: object_name(namespace)?,
            name: object_name(name)?,
        })
    }
}

impl fmt::Display for ClaimName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Exported {
    /// Its size as Kubernetes writes it: exact, and so never more than the volume has.
    pub fn quantity(&self) -> String {
        let text = self.size.to_string();
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        let unit = if unit.starts_with("byte") { "" } else { unit };
        format!("{number}{}", unit.trim_end_matches('B'))
    }
}

/// Checks the name of an object.
pub fn object_name(text: &str) -> Result<String> {
    Ok(ObjectName::parse(text)?.to_string())
}

/// The nearest name that Kubernetes takes. None: nothing of it is left.
pub fn nearest_name(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let clean: String = lower
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let labels = clean.split('.').map(|label| label.trim_matches('-'));
    let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    object_name(&labels.join(".")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_kubernetes_takes() {
        for (text, want) in [
            ("web-data", Some("web-data")),
            ("Web_Data+1", Some("web-data-1")),
            ("_a_", Some("a")),
            ("a..b-.c", Some("a.b.c")),
            ("+", None),
        ] {
            assert_eq!(nearest_name(text).as_deref(), want, "{text}");
            assert_eq!(object_name(text).is_ok(), want == Some(text), "{text}");
        }
        assert!(object_name(&"a".repeat(254)).is_err());
        for (text, is_good) in [
            ("a/b", true),
            ("a.b/c", false),
            ("a", false),
            ("a/b/c", false),
        ] {
            assert_eq!(ClaimName::parse(text).is_ok(), is_good, "{text}");
        }
    }

    #[test]
    fn a_size_is_written_in_full() {
        for (bytes, want) in [
            (2 << 30, "2Gi"),
            (3 << 29, "1536Mi"),
            (512, "512"),
            ((1 << 40) + 512, "1099511628288"),
        ] {
            let volume = Exported {
                size: Bytes::new(bytes),
                ..crate::commands::export::tests::sample()
            };
            assert_eq!(volume.quantity(), want);
        }
    }
}
