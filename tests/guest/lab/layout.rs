//! The layouts of kubelet's directory: a link, a bound directory, or a mount of its own.

use crate::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    Plain,
    /// A link to a directory of another disk.
    Linked,
    /// Bound from another disk. Mounts below it are seen at both places.
    Bound,
    /// A mount of its own. Other namespaces see the mounts below it.
    Shared,
    /// A mount of its own. No other namespace sees the mounts below it.
    Private,
}

pub const LAYOUTS: [Layout; 5] = {
    use Layout::{Bound, Linked, Plain, Private, Shared};
    [Plain, Linked, Bound, Shared, Private]
};

impl Layout {
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Gives this layout to a node, until the returned values are dropped.
    pub fn of(self, node: &Node) -> Vec<Finally> {
        let (kubelet, disk) = (text(node.kubelet_dir()), other_disk(node));
        let unmounted = |dir: &str| Finally(format!("umount -R {dir}"));
        let other = format!(
            "mkdir {disk}; mount -t tmpfs none {disk}; mount --make-shared {disk}; mkdir {disk}/kubelet"
        );
        let own = format!("mount --bind {kubelet} {kubelet}; mount --make");
        match self {
            Self::Plain => Vec::new(),
            Self::Linked => {
                let link = format!("{other}; rm -r {kubelet}; ln -s {disk}/kubelet {kubelet}");
                bash(&link);
                vec![unmounted(&disk)]
            }
            Self::Bound => {
                bash(&format!("{other}; mount --bind {disk}/kubelet {kubelet}"));
                vec![unmounted(kubelet), unmounted(&disk)]
            }
            Self::Shared => {
                bash(&format!("{own}-rshared {kubelet}"));
                vec![unmounted(kubelet)]
            }
            Self::Private => {
                bash(&format!("{own}-rprivate {kubelet}"));
                vec![unmounted(kubelet)]
            }
        }
    }
}

/// Where another disk is mounted. Its directory `kubelet` may be kubelet's directory.
pub fn other_disk(node: &Node) -> String {
    format!("{}.disk", text(node.kubelet_dir()))
}

impl Node {
    /// Brings the volume up as [`Self::up`] does, wherever kubelet's directory is.
    #[track_caller]
    pub fn bring(&self, pod: &str, volume: &Volume) {
        let json = volume.json();
        if self.mode == Mode::Attach {
            self.does(&["attach", &json, &host_name()]);
            let global = precreated(self.global_dir(volume));
            self.does(&["mountdevice", text(&global), &volume.device(), &json]);
        }
        self.mount(pod, volume).is_success();
    }

    /// Takes the volume from these pods, which are its last pods.
    #[track_caller]
    pub fn take(&self, pods: &[&str], volume: &Volume) {
        for pod in pods {
            self.does(&["unmount", text(&self.pod_dir(pod, volume))]);
        }
        if self.mode == Mode::Attach {
            self.does(&["unmountdevice", text(&self.global_dir(volume))]);
        }
        assert_eq!(seen(volume), 0);
    }
}

/// At how many places the volume is mounted.
pub fn seen(volume: &Volume) -> usize {
    let all = mounts();
    let (outer, inner) = (volume.device(), volume.mounted());
    let its = |one: &&Mount| one.source == outer || one.source == inner;
    all.iter().filter(its).count()
}
