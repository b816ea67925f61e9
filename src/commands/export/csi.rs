//! The CSI drivers that a volume can be handed to: their objects, and what they would not do with it.
//!
//! Source: TopoLVM v0.41.0, OpenEBS LVM LocalPV v1.5.0, csi-driver-lvm v0.8.2.

use anyhow::{Result, bail};
use clap::ValueEnum;

use super::look::Exporter;
use super::steps;
use super::volume::{Exported, object_name};
use super::yaml::{PART, claim, comment, comment_as_it_is, persistent_volume, quoted};
use crate::host::own_name;
use crate::names::FsType;

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

    /// What differs with it from this driver, a line each.
    fn differences(self) -> &'static [&'static str] {
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

    /// The objects of the handover, and its steps.
    pub fn handover(self, exporter: &Exporter, volume: &Exported) -> Result<String> {
        let id = &volume.id;
        if let Some(why) = self.refusal(volume) {
            bail!("{id}: {why}");
        }
        let device_class = exporter.asked.device_class.as_deref();
        Ok(self.text(volume, device_class))
    }

    pub fn text(self, volume: &Exported, device_class: Option<&str>) -> String {
        // Both PersistentVolumes are there for a while.
        let suffix = self
            .to_possible_value()
            .map(|value| value.get_name().to_owned());
        let object = format!("{}.{}", volume.object, suffix.unwrap_or_default());
        let volume = Exported {
            object,
            ..volume.clone()
        };
        let differences = self.differences().iter().map(|line| format!("- {line}\n"));
        let differences: String = differences.collect();
        let differences = format!(
            "\nWhat differs with {}:\n{differences}- it activates no volume: LVM must do so when the node starts; no ReadWriteMany\n",
            self.shown()
        );
        [
            comment_as_it_is(&steps::out(self, &volume)),
            comment(&differences),
            self.object(&volume, device_class).unwrap_or_default(),
            self.persistent_volume(&volume),
            claim(&volume),
        ]
        .concat()
    }

    fn persistent_volume(self, volume: &Exported) -> String {
        let options = volume.mount_options.as_deref().unwrap_or_default();
        let options: Vec<String> = options
            .split(',')
            .filter(|one| !one.is_empty())
            .map(quoted)
            .collect();
        let options = if options.is_empty() {
            String::new()
        } else {
            format!("  mountOptions: [{}]\n", options.join(", "))
        };
        let handle = match self {
            Self::Topolvm => UID,
            Self::LvmLocalpv | Self::DriverLvm => volume.id.lv().as_str(),
        };
        let source = format!(
            "{options}  csi:
    driver: {}
    volumeHandle: {}
    fsType: {}
",
            self.driver(),
            quoted(handle),
            volume.fs
        );
        persistent_volume(volume, self.key(), &source)
    }

    /// What stands for the volume beside its `PersistentVolume`.
    fn object(self, volume: &Exported, device_class: Option<&str>) -> Option<String> {
        let (name, node) = (&volume.object, quoted(volume.node.as_deref()?));
        let (vg, lv) = (volume.id.vg().as_str(), quoted(volume.id.lv().as_str()));
        let bytes = volume.size.get();
        let class = device_class.map_or_else(String::new, |class| {
            format!("  deviceClass: {}\n", quoted(class))
        });
        match self {
            // With this annotation its agent leaves it alone, else it would make a new, empty volume.
            Self::Topolvm => Some(format!(
                "---
apiVersion: topolvm.io/v1
kind: LogicalVolume
metadata:
  name: {}
  labels: {{{PART}: object}}
  annotations: {{topolvm.io/pendingdeletion: \"true\"}}
spec:
  name: {lv}
  nodeName: {node}
{class}  size: \"{bytes}\"
",
                quoted(name)
            )),
            // Ready: its agent makes nothing.
            Self::LvmLocalpv => Some(format!(
                "---
apiVersion: local.openebs.io/v1alpha1
kind: LVMVolume
metadata:
  name: {lv}
  namespace: {OPENEBS}
  labels: {{kubernetes.io/nodename: {node}, {PART}: object}}
  finalizers: [lvm.openebs.io/finalizer]
spec:
  ownerNodeID: {node}
  volGroup: {}
  vgPattern: {}
  capacity: \"{bytes}\"
  shared: \"{}\"
  thinProvision: \"{}\"
status:
  state: Ready
",
                quoted(vg),
                quoted(&format!("^{}$", vg.replace('.', "\\.").replace('+', "\\+"))),
                yes_if(volume.users.len() > 1),
                yes_if(volume.is_thin),
            )),
            Self::DriverLvm => None,
        }
    }
}

fn yes_if(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}
