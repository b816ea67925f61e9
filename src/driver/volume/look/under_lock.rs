//! The one conductor of looks and locks, for calls and for commands.

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
    /// Its name's, once it was found to be new: a killed call may have left its lvcreate at work, which
    /// is to wipe what is there.
    name: Option<Lock>,
}

impl From<Lock> for Holding {
    fn from(lock: Lock) -> Self {
        let volume = Some(lock);
        Self { volume, name: None }
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
        if holding.name.is_none() && seen.facts.is_new() {
            let name = subject.id.dm_name();
            holding.name = Some(lock::hold_name(kernel, &name, patience)?);
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
