//! Tags a volume with kubelet's name of it, since `detach` and a repeated `unmount` get only this name.

use anyhow::Result;

use crate::host::Lock;
use crate::lvm::{self, Found, Tags, Volume};
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
        let found;
        let volume = match known {
            Some(volume) => volume,
            None => match lvm::find(host, id)? {
                Found::Volume(volume) => {
                    found = volume;
                    &found
                }
                Found::Hidden | Found::NoVolume | Found::NoGroup => return Ok(()),
            },
        };
        // If LVM's metadata changes while a disk is missing, that disk is stale when it comes back. Without the tag,
        // the volume stays active after its last unmount, which matters only to other nodes.
        let is_shared = volume.lock.is_some();
        if is_shared || (config.deactivate && volume.missing == 0) {
            self.tag_kubelets_name(volume, None)?;
        }
        Ok(())
    }

    /// Writes the tag with kubelet's name, unless the volume has it already.
    pub(super) fn tag_kubelets_name(&self, volume: &Volume, lock: Option<&Lock>) -> Result<()> {
        let name = self.options.volume_name.as_ref();
        let tag = name.map(lvm::volume_tag);
        let Some(tag) = tag.filter(|tag| !volume.record.tags.contains(tag)) else {
            return Ok(());
        };
        let tags = Tags {
            add: vec![tag],
            ..Tags::default()
        };
        lvm::retag(self.subject.host, volume.target(), &tags, lock)
    }
}
