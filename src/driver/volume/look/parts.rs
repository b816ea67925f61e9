//! Finds the other devices of a filesystem on several devices, and copies that could be mistaken for them.

use anyhow::{Context, Result};

use super::Look;
use super::device::volume_of;
use crate::fs::{self, Beyond, Identified};
use crate::names::Shown;
use crate::volume::decide::Parts;
use crate::volume::device::Device;

impl Look<'_> {
    /// The other devices of a filesystem that is on several. `None`: the whole filesystem is on this device, and blkid
    /// reads no other one.
    pub(super) fn parts(&self, device: &Device, beyond: &Beyond) -> Result<Option<Parts>> {
        if *beyond == Beyond::Nothing {
            return Ok(None);
        }
        let host = self.subject.host;
        let all = fs::all(host)?;
        let own = all.iter().find(|one| one.number == device.number);
        let own = own.with_context(|| format!("blkid does not list {}", device.id))?;
        let is_same = |a: &Identified, b: &Identified| a.uuid == b.uuid && a.part == b.part;
        let is_unique = |one: &Identified| all.iter().filter(|two| is_same(one, two)).count() == 1;
        let is_twin = |one: &&Identified| is_same(one, own) && one.number != own.number;
        let is_ambiguous = |one: &&Identified| {
            let is_other_part = match beyond {
                Beyond::Journal(uuid) => one.uuid == *uuid,
                _ => one.uuid == own.uuid && one.part != own.part,
            };
            is_other_part && !is_unique(one)
        };
        let name = |one: &Identified| match volume_of(host.kernel, one.number) {
            Some(volume) => volume.id.to_string(),
            None => one.device.shown().to_string(),
        };
        let disks = all
            .iter()
            .filter(|one| !one.part.is_empty() && is_unique(one));
        Ok(Some(Parts {
            twins: all.iter().filter(is_twin).map(name).collect(),
            ambiguous: all.iter().filter(is_ambiguous).map(name).collect(),
            disks: disks.map(|one| one.number).collect(),
        }))
    }
}
