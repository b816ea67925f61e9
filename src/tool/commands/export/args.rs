//! The arguments of `export`.

use std::path::PathBuf;

use super::csi::Csi;
use super::volume::{ClaimName, object_name};

#[derive(Debug, Default, clap::Args)]
pub struct Export {
    /// Volumes and groups, as `status` takes them; --all stands for all of them
    #[arg(required_unless_present_any = ["all", "from"])]
    pub names: Vec<String>,
    /// Every volume of this node, such as for a cluster that was lost
    #[arg(long, conflicts_with_all = ["names", "claim", "to", "from"])]
    pub all: bool,
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
    /// The CSI driver that is to have the volume
    #[arg(long, value_name = "DRIVER")]
    pub to: Option<Csi>,
    /// The device class of TopoLVM that stands for the volume's group [default: its default one]
    #[arg(long, value_name = "NAME", value_parser = object_name, requires = "to")]
    pub device_class: Option<String>,
    /// Read a CSI driver's `PersistentVolume`, with its `LogicalVolume` or `LVMVolume`, and print the way back;
    /// - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    pub from: Option<PathBuf>,
}
