//! Making a volume on demand, and what the node's config says of its size.

use anyhow::{Result, bail};

use super::activate::Job;
use super::lock;
use crate::config::{Config, VolumeGroup};
use crate::host::Host;
use crate::lvm::{self, Found};
use crate::names::{Bytes, LvId};

/// Makes the volume if there still is none of its name.
///
/// # Errors
/// When the config keeps that space free, or LVM's reason.
pub fn create(job: &Job, size: Bytes) -> Result<()> {
    let Job {
        host,
        config,
        options,
    } = *job;
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
    if pool.is_none() {
        require_reserve(host, config, policy, id, size)?;
    }
    lvm::create(host, &config.limits, id, size, pool, policy, &lock)
}

/// Fails if growing or making a volume by `more` would use up what the config keeps free.
///
/// # Errors
/// The reason.
pub fn require_reserve(
    host: &Host,
    config: &Config,
    policy: &VolumeGroup,
    id: &LvId,
    more: Bytes,
) -> Result<()> {
    let reserve = policy.reserve;
    if reserve.get() == 0 {
        return Ok(());
    }
    let Some(group) = lvm::find_group(host, id.vg(), config.limits.query)? else {
        bail!("the volume group {} has just gone", id.vg());
    };
    if group.free.get().saturating_sub(more.get()) < reserve.get() {
        bail!(
            "{id} needs {more} more; {} has {} free, and the node's config keeps {reserve} of it \
             (`reserve`)",
            id.vg(),
            group.free
        );
    }
    Ok(())
}
