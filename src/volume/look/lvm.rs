//! What LVM says of a volume, of its pool and its group, and who has its lock.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Asker, Look};
use crate::lvm::{self, Locks};
use crate::names::{LvId, LvName};
use crate::volume::decide::{Lvm, Pool, Wish};
use crate::volume::subject::Subject;

impl Look<'_> {
    /// Asks LVM for the volume and, if it is to be written, for its thin pool; and for the group, if
    /// it is to be made of what is free there.
    pub fn ask_lvm(&self, wish: &Wish) -> Lvm {
        let Subject { host, id, .. } = self.subject;
        let see_pool = |name: &LvName| -> Result<Pool> {
            let pool = LvId::new(id.vg().clone(), name.clone())
                .with_context(|| format!("naming the thin pool of {id}"))?;
            Ok(match self.find(&pool)? {
                lvm::Found::Volume(row) => Pool::Seen(row),
                _ => Pool::Unseen(pool),
            })
        };
        let answer = || -> Result<Lvm> {
            let volume = match self.find(id)? {
                lvm::Found::Volume(volume) => volume,
                lvm::Found::NoVolume => {
                    let create = &wish.create;
                    let is_made = create.allowed && create.size.is_some() && !wish.read_only;
                    let (mut free, mut pool) = (None, None);
                    match create.thin_pool().filter(|_| is_made) {
                        Some(name) => pool = Some(see_pool(name)?),
                        None if !is_made => {}
                        None => match lvm::find_group(host, id.vg())? {
                            Some(group) => free = Some(group.free),
                            None => return Ok(Lvm::NoGroup),
                        },
                    }
                    return Ok(Lvm::NoVolume { free, pool });
                }
                lvm::Found::Hidden => return Ok(Lvm::Hidden),
                lvm::Found::NoGroup => return Ok(Lvm::NoGroup),
            };
            let pool = volume.pool.as_ref().filter(|_| !wish.read_only);
            let pool = pool.map(see_pool).transpose()?;
            let suspended = self.facts.uses.as_ref().and_then(|u| u.suspended.as_ref());
            let unused_table = suspended.is_some_and(|name| *name == id.dm_name())
                && lvm::has_unused_table(host, id)?;
            let lost = volume.health.contains("partial") && lvm::has_lost_data(host, &volume)?;
            Ok(Lvm::Volume {
                volume,
                pool,
                unused_table,
                lost,
            })
        };
        // A list does not say what becomes of a suspended one.
        let uses = self.facts.uses.as_ref();
        let is_suspended = uses.is_some_and(|uses| uses.suspended.is_some());
        let known = self.asker.known().filter(|_| !is_suspended);
        known
            .and_then(|known| known.of(self.subject, wish))
            .map_or_else(answer, Ok)
            .unwrap_or_else(|error| Lvm::Silent(format!("{error:#}")))
    }

    fn find(&self, id: &LvId) -> Result<lvm::Found> {
        match self.asker {
            Asker::Call { .. } => lvm::find(self.subject.host, id),
            Asker::Person { .. } => lvm::find_as_it_is(self.subject.host, id),
        }
    }

    pub(super) fn locks(&self) -> Option<Locks> {
        let Subject { host, config, id } = self.subject;
        let lock = self.facts.volume()?.lock.as_ref();
        Some(lvm::locks(host, id.vg(), lock, config.limits.query))
    }

    /// Notes which node has the volume, if that can be told within `limit`: sanlock's disk may hang.
    pub fn note_holder(&mut self, limit: Duration) {
        let Subject { host, config, id } = self.subject;
        let limit = limit.min(config.limits.query);
        let lock = self
            .facts
            .volume()
            .and_then(|volume| lvm::lock_of(host, volume));
        let holder = lock.and_then(|lock| lvm::holder(host, id.vg(), &lock, limit));
        if holder.is_some() {
            self.facts.locks = Some(Locks::Elsewhere(holder));
        }
    }
}
