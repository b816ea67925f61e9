//! `flexvolume-lvm export`: the objects by which a cluster uses volumes of this node, and the way to a CSI
//! driver and back. Changes nothing.

mod back;
mod csi;
mod flex;
mod look;
mod steps;
#[cfg(test)]
mod tests;
mod volume;
mod yaml;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::config::Loaded;
use crate::host::Host;
use crate::lvm;
use crate::names::LvId;
use crate::output::{Printed, counted};
use csi::Csi;
use look::{Exporter, NotExported};
pub use volume::object_name;
use volume::{ClaimName, Exported};
use yaml::comment;

#[derive(Debug, Default, clap::Args)]
pub struct Export {
    /// Volumes and groups, as `status` takes them
    #[arg(required_unless_present_any = ["all", "from"])]
    names: Vec<String>,
    /// Every volume of this node, such as for a cluster that was lost
    #[arg(long, conflicts_with_all = ["names", "claim", "to", "from"])]
    all: bool,
    /// The claim that is to have the volume; without it one of the volume's name, in the namespace of the pod
    /// that had it last
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = ClaimName::parse)]
    claim: Option<ClaimName>,
    /// The `StorageClass` of both; growth needs one with allowVolumeExpansion [default: none]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    class: Option<String>,
    /// What the cluster calls this node [default: `node_name` in config.toml, kubelet's --hostname-override,
    /// the host's name]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    node: Option<String>,
    /// The CSI driver that is to have the volume
    #[arg(long, value_name = "DRIVER")]
    to: Option<Csi>,
    /// The device class of TopoLVM that stands for the volume's group [default: its default one]
    #[arg(long, value_name = "NAME", value_parser = object_name, requires = "to")]
    device_class: Option<String>,
    /// Read a CSI driver's `PersistentVolume`, with its `LogicalVolume` or `LVMVolume`, and print the way back;
    /// - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    from: Option<PathBuf>,
}

/// Prints the objects of the volumes. The exit code is 1 if one of them is left out.
pub fn run(host: &Host, loaded: &Loaded, asked: &Export) -> Result<Printed> {
    loaded.require()?;
    let exporter = Exporter::begin(host, loaded, asked)?;
    if let Some(file) = &asked.from {
        return back::run(&exporter, file);
    }
    let (choice, unknown) = exporter.walk.choose_known(&asked.names)?;
    let is_pool = |id: &LvId| exporter.walk.volume(id).is_some_and(lvm::Volume::is_pool);
    let ids: Vec<&LvId> = choice
        .ids
        .iter()
        .filter(|id| choice.named.contains(*id) || !is_pool(id))
        .collect();
    if let Some(to) = asked.to {
        let ([id], "") = (&ids[..], &*unknown) else {
            bail!("--to takes one volume, as VG/LV");
        };
        return match exporter.export(id, true) {
            Ok(volume) => to.handover(&exporter, &volume).map(Printed::text),
            Err(why) => bail!("{}", of(id, why.message())),
        };
    }
    if asked.claim.is_some() && ids.len() != 1 {
        bail!(
            "--claim takes one volume, as VG/LV, and not {}",
            counted(ids.len(), "volume")
        );
    }
    let mut taken = BTreeSet::new();
    let (mut notes, mut objects, mut left_out) = (exporter.title(), String::new(), 0_usize);
    for id in ids {
        let found = exporter.export(id, choice.named.contains(id));
        match found.and_then(|volume| new(volume, &mut taken)) {
            Ok(volume) => {
                objects.push_str(&comment(&format!("{id}:")));
                objects.push_str(&flex::notes(&volume, &exporter.driver));
                objects.push_str(&flex::objects(&volume, &exporter.driver));
            }
            Err(why) => {
                left_out = left_out.saturating_add(usize::from(why.counts()));
                notes.push_str(&comment(&format!("Left out: {}", of(id, why.message()))));
            }
        }
    }
    let mut printed = Printed::text(format!("{notes}{objects}"));
    printed.stderr = unknown;
    if left_out > 0 {
        let number = counted(left_out, "volume");
        let _ = writeln!(printed.stderr, "{number} left out; the comments say why");
    }
    printed.code = u8::from(!printed.stderr.is_empty());
    Ok(printed)
}

/// Most messages begin with the volume.
fn of(id: &LvId, message: &str) -> String {
    if message.starts_with(&id.to_string()) {
        return message.to_owned();
    }
    format!("{id}: {message}")
}

/// Two volumes may come by one name where Kubernetes takes fewer letters than LVM.
fn new(volume: Exported, taken: &mut BTreeSet<String>) -> Result<Exported, NotExported> {
    for name in [volume.object.clone(), volume.claim.to_string()] {
        if !taken.insert(name.clone()) {
            return Err(NotExported::Refused(format!(
                "another volume has the name {name} already; export this one alone, with --claim"
            )));
        }
    }
    Ok(volume)
}
