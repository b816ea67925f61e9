//! Tags a volume with kubelet's name of it, since `detach` and a repeated `unmount` get only this name.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use anyhow::Result;

use crate::host::{Kernel, Lock};
use crate::lvm::{self, Volume};
use crate::mount::Table;
use crate::volume::device::Device;
use crate::volume::job::Job;
use crate::volume::subject::Subject;

impl Job<'_> {
    /// Writes the tag with kubelet's name, if the last unmount may deactivate the volume: because the config says so,
    /// or because nodes share the group. A failure is only logged. `known`: LVM's row of the volume, if LVM was asked.
    /// With `None`, LVM is asked if the config has `deactivate`, or if this node has lvmlockd.
    pub fn tag_kubelets_name_if_needed(&self, known: Option<&Volume>) {
        let Subject { host, config, .. } = self.subject;
        let may_be = config.deactivate || lvm::has_lvmlockd(host);
        if self.options.volume_name.is_none() || !may_be {
            return;
        }
        if let Err(error) = self.tag_if_deactivated_later(known) {
            host.log.about("unnoted", &format!("{error:#}"));
        }
    }

    fn tag_if_deactivated_later(&self, known: Option<&Volume>) -> Result<()> {
        let Subject { host, config, id } = self.subject;
        let asked = match known {
            Some(_) => None,
            None => lvm::find(host, id)?.volume(),
        };
        let Some(volume) = known.or(asked.as_deref()) else {
            return Ok(());
        };
        // If LVM's metadata changes while a disk is missing, that disk is stale when it comes back. Without the tag,
        // the volume stays active after its last unmount, which matters only to other nodes.
        let is_shared = volume.lock.is_some();
        if is_shared || (config.deactivate && volume.group.missing == 0) {
            self.tag_kubelets_name(volume, None)?;
        }
        Ok(())
    }

    /// Writes the tag with kubelet's name, unless the volume has it already. The same change of LVM's metadata removes
    /// the names under which nothing is mounted.
    pub(super) fn tag_kubelets_name(&self, volume: &Volume, lock: Option<&Lock>) -> Result<()> {
        let Some(name) = &self.options.volume_name else {
            return Ok(());
        };
        let names = &volume.record.names;
        if names.iter().any(|known| known == name.as_str()) {
            return Ok(());
        }
        let Subject { host, .. } = self.subject;
        let used = if names.is_empty() {
            BTreeSet::new()
        } else {
            mounted_names(host.kernel, volume)?
        };
        let is_used = |name: &str| used.contains(OsStr::new(name));
        let tags = volume.record.naming(name, is_used);
        lvm::retag(host, volume.target(), &tags, lock)
    }
}

/// The last parts of the paths at which the volume is mounted: kubelet's directories are named after the volume.
fn mounted_names(kernel: &Kernel, volume: &Volume) -> Result<BTreeSet<OsString>> {
    let Some(device) = Device::find(kernel, &volume.id)? else {
        return Ok(BTreeSet::new());
    };
    let top = device.inside(kernel).unwrap_or(device);
    let table = Table::read(kernel)?;
    let rows = table.of_device(top.number).into_iter();
    let names = rows.filter_map(|row| row.mount_point.file_name());
    Ok(names.map(OsStr::to_owned).collect())
}
