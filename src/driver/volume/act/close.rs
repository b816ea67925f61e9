//! Closes an encrypted volume.

use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::config::Config;
use crate::crypt;
use crate::failed_step::FailedStep;
use crate::host::{Host, Lock};
use crate::volume::decide::{Reason, users};
use crate::volume::device::Device;
use crate::volume::kernel_tables::all_inside;
use crate::volume::lock;
use crate::volume::look::Look;
use crate::volume::subject::Subject;

/// Closes an encrypted volume that nothing uses any more. Waits up to `patience` for another call that works on the
/// volume. If `patience` is zero, leaves the volume to that call.
pub fn close(subject: Subject, patience: Duration) -> Result<()> {
    let kernel = subject.host.kernel;
    let device = Device::find(kernel, subject.id)?;
    let Some(device) = device.filter(|device| device.inside(kernel).is_some()) else {
        return Ok(());
    };
    match lock::hold(kernel, device.target(), patience) {
        Err(error) if patience.is_zero() && error.is::<lock::Busy>() => Ok(()),
        lock => close_unused(subject, &lock?),
    }
}

/// Like [`close`], with the volume's lock held. An error says who has the volume open.
pub(super) fn close_unused(subject: Subject, lock: &Lock) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let Some(mut seen) = Look::idle(subject)? else {
        return Ok(());
    };
    let Some(inside) = seen.facts.inside() else {
        return Ok(());
    };
    let name = crypt::name_of(&inside.device.lv_uuid);
    let Err(error) = crypt::close(host, &name, lock) else {
        return Ok(());
    };
    seen.facts.openers = Some(seen.remaining_openers()?);
    let holder = users(&seen.facts).into_iter().next();
    let error = anyhow!(error);
    let error = match holder {
        Some(holder) => error.context(Reason::from(holder).message(id)),
        None => error,
    };
    let doing = format!("{id} is not mounted any more, but stays open and can be read");
    Err(FailedStep::Close.of(host, error, doing))
}

/// Closes the encrypted volumes that killed calls left open. Leaves a volume to another call that works on it.
pub fn close_leftovers(host: &Host, config: &Config) {
    for Device { id, .. } in all_inside(host.kernel) {
        let subject = Subject {
            host,
            config,
            id: &id,
        };
        if let Err(error) = close(subject, Duration::ZERO) {
            host.log.about("left-open", &format!("{error:#}"));
        }
    }
}
