//! Looks which node has the lock of a volume in a shared group.

use std::time::Duration;

use super::Look;
use crate::lvm::{self, GroupLeases, LeaseState};
use crate::volume::subject::Subject;

impl Look<'_> {
    /// The state of the volume's lock, or of the group's locks if the volume does not exist.
    pub(super) fn locks(&self) -> LeaseState {
        let Subject { host, config, id } = self.subject;
        let lock = self.facts.volume().and_then(|volume| volume.lock.as_ref());
        GroupLeases::ask(host, id.vg(), config.limits.query).of(lock)
    }

    /// Asks which node has the volume, and notes the answer in the facts. Waits up to `limit` for the answer, since
    /// sanlock's disk may hang.
    pub fn note_holder(&mut self, limit: Duration) {
        let Subject { host, config, id } = self.subject;
        let patience = limit.min(config.limits.query);
        let lock = self
            .facts
            .volume()
            .and_then(|volume| lvm::lock_of(host, volume));
        let holder = lock.and_then(|lock| lvm::holder(host, id.vg(), &lock, patience));
        if holder.is_some() {
            self.facts.locks = Some(LeaseState::Elsewhere(holder));
        }
    }
}
