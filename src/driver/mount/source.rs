//! What is to be mounted, and commands on it for a person.

use crate::host::{DeviceNumber, Node, own_name};
use crate::names::{Filesystem, FsType, LvId, Shown};
use crate::options::MountOptions;

#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub id: &'a LvId,
    pub node: &'a Node,
    pub number: DeviceNumber,
    pub filesystem: &'a Filesystem,
    pub options: &'a MountOptions,
    pub read_only: bool,
    /// This very call has made its filesystem.
    pub is_new: bool,
}

/// A command on the filesystem of a volume, for a person. An encrypted volume is closed by then.
pub fn by_hand(id: &LvId, node: &Node, command: &str) -> String {
    let device = id.device();
    let shown = device.shown();
    if node.name == device {
        return format!("`{command} {shown}`");
    }
    format!(
        "`cryptsetup open {shown} repair`, `{command} /dev/mapper/repair` and `cryptsetup close repair`"
    )
}

/// Advice for a filesystem that mkfs of a node has made, and that no kernel may have mounted.
pub fn without_data(fs: FsType, id: &LvId, encrypted: bool) -> String {
    let empty = if encrypted {
        format!("remove the volume (`lvremove {id}`) and create it anew")
    } else {
        let device = id.device();
        let (device, me) = (device.shown(), own_name());
        format!("run `wipefs --all {device} && {me} allow-format {id}`")
    };
    format!(
        "If the driver has made it and no pod has had it, nothing is in it: have mkfs make what this kernel mounts \
         (`mkfs_options` of {fs} in config.toml), and {empty}"
    )
}
