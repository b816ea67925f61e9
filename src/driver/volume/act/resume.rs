//! Resumes a volume that a killed LVM command left suspended: every access to it would wait for ever.

use anyhow::Result;

use crate::host::{Kernel, Lock};
use crate::lvm;
use crate::volume::decide::{Reason, Refusal};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::subject::Subject;

/// Fails if the volume is suspended. If a killed lvextend left it so, first resumes it under its lock. `held`:
/// that lock, if the caller has it.
pub fn ensure_not_suspended(subject: Subject, top: &Device, held: Option<&Lock>) -> Result<()> {
    let Subject { host, config, id } = subject;
    let kernel = host.kernel;
    // What LVM suspends is below the device inside an encrypted volume.
    let outside = top.outside(kernel)?;
    let device = outside.as_ref().unwrap_or(top);
    if device.is_suspended(kernel) && lvm::has_unused_table(host, id)? {
        let own = held.is_none();
        let own = own.then(|| lock::hold(kernel, device, config.limits.lock));
        let own = own.transpose()?;
        // Looks again: a running command may have resumed it by now, or an operator may have suspended it
        // again, which leaves no unused table.
        if let Some(lock) = held.or(own.as_ref())
            && device.is_suspended(kernel)
            && (held.is_some() || lvm::has_unused_table(host, id)?)
        {
            host.log.about("resumed", &id.to_string());
            lvm::refresh(host, device.target(), lock)?;
        }
    }
    require_not_suspended(kernel, top)
}

/// Fails if every read and write of the device would wait.
fn require_not_suspended(kernel: &Kernel, device: &Device) -> Result<()> {
    match device.suspended(kernel) {
        None => Ok(()),
        Some(name) => Err(Refusal::of(&device.id, Reason::Suspended(name)).into()),
    }
}
