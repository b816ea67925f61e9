//! Asks LVM for a volume, with its pool and its group.

use anyhow::Result;

use super::{Asker, Look};
use crate::failed_step::in_words;
use crate::host::Host;
use crate::lvm::{self, Record, Volume};
use crate::names::{Bytes, LvId, LvName};
use crate::volume::decide::{Facts, Lvm, Pool, Room, Wish};
use crate::volume::device::Device;
use crate::volume::subject::Subject;

impl Look<'_> {
    /// Gets LVM's row of the volume, and the record of its origin. If this call has just activated the volume, first
    /// uses LVM's row from before that.
    pub(super) fn see_lvm(&mut self, wish: &Wish) {
        let kernel = self.subject.host.kernel;
        let known_row = match self.asker {
            Asker::Call {
                before_activation, ..
            } => before_activation.filter(|_| self.facts.lvm.is_none()),
            Asker::Step | Asker::Person { .. } => None,
        };
        let device = self.facts.device.clone();
        self.note_writes();
        // Facts that followed from an earlier answer are dropped.
        self.claim = None;
        self.facts = Facts {
            device,
            uses: self.facts.uses.take(),
            lvm_before_activation: known_row.is_some(),
            lvcreate_ended: self.facts.lvcreate_ended,
            ..Facts::of(self.subject.id, self.facts.now)
        };
        self.facts.lvm = Some(match known_row {
            Some(volume) => Lvm::Volume {
                volume: Box::new(volume.clone()),
                pool: None,
                unused_table: false,
            },
            None => self.ask_lvm(wish),
        });
        self.facts.origin = self.origin();
        self.facts.larger_device = self.larger_device();
        // LVM answers only after a change of the volume has ended. So the volume may be writable or resumed by now.
        if let (Some(device), Some(uses)) = (&self.facts.device, &mut self.facts.uses) {
            uses.mounted_read_only_device &= device.is_read_only(kernel);
        }
        let top = self.facts.top().cloned();
        if let (Some(top), Some(uses)) = (top, &mut self.facts.uses)
            && uses.suspended.is_some()
        {
            uses.suspended = top.suspended(kernel);
            self.see_failure();
        }
    }

    /// The record of the volume of which this one is a copy, if nothing is recorded for this one.
    fn origin(&self) -> Option<Record> {
        let volume = self
            .facts
            .volume()
            .filter(|volume| volume.record.made.is_none())?;
        let origin = self.find(&volume.copy_of()?).ok()?.volume()?;
        Some(origin.record)
    }

    fn larger_device(&self) -> Option<Bytes> {
        let (volume, device) = (self.facts.volume()?, self.facts.device.as_ref()?);
        larger_device(self.subject.host, volume, device)
    }

    /// Gets LVM's row of a volume after a decision that did not need the row.
    pub fn add_lvm(&mut self, wish: &Wish) {
        self.facts.lvm = Some(self.ask_lvm(wish));
        self.facts.larger_device = self.larger_device();
    }

    /// Asks LVM for the volume and, unless it is only to be read, for its thin pool.
    fn ask_lvm(&self, wish: &Wish) -> Lvm {
        self.answer_of_lvm(wish)
            .unwrap_or_else(|error| Lvm::Silent(in_words(&error)))
    }

    fn answer_of_lvm(&self, wish: &Wish) -> Result<Lvm> {
        let Subject { host, id, .. } = self.subject;
        let volume = match self.find(id)? {
            lvm::Found::Volume(volume) => volume,
            lvm::Found::NoVolume => return Ok(Lvm::NoVolume),
            lvm::Found::Hidden => return Ok(Lvm::Hidden),
            lvm::Found::NoGroup => return Ok(Lvm::NoGroup),
        };
        let pool = match &volume.pool {
            Some(name) if !wish.read_only => Some(self.see_pool(name, wish)?),
            Some(_) | None => None,
        };
        let suspended = self.facts.uses.as_ref().and_then(|u| u.suspended.as_ref());
        let unused_table =
            suspended.is_some_and(|name| *name == id.dm_name()) && lvm::has_unused_table(host, id)?;
        Ok(Lvm::Volume {
            volume,
            pool,
            unused_table,
        })
    }

    /// Asks LVM for the free space in which the volume is to be created: a group or a thin pool.
    pub(super) fn look_for_room(&mut self, wish: &Wish) {
        let Subject { host, id, .. } = self.subject;
        let room = match wish.thin_pool() {
            Some(name) => self.see_pool(name, wish).map(|pool| Some(Room::Pool(pool))),
            None => lvm::find_group(host, id.vg()).map(|group| group.map(Room::Group)),
        };
        match room {
            Ok(Some(room)) => self.facts.room = Some(room),
            Ok(None) => self.facts.lvm = Some(Lvm::NoGroup),
            Err(error) => self.facts.lvm = Some(Lvm::Silent(in_words(&error))),
        }
    }

    fn see_pool(&self, name: &LvName, wish: &Wish) -> Result<Pool> {
        let Subject { host, id, .. } = self.subject;
        let pool = LvId::new(id.vg().clone(), name.clone());
        Ok(match self.find(&pool)? {
            lvm::Found::Volume(mut row) => {
                if row.promised.is_none() {
                    lvm::see_promised(host, &mut row, wish.pool_limit)?;
                }
                Pool::Seen(row)
            }
            _ => Pool::Unseen(pool),
        })
    }

    fn find(&self, id: &LvId) -> Result<lvm::Found> {
        // An earlier list does not tell whether a suspended volume has an unused table.
        let uses = self.facts.uses.as_ref();
        let is_suspended = uses.is_some_and(|uses| uses.suspended.is_some());
        let known = self.asker.known().filter(|_| !is_suspended);
        if let Some(known) = known
            && let Some(volume) = known.volume(id)?
        {
            return Ok(lvm::Found::Volume(Box::new(volume.clone())));
        }
        lvm::find(self.subject.host, id)
    }
}

/// The size of a volume's device, if it is larger than LVM's metadata says. If it seems so, asks LVM once more, since
/// an lvextend may have ended meanwhile.
pub fn larger_device(host: &Host, volume: &Volume, device: &Device) -> Option<Bytes> {
    let size = device.size(host.kernel).ok()?;
    let is_less = |volume: &Volume| volume.uuid == device.lv_uuid && volume.device_size() < size;
    let now = || lvm::find(host, &volume.id).ok()?.volume();
    let is_still = || now().is_some_and(|now| is_less(&now));
    (is_less(volume) && is_still()).then_some(size)
}
