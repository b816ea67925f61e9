//! Creates a volume, if the node's config allows that.

use anyhow::{Result, bail};

use super::job::Job;
use crate::host::Lock;
use crate::lvm::{self, Found};
use crate::names::Bytes;
use crate::volume::device::Device;
use crate::volume::look::Made;
use crate::volume::subject::Subject;

/// Creates the volume under its group's lock. Returns the volume as lvcreate left it, or `None` if another node
/// was quicker or the kernel counts no writes.
pub fn create(job: &Job, size: Bytes, lock: &Lock) -> Result<Option<Made>> {
    let Subject { host, config, id } = job.subject;
    let Some(policy) = config.policy(id.vg())? else {
        bail!("no table of config.toml says how {id} is made");
    };
    let pool = job.wish(None).create.thin_pool().cloned();
    let mut more = policy.lvcreate_options.clone();
    // lvcreate activates the volume. If this call is killed, another must know which volume to give back.
    let name = job.options.volume_name.as_ref();
    if let Some(name) = name.filter(|_| lvm::has_lvmlockd(host)) {
        more.extend(["--addtag".to_owned(), lvm::volume_tag(name)]);
    }
    let made = lvm::create(host, id, size, pool.as_ref(), &more, lock);
    if made.is_err()
        && let Ok(Found::Volume(volume)) = lvm::find(host, id)
        && volume.lock.is_some()
    {
        // Another node was quicker.
        return Ok(None);
    }
    made?;
    // The group's lock is still held: no other call can create another volume of this name.
    let device = Device::find(host.kernel, id)?;
    Ok(device.and_then(|device| {
        // A kernel that did not count lvcreate's writes will not count those of others.
        let written = device.written(host.kernel).filter(|count| *count > 0)?;
        let lv_uuid = device.lv_uuid;
        Some(Made { lv_uuid, written })
    }))
}
