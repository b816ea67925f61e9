//! Looks at a volume under its locks, for calls and for commands.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Asker, Look};
use crate::host::Lock;
use crate::volume::decide::{Decision, Level, Wish};
use crate::volume::lock;
use crate::volume::subject::Subject;

/// A look under the volume's lock, and the decision from it.
pub struct Decided<'a> {
    pub seen: Look<'a>,
    pub decision: Decision,
}

/// The locks of a volume that are held.
#[derive(Default)]
pub struct HeldLocks {
    /// `None`: the volume is not active, or not locked yet.
    pub volume: Option<Lock>,
    /// The group's lock, held by a call that may extend the volume.
    pub group: Option<Lock>,
    /// Whether a possible lvcreate of a killed call has ended: it may still be wiping the volume.
    is_made: bool,
}

impl From<Lock> for HeldLocks {
    fn from(lock: Lock) -> Self {
        Self {
            volume: Some(lock),
            ..Self::default()
        }
    }
}

impl HeldLocks {
    /// The volume's lock. Tools that change the volume inherit it.
    pub fn of_volume(&self) -> Result<&Lock> {
        self.volume
            .as_ref()
            .context("the volume's lock is not held")
    }
}

/// Looks at a volume until the decision needs no more facts. Waits up to `patience` for each lock not yet held,
/// then looks again.
pub fn look_under_lock<'a>(
    subject: Subject<'a>,
    mut asker: Asker<'a>,
    wish: &Wish,
    patience: Duration,
    holding: &mut HeldLocks,
) -> Result<Decided<'a>> {
    let kernel = subject.host.kernel;
    loop {
        let mut seen = Look::at(subject, asker);
        if let (None, Some(device)) = (&holding.volume, &seen.facts.device) {
            let lock = lock::hold(kernel, device, patience)?;
            // Of many volumes that were listed just now, only those that are read are looked for again.
            if asker.known().is_none() && !device.is_still_there(kernel) {
                asker = asker.without_list();
                continue;
            }
            holding.volume = Some(lock);
        }
        let mut decision = seen.settle_up_to(Level::Lvm, wish)?;
        if !holding.is_made && holding.group.is_none() && seen.facts.is_new() {
            drop(lock::hold_group(kernel, subject.id.vg(), patience)?);
            holding.is_made = true;
            asker = asker.without_list();
            continue;
        }
        let is_unread = matches!(asker, Asker::Person { unread: true, .. });
        if let (Decision::Look(_), false) = (&decision, is_unread) {
            let device = seen.facts.device.as_ref();
            if asker.known().is_some() && device.is_some_and(|one| !one.is_still_there(kernel)) {
                asker = asker.without_list();
                holding.volume = None;
                continue;
            }
            decision = seen.settle(wish)?;
        }
        return Ok(Decided { seen, decision });
    }
}
