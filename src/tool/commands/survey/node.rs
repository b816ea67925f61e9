//! Judges the disks, the groups that the node cannot use, and the volumes that LVM does not know any more: what is
//! wrong, and which command helps.

use std::collections::{BTreeMap, BTreeSet};

use super::choice::Choice;
use super::finding::Finding;
use super::group::GroupHealth;
use super::inventory::Inventory;
use driver::lvm::{self, Disk, Group, KeptAway};
use driver::names::{LvId, VgName};
use driver::volume::Reason;

/// LVM's answers about the node, beside its list of groups and volumes.
#[derive(Default)]
pub struct NodeHealth {
    /// The groups for which LVM gave no answer, with its error.
    pub silent: BTreeMap<VgName, String>,
    /// The groups on this node's disks that the node does not use.
    pub kept_away: Vec<KeptAway>,
    /// Those of `kept_away` that LVM does not list. The flag: whether the config has a table for the group.
    pub hidden: Vec<(KeptAway, bool)>,
    /// Volumes of pods that LVM does not know any more.
    pub lost: BTreeSet<LvId>,
    /// The disks that have a fault.
    pub disks: Vec<Disk>,
    /// Why LVM did not list its disks.
    pub disks_unknown: Option<String>,
}

impl NodeHealth {
    /// Asks LVM for all disks, and for the groups on them that this node does not use.
    pub fn of(inventory: &Inventory) -> Self {
        let kept_away = inventory.kept_away();
        let hidden = kept_away
            .iter()
            .filter(|kept| !inventory.has_group(&kept.vg))
            .map(|kept| (kept.clone(), inventory.is_named(&kept.vg)))
            .collect();
        Self {
            silent: inventory.silent.clone(),
            hidden,
            lost: inventory.lost(),
            kept_away,
            ..Self::of_disks(inventory)
        }
    }

    /// Like [`Self::of`], for what a person chose: everything, some groups, or only volumes.
    pub fn of_choice(inventory: &Inventory, choice: &Choice) -> Self {
        if choice.is_all {
            return Self::of(inventory);
        }
        let lost = inventory
            .lost()
            .intersection(&choice.ids)
            .cloned()
            .collect();
        if choice.groups.is_empty() {
            return Self {
                lost,
                ..Self::default()
            };
        }
        let mut silent = inventory.silent.clone();
        silent.retain(|vg, _| choice.groups.contains(vg.as_str()));
        Self {
            silent,
            lost,
            ..Self::of_disks(inventory)
        }
    }

    fn of_disks(inventory: &Inventory) -> Self {
        let (disks, disks_unknown) = match lvm::disks(inventory.host) {
            Ok(disks) => (disks, None),
            // `silent` has the same error already.
            Err(_) if !inventory.silent.is_empty() => (Vec::new(), None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        Self {
            disks,
            disks_unknown,
            ..Self::default()
        }
    }

    /// The facts by which a listed group is judged.
    pub fn group(&self, inventory: &Inventory, group: &Group) -> GroupHealth {
        let its = self.disks.iter().filter(|disk| disk.vg == group.name);
        let kept = self.kept_away.iter().find(|kept| kept.vg == group.name);
        GroupHealth::of(inventory, group, its.cloned().collect(), kept.cloned())
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        all.extend(self.disks_unknown());
        all.extend(self.silent());
        all.extend(self.hidden());
        all.extend(self.lost());
        all
    }

    fn disks_unknown(&self) -> Option<Finding> {
        let why = self.disks_unknown.as_ref()?;
        Some(Finding::failed("lvm", why).word("disks unknown"))
    }

    fn silent(&self) -> impl Iterator<Item = Finding> {
        self.silent.iter().map(|(vg, why)| {
            Finding::failed("lvm", why)
                .word("LVM is silent")
                .why("no volume of the group can be looked at")
                .on(vg)
        })
    }

    fn hidden(&self) -> impl Iterator<Item = Finding> {
        self.hidden.iter().map(|(kept, is_named)| {
            let finding = Finding::warning("groups", &kept.why).word(&kept.owner);
            // Another host's group is a fault only if pods of this host are to use it.
            finding.noted_unless(*is_named).on(&kept.vg)
        })
    }

    fn lost(&self) -> impl Iterator<Item = Finding> {
        self.lost.iter().map(|id| {
            let finding = Finding::failed("mounts", Reason::Unknown.message(id)).word("lost");
            finding.why("pods have it mounted").run("pvs -a").on(id)
        })
    }
}
