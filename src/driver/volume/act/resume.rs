//! A volume that is suspended: every access to it would wait without end.

use anyhow::Result;

use crate::host::{Kernel, Lock};
use crate::lvm;
use crate::volume::decide::{Reason, Refusal};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::subject::Subject;

/// Fails for a volume that is suspended. One that a killed lvextend left like that is resumed, under its
/// lock, which is waited for unless the caller has it.
pub fn ensure_not_suspended(subject: Subject, device: &Device, held: Option<&Lock>) -> Result<()> {
    let Subject { host, config, id } = subject;
    let kernel = host.kernel;
    if device.is_suspended(kernel) && lvm::has_unused_table(host, id)? {
        let own = held.is_none();
        let own = own.then(|| lock::hold(kernel, device, config.limits.lock));
        let own = own.transpose()?;
        // LVM waited for a command that was still at work, and that has resumed it. While the lock was
        // waited for, an operator may have suspended it again, which leaves no table.
        if let Some(lock) = held.or(own.as_ref())
            && device.is_suspended(kernel)
            && (held.is_some() || lvm::has_unused_table(host, id)?)
        {
            host.log.about("resumed", &id.to_string());
            lvm::refresh(host, device.target(), lock)?;
        }
    }
    require_not_suspended(kernel, device)
}

/// Fails if every read and write of it would wait.
fn require_not_suspended(kernel: &Kernel, device: &Device) -> Result<()> {
    match device.suspended(kernel) {
        None => Ok(()),
        Some(name) => Err(Refusal::of(&device.id, Reason::Suspended(name)).into()),
    }
}
