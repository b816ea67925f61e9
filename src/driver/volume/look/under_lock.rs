//! Looks at a volume under its locks, for calls and for commands.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Asker, Look};
use crate::host::{Kernel, Lock};
use crate::lvm::Target;
use crate::names::LvUuid;
use crate::volume::decide::{Decision, Level, Purpose, Wish};
use crate::volume::job::Subject;
use crate::volume::lock;

/// The locks that are held.
#[derive(Default)]
pub struct HeldLocks {
    /// `None`: the volume is not active, or needs no lock.
    pub volume: Option<Lock>,
    /// Whose lock this is.
    of: Option<LvUuid>,
    /// The group's lock, held by a call that may create or extend the volume.
    pub group: Option<Lock>,
    /// Whether no lvcreate of a killed call is left, which may still be wiping the volume.
    is_made: bool,
}

impl HeldLocks {
    /// The volume's lock. Tools that change the volume inherit it.
    pub fn of_volume(&self) -> Result<&Lock> {
        let lock = self.volume.as_ref();
        lock.context("the volume's lock is not held")
    }

    /// Takes the volume's lock, unless it is held. A holder of the group's lock waits for no other.
    pub fn hold_volume(
        &mut self,
        kernel: &Kernel,
        target: Target,
        patience: Duration,
    ) -> Result<()> {
        let (_, uuid) = target;
        if self.of.as_ref() != Some(uuid) {
            *self = Self::default();
            self.volume = Some(lock::hold(kernel, target, patience)?);
            self.of = Some(uuid.clone());
        }
        Ok(())
    }
}

/// Looks at a volume until the decision needs no more facts. Waits up to `patience` for each lock not yet held,
/// then looks again. A call that finds all as it is to be takes no lock; nor does a call that needs the group's: its
/// decision is to look at the room there.
pub fn look_under_lock<'a>(
    subject: Subject<'a>,
    mut asker: Asker<'a>,
    wish: &Wish,
    patience: Duration,
    holding: &mut HeldLocks,
) -> Result<(Look<'a>, Decision)> {
    let (kernel, vg) = (subject.host.kernel, subject.id.vg());
    loop {
        let mut seen = Look::at(subject, asker);
        let device = seen.facts.device.clone();
        let unlocked = device.filter(|device| holding.of.as_ref() != Some(&device.lv_uuid));
        if let Some(device) = unlocked {
            if !asker.is_person {
                let decision = seen.settle_up_to(Level::Uses, wish)?;
                if let Decision::Ready | Decision::Restrict { .. } | Decision::Refuse(_) = decision
                {
                    return Ok((seen, decision));
                }
            }
            holding.hold_volume(kernel, device.target(), patience)?;
            // Of many volumes that were listed just now, only those that are read are looked for again.
            if asker.known.is_none() {
                continue;
            }
        }
        if matches!(wish.purpose, Purpose::Size(_)) && seen.facts.device.is_some() {
            // Until LVM has extended it, nobody else takes what was free when LVM was asked.
            if holding.group.is_none() {
                holding.group = Some(lock::hold_group(kernel, vg, patience)?);
            }
        }
        let mut decision = seen.settle_up_to(Level::Lvm, wish)?;
        let is_new = seen.facts.volume().is_some_and(|volume| volume.record.new);
        if !holding.is_made && holding.group.is_none() && is_new {
            drop(lock::hold_group(kernel, vg, patience)?);
            holding.is_made = true;
            asker.known = None;
            continue;
        }
        if let (Decision::Look(_), false) = (&decision, asker.unread) {
            let device = seen.facts.device.as_ref();
            if asker.known.is_some() && device.is_some_and(|one| !one.is_still_there(kernel)) {
                asker.known = None;
                *holding = HeldLocks::default();
                continue;
            }
            let is_sure = asker.is_person || holding.group.is_some();
            let most = if is_sure { Level::Room } else { Level::Inside };
            decision = seen.settle_up_to(most, wish)?;
        }
        return Ok((seen, decision));
    }
}
