//! `flexvolume-lvm export`: the objects by which a cluster uses volumes of this node, and the way to a CSI
//! driver and back. Changes nothing.

mod args;
mod back;
mod csi;
mod exporter;
mod flex;
mod out;
mod steps;
#[cfg(test)]
mod tests;
mod volume;
mod yaml;

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Result, bail};

use crate::output::{Printed, counted};
pub use args::{Export, Import};
pub use back::run as import;
use driver::config::Loaded;
use driver::host::Host;
use driver::lvm;
use driver::names::LvId;
use exporter::{Exporter, NotExported};
use volume::Exported;
pub use volume::object_name;
use yaml::comment;

/// Prints the objects of the volumes. The exit code is 1 if one of them is left out.
pub fn run(host: &Host, loaded: &Loaded, args: &Export) -> Result<Printed> {
    loaded.require()?;
    let exporter = Exporter::begin(host, loaded, &args.objects)?;
    let (choice, unknown) = exporter.inventory.choose_known(&args.names)?;
    let is_pool = |id: &LvId| {
        exporter
            .inventory
            .volume(id)
            .is_some_and(lvm::Volume::is_pool)
    };
    let ids: Vec<&LvId> = choice
        .ids
        .iter()
        .filter(|id| choice.named.contains(*id) || !is_pool(id))
        .collect();
    if let Some(to) = args.to {
        let ([id], "") = (&ids[..], &*unknown) else {
            bail!("--to takes one volume, as VG/LV");
        };
        let volume = match exporter.export(id, true) {
            Ok(volume) => volume,
            Err(why) => bail!("{}", why.of(id)),
        };
        if let Some(why) = to.refusal(&volume) {
            bail!("{id}: {why}");
        }
        let text = to.text(&volume, args.device_class.as_deref());
        return Ok(Printed::text(text));
    }
    if args.objects.claim.is_some() && ids.len() != 1 {
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
                notes.push_str(&comment(&format!("Left out: {}", why.of(id))));
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
