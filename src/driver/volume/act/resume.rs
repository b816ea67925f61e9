//! Resumes a volume that a killed LVM command left suspended: every access to it would wait for ever.

use anyhow::Result;

use crate::host::{Kernel, Lock};
use crate::lvm;
use crate::volume::decide::{Reason, Refusal};
use crate::volume::device::Device;
use crate::volume::job::Subject;
use crate::volume::lock;

/// Fails if the volume is suspended. If a killed lvextend left it so, first resumes it under its lock, unless it
/// is encrypted: LVM cannot be asked then. `held`: that lock, if the caller has it.
pub fn ensure_not_suspended(subject: Subject, device: &Device, held: Option<&Lock>) -> Result<()> {
    let Subject { host, config, id } = subject;
    let kernel = host.kernel;
    if device.luks.is_some() {
        return require_not_suspended(kernel, device);
    }
    if device.is_suspended(kernel) && lvm::has_unused_table(host, id)? {
        let own = held.is_none();
        let own = own.then(|| lock::hold(kernel, device.target(), config.limits.lock));
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
    require_not_suspended(kernel, device)
}

/// Fails if every read and write of the device would wait.
fn require_not_suspended(kernel: &Kernel, device: &Device) -> Result<()> {
    let Some(name) = device.suspended(kernel) else {
        return Ok(());
    };
    let reason = match device.luks {
        Some(_) => Reason::SuspendedInside(name),
        None => Reason::Suspended(name),
    };
    Err(Refusal::of(&device.id, reason).into())
}
