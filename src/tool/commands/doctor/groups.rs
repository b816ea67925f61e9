//! Checks for groups and pools that the config names and LVM does not have, and for volumes that were not looked at.

use super::facts::{LONGEST, LvmFacts, NodeFacts};
use crate::commands::survey::{Finding, Health, Verdict};
use driver::host::own_name;

/// Checks for tables of config.toml whose group or pool is missing.
pub fn config(facts: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
    let file = &facts.config.file;
    let tables = facts.config.volume_groups.iter();
    let missing = tables.filter_map(|(vg, policy)| {
        if !lvm.has_group(vg) {
            return Some(format!(
                "[volume_group.{vg}] in {file}: this node has no such group"
            ));
        }
        let name = policy.thin_pool.as_ref()?;
        if lvm.node.silent.contains_key(vg) {
            return None;
        }
        let mut pools = lvm.volumes.iter().map(|one| &one.volume);
        let is_it = |id: &driver::names::LvId| id.vg() == vg && id.lv() == name;
        let is_there = pools.any(|one| one.is_pool() && is_it(&one.id));
        let name = name.as_str();
        (!is_there).then(|| format!("thin_pool = {name:?} in {file}: {vg} has no such pool"))
    });
    missing.map(|it| Finding::warning("config", it)).collect()
}

pub fn unread_volumes(_: &NodeFacts, lvm: &LvmFacts) -> Vec<Finding> {
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
