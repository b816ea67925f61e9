//! Making a volume on demand.

use anyhow::{Result, bail};

use super::activate::Job;
use super::lock;
use crate::lvm::{self, Found};
use crate::names::Bytes;

/// Makes the volume if there still is none of its name.
pub fn create(job: &Job, size: Bytes) -> Result<()> {
    let (host, config, options) = (job.host, job.config, job.options);
    let id = &options.id;
    let Some(policy) = config.policy(id.vg())? else {
        bail!("no table of config.toml says how {id} is made");
    };
    // Under a lock of the name: the volume has no UUID yet. Another call may have just made it.
    let lock = lock::hold_name(host.kernel, &id.dm_name(), config.limits.lock)?;
    if let Found::Volume(_) = lvm::find(host, id, config.limits.query)? {
        return Ok(());
    }
    let pool = options.thin_pool.as_ref().or(policy.thin_pool.as_ref());
    let made = lvm::create(host, &config.limits, id, size, pool, policy, &lock);
    if made.is_err()
        && let Ok(Found::Volume(volume)) = lvm::find(host, id, config.limits.query)
        && volume.lock.is_some()
    {
        // Another node was quicker.
        return Ok(());
    }
    made
}
