//! Recognises kubelet's directories, and mounts of kubelet and of container runtimes.

use std::path::{Component, Path, PathBuf};

use super::row::Row;
use super::table::Table;
use crate::host::Kernel;

/// The kinds of directories on which volumes are mounted, by kubelet's layout. Source: kubelet's
/// `pkg/volume/flexvolume/util.go` and `pkg/volume/util`.
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
    /// Any other path: of a person, of the host itself, or of kubelet's bind mounts.
    Other,
}

impl KubeletPath {
    pub fn is_global(&self) -> bool {
        *self == Self::Global
    }

    /// The kind of a path, by its last parts, since kubelet's root directory may be anywhere.
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
            _ => Self::Other,
        }
    }
}

/// Whether kubelet made this mount, and not the host for itself: the mount is in one of `kubelet_dirs`, as deep as
/// kubelet's mounts of volumes. The last parts of the path are no proof: a restored backup has them, too. The depth
/// matters, since a logical volume of the host may be mounted at kubelet's root directory itself, or at a directory in
/// it that serves all pods.
pub fn is_kubelets(kernel: &Kernel, table: &Table, row: &Row, kubelet_dirs: &[PathBuf]) -> bool {
    // A configured directory may be a link, which the table of mounts does not show, or be bound to another place.
    let mut real = kubelet_dirs
        .iter()
        .filter_map(|dir| kernel.real_path(dir).ok());
    (kubelet_dirs.iter()).any(|dir| is_deep_in(dir, &row.mount_point))
        || real.any(|dir| table.paths(row).any(|path| is_deep_in(&dir, &path)))
}

/// Whether a path in this directory of kubelet is as deep as that of a volume.
fn is_deep_in(dir: &Path, path: &Path) -> bool {
    // The shortest path that kubelet gives to a volume: pods/<uid>/volumes/<plugin>/<name>.
    const FEWEST_PARTS: usize = 5;
    path.strip_prefix(dir)
        .is_ok_and(|rest| rest.components().count() >= FEWEST_PARTS)
}

/// Whether a container runtime made this mount, to show the volume of a pod to a virtual machine: the mount is below
/// one of `runtime_dirs`, or a copy of one of kubelet's mounts of the volume.
pub fn is_runtimes(
    kernel: &Kernel,
    row: &Row,
    kubelets: &[&Row],
    runtime_dirs: &[PathBuf],
) -> bool {
    let at = &row.mount_point;
    let mut real = runtime_dirs
        .iter()
        .filter_map(|dir| kernel.real_path(dir).ok());
    runtime_dirs.iter().any(|dir| at.starts_with(dir))
        || real.any(|dir| at.starts_with(dir))
        || kubelets.iter().any(|one| row.is_copy_of(one))
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
            ("/k/pods/1-2/volume-subpaths/data/c/0", KubeletPath::Other),
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
        let kernel = Kernel::new().unwrap();
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        let dirs = [PathBuf::from("/var/lib/kubelet"), top.join("link")];
        let bound = top.join("real").display().to_string();
        let volume = "pods/1-2/volumes/kubernetes.io~lvm/a";
        let [linked, real] = ["link", "real"].map(|name| top.join(name).join(volume).display().to_string());
        let cases = [
            ("/var/lib/kubelet/plugins/kubernetes.io/local-volume/mounts/a", true),
            ("/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~local-volume/a", true),
            ("/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~csi/a/mount", true),
            ("/var/lib/kubelet", false),
            ("/var/lib/kubelet/pods", false),
            ("/var/lib/kubelet/plugins/kubernetes.io", false),
            ("/var/lib/kubelet/pods/1-2/volumes", false),
            ("/var/lib/kubelet-old/pods/1-2/x/y/z", false),
            ("/srv/restore/pods/1-2/volumes/kubernetes.io~lvm/a", false),
            ("/host/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~lvm/a", false),
            ("/srv/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/a", false),
            ("/var", false),
            (&linked, true),
            (&real, true),
            // Paths on a disk that is bound to kubelet's directory.
            ("/disk/kubelet/pods/1-2/volumes/kubernetes.io~lvm/a", true),
            ("/disk/kubelet/pods", false),
            ("/disk/other/pods/1-2/volumes/kubernetes.io~lvm/a", false),
        ];
        for (path, want) in cases {
            let table = Table::parse(&format!(
                "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /disk rw - ext4 /dev/b rw\n\
                 3 1 8:2 /kubelet {bound} rw - ext4 /dev/b rw\n\
                 4 {} 254:1 / {path} rw - ext4 /dev/c rw", if path.starts_with("/disk") { 2 } else { 1 },
            ));
            let row = table.by_id(4).unwrap();
            assert_eq!(is_kubelets(&kernel, &table, row, &dirs), want, "{path}");
        }
    }

    #[test]
    fn mounts_of_a_directory_that_is_bound_to_several_places_are_at_one_place() {
        let table = Table::parse(
            "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /disk rw - ext4 /dev/b rw\n\
             3 1 8:2 /k /kubelet rw - ext4 /dev/b rw\n4 3 9:1 / /kubelet/x rw - ext4 /dev/c rw\n\
             5 2 9:1 / /disk/k/x rw - ext4 /dev/c rw\n6 2 9:1 / /disk/x rw - ext4 /dev/c rw\n\
             7 1 9:1 / /k/x rw - ext4 /dev/c rw\n8 4 9:1 / /kubelet/x rw - ext4 /dev/c rw",
        );
        let at = |id| table.by_id(id).unwrap();
        let cases = [(4, true), (5, true), (6, false), (7, false), (8, false)];
        for (id, want) in cases {
            assert_eq!(table.are_at_one_place(at(4), at(id)), want, "{id}");
        }
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn copies_of_a_mount_are_in_its_group_or_follow_it() {
        let cases = [
            ("shared:7", "shared:7", true), ("shared:7", "master:7", true), ("master:7", "master:7", true),
            ("shared:8 master:7", "shared:7", true), ("shared:7", "shared:8", false), ("", "", false),
            ("shared:7", "", false), ("shared:7", "propagate_from:7 master:6", false), ("unbindable", "unbindable", false),
        ];
        for (one, other, want) in cases {
            let line = |id, group| format!("{id} 1 8:1 / /a rw {group} - ext4 /dev/x rw\n").replace("  ", " ");
            let table = Table::parse(&[line(2, one), line(3, other)].concat());
            let [one, other] = [2, 3].map(|id| table.by_id(id).unwrap());
            assert_eq!(one.is_copy_of(other), want, "{one:?} {other:?}");
        }
    }
}
