//! Finds everyone who has the device of a volume open. The driver's claim does not keep out a process that opens the
//! device without a claim, such as a virtual machine, a storage target or a loop device.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::openings::Openings;
use super::{Asker, Look};
use crate::volume::decide::{Openers, users};
use crate::volume::subject::Subject;

/// How long a call waits for short-lived openers, such as udev, which opens a device after each change.
const PATIENCE: Duration = Duration::from_secs(3);

impl<'a> Look<'a> {
    /// A look at a volume that is to be closed or deactivated. `None`: somebody uses the volume.
    pub fn idle(subject: Subject<'a>) -> Result<Option<Self>> {
        let mut seen = Self::begin(subject, Asker::Step);
        if let Some(why) = seen.facts.not_its_device {
            bail!("{why}");
        }
        seen.facts.uses = seen.uses()?;
        let is_used = seen.facts.is_mounted_here() || !users(&seen.facts).is_empty();
        Ok((!is_used).then_some(seen))
    }

    /// Everyone who has the device open except this process, which has it open `own` times. A call waits up to
    /// 3 s for short-lived openers.
    pub(super) fn openers(&self, own: usize) -> Result<Openers> {
        if let Some(known) = self.asker.known() {
            return self.openers_of(known.tables.openings(self.subject.host)?, own);
        }
        let volume = self.facts.volume();
        let is_recorded = volume.is_some_and(|volume| volume.record.made.is_some());
        let is_person = self.asker.is_person();
        self.wait_until(own, |openers| is_person || !openers.may_end(is_recorded))
    }

    /// Everyone who has the device open, even read-only. If nothing has it mounted here, waits up to 3 s, since udev
    /// opens devices briefly.
    pub fn remaining_openers(&self) -> Result<Openers> {
        let is_mounted = self.facts.is_mounted_here();
        self.wait_until(0, |openers| is_mounted || !openers.may_end(false))
    }

    fn wait_until(&self, own: usize, is_it: impl Fn(&Openers) -> bool) -> Result<Openers> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            // The last look starts after PATIENCE has passed, even if the first look took longer than PATIENCE.
            let is_last = started.elapsed() >= PATIENCE;
            let openers = self.see_openers(own)?;
            if is_last || is_it(&openers) || self.subject.host.kernel.pause(pause) {
                return Ok(openers);
            }
            pause = pause.saturating_mul(2);
        }
    }

    fn see_openers(&self, own: usize) -> Result<Openers> {
        self.asked_for_openers.set(Instant::now());
        let Some(device) = &self.facts.device else {
            return Ok(Openers::default());
        };
        // An encrypted volume that is open has two devices.
        let is_one = self.facts.top() == Some(device);
        let openings = Openings::read(self.subject.host, is_one.then_some(device.number))?;
        self.openers_of(&openings, own)
    }

    fn openers_of(&self, openings: &Openings, own: usize) -> Result<Openers> {
        let (Some(device), Some(top)) = (&self.facts.device, self.facts.top()) else {
            return Ok(Openers::default());
        };
        let Subject { host, config, .. } = self.subject;
        let mounted = self.facts.is_mounted_here();
        let mut openers = openings.of(host.kernel, config, top, mounted, own)?;
        if top != device {
            // The device inside has the volume's own device open once.
            let beside = openings.of(host.kernel, config, device, false, 1)?;
            openers.processes.extend(beside.processes);
            openers.loops.extend(beside.loops);
            openers.unseen = openers.unseen.saturating_add(beside.unseen);
        }
        Ok(openers)
    }
}
