//! Checks of groups: two of one name, hidden, exported, another host's, without locks, or full.

use std::collections::BTreeMap;

use super::facts::{Facts, Hidden, Lvm};
use super::findings::{Finding, Severity};
use driver::lvm;
use driver::names::Shown;

/// Tables of config.toml whose group or pool is missing.
pub fn config(facts: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let file = &facts.config.file;
    let tables = facts.config.volume_groups.iter();
    let missing = tables.filter_map(|(vg, policy)| {
        if !lvm.has_group(vg.as_str()) {
            return Some(format!(
                "[volume_group.{vg}] in {file}: this node has no such group"
            ));
        }
        let name = policy.thin_pool.as_ref()?;
        let mut pools = lvm.volumes.iter().map(|one| &one.volume);
        let is_it = |id: &driver::names::LvId| id.vg() == vg && id.lv() == name;
        let is_there = pools.any(|one| one.is_pool() && is_it(&one.id));
        let name = name.as_str();
        (!is_there).then(|| format!("thin_pool = {name:?} in {file}: {vg} has no such pool"))
    });
    missing.map(Finding::warning).collect()
}

pub fn duplicate_groups(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let mut numbers: BTreeMap<_, usize> = BTreeMap::new();
    for group in &lvm.groups {
        let number = numbers.entry(&group.name).or_default();
        *number = number.saturating_add(1);
    }
    let twins = numbers.into_iter().filter(|(_, number)| *number > 1);
    let found = twins.map(|(vg, number)| {
        let finding = Finding::failed(lvm::twins(vg, number)).on(vg);
        finding.run(format!("vgrename UUID {vg}-2"))
    });
    found.collect()
}

/// Groups on disks that lvm.conf or the devices file leaves out.
pub fn hidden_groups(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let mut groups: BTreeMap<&str, (bool, Vec<String>)> = BTreeMap::new();
    for Hidden { disk, is_unlisted } in &lvm.hidden {
        let (unlisted, disks) = groups.entry(&disk.vg).or_default();
        *unlisted |= is_unlisted;
        disks.push(disk.path.shown().to_string());
    }
    let found = groups.into_iter().map(|(vg, (is_unlisted, disks))| {
        let (where_told, command) = if is_unlisted {
            let add = |disk: &String| format!("lvmdevices --adddev {disk}");
            let commands: Vec<String> = disks.iter().map(add).collect();
            ("LVM's devices file does not list it", commands.join(" && "))
        } else {
            (
                "a filter in lvm.conf leaves it out",
                "lvmconfig devices/filter devices/global_filter, and correct what that prints"
                    .to_owned(),
            )
        };
        Finding::warning(format!("is on {}, and {where_told}", disks.join(", ")))
            .on(&vg)
            .why("a pod that names the group waits with `this node has no volume group`")
            .run(command)
    });
    found.collect()
}

pub fn kept_away(facts: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let found = lvm.kept_away.iter().map(|kept| {
        let vg = &kept.vg;
        let mut named = facts.config.volume_groups.keys();
        let group = lvm.groups.iter().find(|group| group.name == *vg);
        let level = if group.is_some_and(|group| !group.exported) {
            Severity::Failed
        } else if named.any(|name| name.as_str() == vg) {
            Severity::Warning
        } else {
            // Nothing is wrong with another host's group, unless pods of this one are to have it.
            Severity::Note
        };
        Finding::new(level, &kept.why).on(vg)
    });
    found.collect()
}

/// Groups in which LVM soon has no room for a record, a volume or a snapshot more.
pub fn metadata(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let groups = lvm
        .groups
        .iter()
        .filter(|group| group.is_metadata_filling());
    let found = groups.map(|group| {
        let (vg, free) = (&group.name, group.metadata_free.rounded());
        let mut ours = lvm.volumes.iter().filter(|one| one.is_ours);
        Finding::warning(format!("LVM has {free} left for its metadata"))
            .on(vg)
            .noted_unless(ours.any(|one| one.volume.id.vg().as_str() == vg))
            .why("without room no volume is formatted, created or grown")
            .run(format!("vgs -o +vg_mda_size,vg_mda_free {vg}"))
    });
    found.collect()
}

pub fn room(facts: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let groups = lvm.groups.iter();
    let found = groups.filter_map(|group| {
        let mut tables = facts.config.volume_groups.iter();
        let (vg, policy) = tables.find(|(name, _)| name.as_str() == group.name)?;
        let takes_space = policy.create && policy.thin_pool.is_none();
        (takes_space && group.free <= policy.reserve).then(|| {
            let (free, reserve) = (group.free.rounded(), policy.reserve.rounded());
            Finding::warning(format!(
                "create = true, and of the {free} that are free `reserve` keeps {reserve}"
            ))
            .on(vg)
            .why("a volume that is not there yet cannot be made")
            .run(format!("vgextend {vg} DISK"))
        })
    });
    found.collect()
}
