//! Creates a volume, where the node's config allows that.

use anyhow::{Result, bail};

use super::job::Job;
use crate::host::Lock;
use crate::lvm::{self, Found};
use crate::names::Bytes;
use crate::volume::device::Device;
use crate::volume::look::Made;
use crate::volume::subject::Subject;

/// Makes the volume, under its group's lock. Returns it as lvcreate left it, if this call made it.
pub fn create(job: &Job, size: Bytes, lock: &Lock) -> Result<Option<Made>> {
    let Subject { host, config, id } = job.subject;
    let Some(policy) = config.policy(id.vg())? else {
        bail!("no table of config.toml says how {id} is made");
    };
    let pool = job.wish(None).create.thin_pool().cloned();
    let mut more = policy.lvcreate_options.clone();
    // lvcreate activates it. If this call is killed, another has to know what to give back.
    let name = job.options.volume_name.as_deref().and_then(lvm::volume_tag);
    if let Some(tag) = name.filter(|_| lvm::has_lvmlockd(host)) {
        more.extend(["--addtag".to_owned(), tag]);
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
    // Still under the lock of the group: no other call makes another one.
    let device = Device::find(host.kernel, id)?;
    Ok(device.and_then(|device| {
        // A kernel that has not counted what lvcreate wrote will not count what others write.
        let written = device.written(host.kernel).filter(|count| *count > 0)?;
        let lv_uuid = device.lv_uuid;
        Some(Made { lv_uuid, written })
    }))
}
