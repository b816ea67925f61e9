use anyhow::Result;

use crate::config::Config;
use crate::device::Device;
use crate::host::Host;
use crate::lvm;

/// Fails for a volume that is suspended, because every access to it would wait for ever.
///
/// One that an LVM command left like that, because it was killed in the middle of lvextend, is
/// resumed. Such a command leaves a table that it did not come to use; who suspends a volume by
/// hand leaves none, and is left alone.
///
/// # Errors
/// When it is suspended by somebody else, or cannot be resumed.
pub fn ensure_not_suspended(host: &Host, config: &Config, device: &Device) -> Result<()> {
    let kernel = host.kernel;
    if device.is_suspended(kernel)
        && lvm::has_unused_table(host, &device.id, config.limits.query)?
        // That waited for a command which was still at work, and has resumed it.
        && device.is_suspended(kernel)
    {
        host.log.about("resumed", &device.id.to_string());
        lvm::refresh(host, &config.limits, &device.id)?;
    }
    device.require_not_suspended(kernel)
}
