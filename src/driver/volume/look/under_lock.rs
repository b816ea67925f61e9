//! The look under the locks that a call or a command holds or waits for.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Asker, Look};
use crate::host::Lock;
use crate::volume::decide::{Decision, Level, Wish};
use crate::volume::lock;
use crate::volume::subject::Subject;

/// A look under the volume's lock, and the decision that it led to.
pub struct Held<'a> {
    pub seen: Look<'a>,
    pub decision: Decision,
}

/// The locks of a volume that are held.
#[derive(Default)]
pub struct Holding {
    /// None: it is not active.
    pub volume: Option<Lock>,
    /// Its group's, of a call that may extend it.
    pub group: Option<Lock>,
    /// Whether its lvcreate has ended: a killed call may have left that at work, which is to wipe what is
    /// there.
    is_made: bool,
}

impl From<Lock> for Holding {
    fn from(lock: Lock) -> Self {
        Self {
            volume: Some(lock),
            ..Self::default()
        }
    }
}

impl Holding {
    /// The lock that a tool inherits which changes the volume.
    pub fn of_volume(&self) -> Result<&Lock> {
        self.volume
            .as_ref()
            .context("the volume's lock is not held")
    }
}

/// Looks at a volume until the decision needs nothing more. Of its locks, those that are not held yet are
/// waited for as long as `patience`; after a wait it is looked anew.
pub fn look_under_lock<'a>(
    subject: Subject<'a>,
    mut asker: Asker<'a>,
    wish: &Wish,
    patience: Duration,
    holding: &mut Holding,
) -> Result<Held<'a>> {
    let kernel = subject.host.kernel;
    loop {
        let mut seen = Look::at(subject, asker);
        if let (None, Some(device)) = (&holding.volume, &seen.facts.device) {
            let lock = lock::hold(kernel, device, patience)?;
            if !device.is_still_there(kernel) {
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
            decision = seen.settle(wish)?;
        }
        return Ok(Held { seen, decision });
    }
}
