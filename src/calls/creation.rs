//! Making a volume on demand, and what the node's config says of its size.

use anyhow::{Result, anyhow, bail};

use crate::config::{Config, VolumeGroup};
use crate::host::Host;
use crate::lock;
use crate::lvm::{self, Found};
use crate::names::Bytes;
use crate::names::LvId;
use crate::options::Options;

/// Makes the volume if there is none of its name.
///
/// # Errors
/// When there is no size, or the config or LVM does not allow it.
pub fn create(host: &Host, config: &Config, policy: &VolumeGroup, options: &Options) -> Result<()> {
    let id = &options.id;
    let Some(size) = options.size else {
        bail!("there is no logical volume {id}, and none is made without the option `size`");
    };
    if options.read_only {
        bail!(
            "there is no logical volume {id}, and none is made for a read-only volume, which would \
             stay blank; mount it for writing once, or name another"
        );
    }
    require_max_size(config, id, size)?;
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

/// Fails if the config allows no volume of this size.
///
/// # Errors
/// The reason.
pub fn require_max_size(config: &Config, id: &LvId, size: Bytes) -> Result<()> {
    let largest = config.policy(id.vg())?.and_then(|policy| policy.max_size);
    match largest.filter(|largest| size > *largest) {
        Some(largest) => bail!(
            "{size} is asked for {id}, but the node's config allows at most {largest} for a volume \
             in {} (`max_size`)",
            id.vg()
        ),
        None => Ok(()),
    }
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
        return Err(anyhow!("the volume group {} has just gone", id.vg()));
    };
    if group.free.get().saturating_sub(more.get()) < reserve.get() {
        bail!(
            "{more} more for {id} would leave less than {reserve} of the {} that are free in {}, \
             and the node's config keeps that (`reserve`)",
            group.free,
            id.vg()
        );
    }
    Ok(())
}
