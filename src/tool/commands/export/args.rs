//! The arguments of `export` and `import`.

use std::path::PathBuf;

use super::csi::Csi;
use super::volume::{ClaimName, object_name};

#[derive(Debug, Default, clap::Args)]
pub struct Export {
    /// Volumes and groups, as `status` takes them; --all stands for all of them
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Every volume of this node, such as for a cluster that was lost
    #[arg(long, conflicts_with_all = ["names", "claim", "to"])]
    pub all: bool,
    #[command(flatten)]
    pub objects: Objects,
    /// The CSI driver that is to have the volume
    #[arg(long, value_name = "DRIVER")]
    pub to: Option<Csi>,
    /// The device class of TopoLVM that stands for the volume's group [default: its default one]
    #[arg(long, value_name = "NAME", value_parser = object_name, requires = "to")]
    pub device_class: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Import {
    /// The CSI driver's `PersistentVolume`, with its `LogicalVolume` or `LVMVolume`; - for standard input
    pub file: PathBuf,
    /// The driver's volume group, where several have a volume of that name
    pub vg: Option<String>,
    #[command(flatten)]
    pub objects: Objects,
}

/// The names in the objects.
#[derive(Debug, Default, clap::Args)]
pub struct Objects {
    /// The claim that is to have the volume; without it one of the volume's name, in the namespace of the pod
    /// that had it last
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = ClaimName::parse)]
    pub claim: Option<ClaimName>,
    /// The `StorageClass` of both; growth needs one with allowVolumeExpansion [default: none]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub class: Option<String>,
    /// The name of this node in the cluster [default: `node_name` in config.toml, kubelet's --hostname-override,
    /// the host's name]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub node: Option<String>,
}
