//! The names of this node's pods, without the API: kubelet names the directory of a pod's logs after the pod.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use driver::host::Kernel;
use driver::mount::Row;
use driver::names::{Foreign, Shown};

/// Source: kubelet's `pkg/kuberuntime/helpers.go`, `BuildPodLogsDirectory`.
const LOGS: &str = "/var/log/pods";

/// A map from a pod's UID to `namespace/name`.
pub struct Pods(BTreeMap<String, String>);

impl Pods {
    /// Reads the names. A pod without logs has no name here, and is shown by its UID.
    pub fn read(kernel: &Kernel) -> Self {
        let names = kernel.list(Path::new(LOGS)).unwrap_or_default();
        Self(names.iter().filter_map(|name| parse(name)).collect())
    }

    pub fn name(&self, uid: &str) -> Foreign {
        self.0.get(uid).map_or(uid, String::as_str).shown()
    }

    /// Whether a word is this pod's UID or its `namespace/name`.
    pub fn is_called(&self, uid: &str, word: &str) -> bool {
        uid == word || self.0.get(uid).is_some_and(|name| name == word)
    }
}

/// Parses `<namespace>_<name>_<uid>`. Each part is a DNS name, so none contains an underscore.
fn parse(dir: &str) -> Option<(String, String)> {
    let is_a_names = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !dir.chars().all(is_a_names) {
        return None;
    }
    let (name, uid) = dir.rsplit_once('_')?;
    Some((uid.to_owned(), name.replacen('_', "/", 1)))
}

/// The UID of the pod to whose directory a path belongs. `None`: the path is in no pod's directory.
pub fn uid_of(path: &Path) -> Option<&str> {
    let parts = || path.iter().filter_map(|part| part.to_str());
    let at = parts().zip(parts().skip(2)).position(|(dir, kind)| {
        dir == "pods" && matches!(kind, "volumes" | "volume-subpaths" | "volumeDevices")
    })?;
    parts().nth(at.saturating_add(1))
}

pub fn uids_of<'a>(mounts: &[&'a Row]) -> BTreeSet<&'a str> {
    let uids = mounts.iter().map(|row| uid_of(&row.mount_point));
    uids.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_name_is_in_its_directory_of_logs() {
        let pod = parse("shop_web-0_1-2-3");
        assert_eq!(pod, Some(("1-2-3".to_owned(), "shop/web-0".to_owned())));
        assert_eq!(parse("lost+found"), None);
        assert_eq!(parse("shop_web\n0_1-2-3"), None);
        let uid = |path| uid_of(Path::new(path));
        assert_eq!(uid("/k/pods/1-2/volumes/a~lvm/data"), Some("1-2"));
        assert_eq!(uid("/k/pods/1-2/volume-subpaths/data/c/0"), Some("1-2"));
        assert_eq!(uid("/k/pods"), None);
        assert_eq!(uid("/mnt"), None);
    }
}
