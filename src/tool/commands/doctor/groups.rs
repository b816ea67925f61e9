//! Checks of what LVM does not show as usual: groups, disks, and volumes that were not looked at.

use super::facts::{LONGEST, LvmFacts, NodeFacts};
use crate::commands::survey::{Finding, Health, Verdict};
use driver::host::own_name;
use driver::lvm::{Disk, Fault};
use driver::names::Shown;
use driver::volume::Reason;

/// Tables of config.toml whose group or pool is missing.
pub fn config(facts: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
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
    missing.map(|it| Finding::warning("config", it)).collect()
}

/// Groups on this node's disks that LVM does not show.
pub fn kept_away(facts: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
    let hidden = lvm.kept_away.iter().filter(|kept| !lvm.has_group(&kept.vg));
    let found = hidden.map(|kept| {
        let mut named = facts.config.volume_groups.keys();
        // Nothing is wrong with another host's group, unless pods of this one are to have it.
        let is_named = named.any(|name| name.as_str() == kept.vg);
        let finding = Finding::warning("groups", &kept.why);
        finding.noted_unless(is_named).on(&kept.vg)
    });
    found.collect()
}

pub fn duplicate_disks(_: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
    let copies = lvm
        .disks
        .iter()
        .filter(|disk| disk.fault == Fault::Duplicate);
    let found = copies.map(|Disk { vg, path, .. }| {
        let path = path.shown();
        Finding::failed(
            "duplicate-disks",
            format!("{path} says that it is a disk of this group, and so does another"),
        )
        .on(vg)
        .why("until that is mended, LVM neither activates nor changes a volume of the group")
        // LVM does not know either which of them is the copy.
        .run(format!(
            "lsblk -o NAME,SIZE,SERIAL,WWN, and for the one that is the copy: \
                 vgimportclone --basevgname {vg}-2 DISK; of two paths to one disk leave one \
                 out by `filter` in lvm.conf"
        ))
    });
    found.collect()
}

pub fn lost(_: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
    let found = lvm.lost.iter().map(|id| {
        let finding = Finding::failed("mounts", Reason::Unknown.of(id)).on(id);
        finding.why("pods have it mounted").run("pvs -a")
    });
    found.collect()
}

pub fn left_out(_: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
    let is_unread =
        |one: &&Health| one.is_ours && one.verdict.as_ref().is_some_and(Verdict::is_unread);
    let unread = lvm.volumes.iter().filter(is_unread);
    let names: Vec<String> = unread.map(|one| one.volume.id.to_string()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let finding = format!(
        "not looked at within {} s: {}; `{} check` looks at all",
        LONGEST.as_secs(),
        names.join(", "),
        own_name()
    );
    vec![Finding::warning("volumes", finding)]
}
