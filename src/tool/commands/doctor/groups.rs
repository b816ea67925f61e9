//! `flexvolume-lvm doctor`: groups whose volumes pods cannot use, as they are exported, another host's, without
//! locks, left out by lvm.conf, or full.

use super::findings::{Checks, Level};
use crate::commands::survey::Walk;
use driver::lvm::{self, Group};

pub fn look_at(checks: &mut Checks, walk: &Walk) {
    for (vg, _, why) in lvm::kept_away(walk.host, &walk.groups, walk.config.limits.query) {
        let group = walk.groups.iter().find(|group| group.name == vg);
        let level = match group {
            Some(group) if !group.exported => Level::Failed,
            _ => level(walk, &vg),
        };
        checks.add("groups", level, why).on(&vg);
    }
    for group in &walk.groups {
        look_at_room(checks, walk, group);
    }
}

/// Nothing is wrong with another host's group, unless pods of this one are to have it.
fn level(walk: &Walk, vg: &str) -> Level {
    let is_named = walk
        .config
        .volume_groups
        .keys()
        .any(|name| name.as_str() == vg);
    if is_named {
        Level::Warning
    } else {
        Level::Note
    }
}

fn look_at_room(checks: &mut Checks, walk: &Walk, group: &Group) {
    let mut tables = walk.config.volume_groups.iter();
    let policy = tables.find(|(name, _)| name.as_str() == group.name);
    let Some((vg, policy)) = policy.filter(|(_, policy)| policy.create) else {
        return;
    };
    if policy.thin_pool.is_none() && group.free <= policy.reserve {
        checks
            .warning(
                "room",
                format!(
                    "create = true, and of the {} that are free `reserve` keeps {}",
                    group.free.rounded(),
                    policy.reserve.rounded()
                ),
            )
            .on(vg)
            .why("a volume that is not there yet cannot be made")
            .run(format!("vgextend {vg} DISK"));
    }
}
