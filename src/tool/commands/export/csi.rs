//! The CSI drivers that a volume can be handed to: what differs with them, and what they cannot have.
//!
//! Source: TopoLVM v0.41.0, OpenEBS LVM LocalPV v1.5.0, csi-driver-lvm v0.8.2.

use clap::ValueEnum;

use super::volume::{Exported, object_name};
use driver::host::own_name;
use driver::names::FsType;

/// Stands for the UID that the API server gives to a `LogicalVolume`.
pub const UID: &str = "UID-OF-THE-LOGICALVOLUME";
/// Where OpenEBS is installed, unless somebody chose otherwise.
pub const OPENEBS: &str = "openebs";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Csi {
    /// TopoLVM
    Topolvm,
    /// OpenEBS LVM LocalPV
    LvmLocalpv,
    /// csi-driver-lvm of metal-stack
    #[value(name = "csi-driver-lvm")]
    DriverLvm,
}

impl Csi {
    pub const ALL: [Self; 3] = [Self::Topolvm, Self::LvmLocalpv, Self::DriverLvm];

    pub fn shown(self) -> &'static str {
        match self {
            Self::Topolvm => "TopoLVM",
            Self::LvmLocalpv => "OpenEBS LVM LocalPV",
            Self::DriverLvm => "csi-driver-lvm",
        }
    }

    /// Its name in `PersistentVolumes`.
    pub fn driver(self) -> &'static str {
        match self {
            Self::Topolvm => "topolvm.io",
            Self::LvmLocalpv => "local.csi.openebs.io",
            Self::DriverLvm => "lvm.csi.metal-stack.io",
        }
    }

    /// Its label of nodes.
    pub fn key(self) -> &'static str {
        match self {
            Self::Topolvm => "topology.topolvm.io/node",
            Self::LvmLocalpv => "openebs.io/nodename",
            Self::DriverLvm => "topology.lvm.csi/node",
        }
    }

    /// How it differs from this driver, a line each.
    pub fn differences(self) -> &'static [&'static str] {
        match self {
            Self::Topolvm => &[
                "each mount makes the root of the filesystem 2777: what refuses that, such as PostgreSQL, needs \
                 a subdirectory or a chmod",
                "no fsck; ext and xfs grow to the volume's size at each mount; xfs is mounted with nouuid",
                "a volume in which blkid finds no filesystem is wiped and formatted",
                "with reclaim policy Delete, or if its LogicalVolume is deleted: lvremove",
            ],
            Self::LvmLocalpv => &[
                "fsck -a before a mount; a filesystem does not grow at a mount, but by its claim",
                "a second pod on the node needs `shared: \"yes\"` in the LVMVolume",
                "an empty volume is formatted, and one that is not active counts as missing",
                "with reclaim policy Delete, or if its LVMVolume is deleted: wipefs and lvremove",
            ],
            Self::DriverLvm => &[
                "each mount makes the root of the filesystem 2777: what refuses that, such as PostgreSQL, needs \
                 a subdirectory or a chmod",
                "mount options and readOnly are ignored; no fsck; unmounts are lazy and by force",
                "a volume of which lsblk in its container names no filesystem is formatted",
                "with reclaim policy Delete: lvremove",
            ],
        }
    }

    /// Why it cannot have the volume.
    pub fn refusal(self, volume: &Exported) -> Option<String> {
        let (id, lv) = (&volume.id, volume.id.lv().as_str());
        let rename = |why: &str| {
            let own = own_name();
            Some(format!(
                "{why}: `{own} rename {id} NAME` first, while no pod has it"
            ))
        };
        match self {
            _ if volume.node.is_none() => Some(format!(
                "nodes share the group {}, and no CSI driver here activates a volume under its lock: it stays",
                id.vg()
            )),
            _ if volume.is_encrypted => Some(format!(
                "{id} is encrypted, and {} opens no such volume: copy its data to a new one",
                self.shown()
            )),
            _ if !volume.is_seen => Some(format!(
                "no whole filesystem was seen on it, and {} may format it: let a pod mount it once, which makes \
                 or repairs one, or run `lvchange -ay {id}` if it is not active",
                self.shown()
            )),
            Self::Topolvm if volume.fs == FsType::Ext2 => {
                Some("TopoLVM fails to mount ext2: it stays".to_owned())
            }
            Self::LvmLocalpv if object_name(lv).is_err() => {
                rename("its LVMVolume has the volume's name, which Kubernetes does not take")
            }
            Self::DriverLvm if lv.starts_with("csi-") => {
                rename("csi-driver-lvm removes volumes called csi-… when their pod ends")
            }
            _ => None,
        }
    }
}
