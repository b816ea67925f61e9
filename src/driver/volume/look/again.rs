//! Questions whether what a look saw still holds. Another process or node may change a volume at any time, so each step
//! that comes after a wait, or goes by a name, has its question.
//!
//! | moment | question | what is compared | what it costs |
//! |---|---|---|---|
//! | after the wait for a lock | a new look: `under_lock.rs` | all | a whole look |
//! | a person's lists, before the device is read | [`Look::is_still_its_device`] | the device | the kernel's tables |
//! | a command goes by the volume's name; a device was opened by its name | [`Device::require_still_there`] | the device | the kernel's tables |
//! | before mkfs | [`Look::is_still_as_read`] | the device, its content, the kernel's count of writes, who has it open | one read by the child, one dmsetup |
//! | before the mount, if the look began more than [`LONG`] ago | [`Look::is_still_free`] | mounts and devices on top; after [`LONG`] also who has the device open | the kernel's tables; one dmsetup |
//!
//! After the mount, `mount/mounted.rs` compares the mounted filesystem with the decided one.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Look;
use super::content::unnamed;
use crate::fs::Extent;
use crate::host::Kernel;
use crate::volume::decide::{Content, Refusal, Uses, require_no_writer};
use crate::volume::device::Device;

/// After this time, a call looks again at everything that others may have changed.
const LONG: Duration = Duration::from_secs(2);

impl Device {
    /// Whether the kernel still has this device, for the same volume.
    fn is_still_there(&self, kernel: &Kernel) -> bool {
        let Ok(Some(now)) = Self::find(kernel, &self.id) else {
            return false;
        };
        if self.luks.is_none() {
            return now == *self;
        }
        now.inside(kernel).as_ref() == Some(self)
    }

    /// Fails if the volume's name now means another device: a tag or a mount made by name would go to that device.
    pub fn require_still_there(&self, kernel: &Kernel) -> Result<()> {
        if !self.is_still_there(kernel) {
            bail!("{} was replaced by another device just now", self.id);
        }
        Ok(())
    }
}

impl Look<'_> {
    /// Whether the device that the look found is still there, and belongs to the volume. True if it found none.
    pub(super) fn is_still_its_device(&self) -> bool {
        let device = self.facts.device.as_ref();
        device.is_none_or(|one| one.is_still_there(self.subject.host.kernel))
    }

    /// Looks again before mkfs, since a disk or LVM's lock may have taken long. True if this call still has the claim,
    /// nobody else has the device open, the device is not suspended, the content is the same, and the kernel has
    /// counted no write since [`Self::note_writes`].
    pub fn is_still_as_read(&self) -> Result<bool> {
        let (kernel, facts) = (self.subject.host.kernel, &self.facts);
        let (Some(device), Some(claim)) = (facts.top(), &self.claim) else {
            return Ok(false);
        };
        device.require_still_there(kernel)?;
        let before = facts.top_content();
        // Flushed first, so that the count includes writes that were only in the kernel's cache.
        let content = match before {
            // The kernel's count of writes shows that the rest is still zero.
            Some(Content::Blank { zero: true, .. }) if !is_long_ago(self.began) => {
                unnamed(self.examined(device, claim, Extent::Marks, true)?)
            }
            _ => self.read(device, claim, true)?,
        };
        let written = self.writes();
        Ok(Some(&content) == before
            && written.is_some()
            && written == self.written
            && device.suspended(kernel).is_none()
            && self.is_open_only_by_claim()?)
    }

    /// Notes the kernel's count of writes, just before LVM is asked for the volume. It is a proof before mkfs, and a
    /// person's look does not lead to mkfs.
    pub(super) fn note_writes(&mut self) {
        self.written = if self.asker.is_person() {
            None
        } else {
            self.writes()
        };
    }

    /// The kernel's count of writes to the volume's own device.
    fn writes(&self) -> Option<u64> {
        let device = self.facts.device.as_ref()?;
        device.written(self.subject.host.kernel)
    }

    /// Whether only this process has the device open, once, by its claim. Waits up to 3 s for others to close it. The
    /// child process that reads devices closes the device after each answer.
    fn is_open_only_by_claim(&self) -> Result<bool> {
        Ok(self.openers(1)?.is_nobody())
    }

    /// Before the mount, asks again who uses the device, if the look began more than [`LONG`] ago. False: the device's
    /// mounts, or the devices on top of it, have changed, so the look must begin again. Fails if somebody can write to
    /// the device.
    ///
    /// The device is pinned and the volume is locked, so nothing but a new user can have come.
    pub fn is_still_free(&mut self) -> Result<bool> {
        if !is_long_ago(self.began) {
            return Ok(true);
        }
        let now = self.uses()?;
        // The device inside is not compared, since this call itself may have opened the volume.
        let inside = now.as_ref().and_then(|now| now.inside.clone());
        let before = self.facts.uses.take();
        let is_same = now.is_some() && now == before.map(|uses| Uses { inside, ..uses });
        self.facts.uses = now;
        if !is_same {
            return Ok(false);
        }
        // If the device was claimed by others, the look has asked for its openers already.
        let is_claimed = matches!(self.facts.content, Some(Content::Claimed(_)));
        if is_long_ago(self.asked_for_openers.get()) && !is_claimed {
            // This call itself has the device open once, by its pin.
            self.facts.openers = Some(self.openers(1)?);
            require_no_writer(&self.facts).map_err(|reason| Refusal::of(&self.facts.id, reason))?;
        }
        Ok(true)
    }
}

fn is_long_ago(then: Instant) -> bool {
    then.elapsed() >= LONG
}
