use std::sync::Arc;

use anyhow::{Context, Result};

use super::FLUSH;
use crate::config::Limits;
use crate::device::Device;
use crate::host::{Command, Effect, Host, ToolError};

/// Has the disk keep what was written to the device, also if the power goes now. LVM does not ask
/// for that when it has wiped a new volume. A process of its own does it: a disk may never answer.
///
/// # Errors
/// The disk's, or that it does not answer.
pub fn flush(host: &Host, limits: &Limits, device: &Device) -> Result<()> {
    let file = host
        .kernel
        .open_device(&device.path, false)
        .with_context(|| format!("opening {}", device.path.display()))?;
    let command = Command::myself(FLUSH, Effect::Reads, limits.query).stdin(Arc::new(file));
    match host.run(&command) {
        Ok(_) => Ok(()),
        Err(error @ (ToolError::Failed { .. } | ToolError::TimedOut { .. })) => Err(error)
            .with_context(|| {
                format!(
                    "the disk of {0} does not keep what is written to it; mend it (`dmesg`, `pvs`, \
                     `lvs -a -o +devices {0}`)",
                    device.id
                )
            }),
        Err(error) => Err(error).with_context(|| format!("flushing {}", device.path.display())),
    }
}
