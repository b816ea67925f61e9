use std::path::{Component, Path, PathBuf};

/// The kinds of directories that kubelet has. Source: kubelet's `pkg/volume/flexvolume/util.go` and
/// `pkg/volume/util`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeletPath {
    /// `<root>/plugins/kubernetes.io/flexvolume/<vendor>/<driver>/mounts/<name>`: one for all pods
    /// of this node.
    Global,
    /// `<root>/pods/<uid>/volumes/<vendor>~<driver>/<name>`: one for each pod.
    Pod {
        /// Where kubelet would have put the global mount of the same volume.
        global: PathBuf,
    },
    /// `<root>/pods/<uid>/volume-subpaths/…`: kubelet's own bind mounts.
    SubPath,
    /// Somewhere else: a person at a shell, or the host itself.
    Other,
}

impl KubeletPath {
    /// Tells by the shape of the path; kubelet's root directory may be anywhere.
    pub fn of(path: &Path) -> Self {
        let parts: Vec<&str> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        match parts.as_slice() {
            [
                ..,
                "plugins",
                "kubernetes.io",
                "flexvolume",
                _,
                _,
                "mounts",
                _,
            ] => Self::Global,
            [root @ .., "pods", _, "volumes", plugin, name] => match plugin.split_once('~') {
                Some((vendor, driver)) => {
                    let mut global = PathBuf::from("/");
                    global.extend(root);
                    global.extend(["plugins", "kubernetes.io", "flexvolume"]);
                    global.extend([vendor, driver, "mounts", name]);
                    Self::Pod { global }
                }
                None => Self::Other,
            },
            _ if parts
                .windows(3)
                .any(|part| matches!(part, ["pods", _, "volume-subpaths"])) =>
            {
                Self::SubPath
            }
            _ => Self::Other,
        }
    }
}

/// Whether kubelet made a mount there, and not the host for itself.
///
/// The host may have kubelet's root directory itself on a logical volume, or a directory in it that
/// serves all pods.
pub fn is_kubelets(path: &Path, kubelet_dirs: &[PathBuf]) -> bool {
    // The shortest path that kubelet gives to a volume: pods/<uid>/volumes/<plugin>/<name>.
    const FEWEST_PARTS: usize = 5;
    let is_below = |dir: &PathBuf| {
        path.strip_prefix(dir)
            .is_ok_and(|rest| rest.components().count() >= FEWEST_PARTS)
    };
    KubeletPath::of(path) != KubeletPath::Other || kubelet_dirs.iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_kubelets_directories_by_their_shape() {
        let global = "/k/plugins/kubernetes.io/flexvolume/example.com/lvm/mounts/data";
        let pod = KubeletPath::Pod {
            global: PathBuf::from(global),
        };
        let cases = [
            (global, KubeletPath::Global),
            ("/k/pods/1-2/volumes/example.com~lvm/data", pod),
            (
                "/k/pods/1-2/volumes/kubernetes.io-empty/data",
                KubeletPath::Other,
            ),
            ("/k/pods/1-2/volume-subpaths/data/c/0", KubeletPath::SubPath),
            ("/k/pods/1-2/volumes/example.com~lvm", KubeletPath::Other),
            ("/mnt", KubeletPath::Other),
            ("/", KubeletPath::Other),
        ];
        for (path, want) in cases {
            assert_eq!(KubeletPath::of(Path::new(path)), want, "{path}");
        }
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn a_volume_is_kubelets_and_what_holds_all_volumes_is_the_hosts() {
        let dirs = [PathBuf::from("/var/lib/kubelet")];
        let cases = [
            ("/var/lib/kubelet/plugins/kubernetes.io/local-volume/mounts/a", true),
            ("/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~local-volume/a", true),
            ("/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~csi/a/mount", true),
            ("/var/lib/kubelet", false),
            ("/var/lib/kubelet/pods", false),
            ("/var/lib/kubelet/plugins/kubernetes.io", false),
            ("/var/lib/kubelet/pods/1-2/volumes", false),
            ("/var/lib/kubelet-old/pods/1-2/x/y/z", false),
            ("/var", false),
        ];
        for (path, want) in cases {
            assert_eq!(is_kubelets(Path::new(path), &dirs), want, "{path}");
        }
    }
}
