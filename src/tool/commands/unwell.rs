//! What is unwell: one answer for `status -x`, `check` of all volumes, `doctor` and the metrics.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::log;
use super::survey::{Inventory, Verdict};
use driver::lvm::Volume;
use driver::names::LvId;

/// The volumes that are somebody's for the driver: they have a record, a pod has them, or the log has a call about
/// them. All others are as nobody asked the driver to have them, such as the host's own and those of virtual
/// machines.
pub struct Ours<'a> {
    inventory: &'a Inventory<'a>,
    /// The volumes in the log. It is read once, and only if neither record nor mounts tell.
    called: OnceCell<BTreeSet<String>>,
}

impl<'a> Ours<'a> {
    pub fn of(inventory: &'a Inventory<'a>) -> Self {
        let called = OnceCell::new();
        Self { inventory, called }
    }

    /// The same without the log, for a list that must not take long.
    pub fn at_once(inventory: &'a Inventory<'a>) -> Self {
        let called = OnceCell::from(BTreeSet::new());
        Self { inventory, called }
    }

    pub fn has(&self, volume: &Volume) -> bool {
        // Volumes of pods are in it, or will be.
        volume.is_pool()
            // A snapshot that ran full is of no use to anybody, and somebody is to remove it.
            || volume.has_overflowed()
            || !volume.record.tags.is_empty()
            || self.inventory.is_mounted_for_pods(volume)
            || self.is_called(&volume.id)
    }

    /// A log that cannot be read is the doctor's to name.
    fn is_called(&self, id: &LvId) -> bool {
        let Inventory { host, config, .. } = self.inventory;
        let called = self
            .called
            .get_or_init(|| log::volumes(host, config).unwrap_or_default());
        called.contains(&id.to_string())
    }

    /// Whether somebody should look at a volume: it is the driver's, and its state is not `ok` (full and without
    /// inodes among others), or it would not mount.
    pub fn is_unwell(&self, volume: &Volume, is_ok: bool, next_mount: Option<&Verdict>) -> bool {
        let is_ill = !is_ok || next_mount.is_some_and(Verdict::would_not_mount);
        is_ill && self.has(volume)
    }
}
