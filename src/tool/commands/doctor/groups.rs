//! What `flexvolume-lvm doctor` says of groups that cannot give pods what they have: exported, another host's,
//! without locks, left out by lvm.conf, or full.

use std::collections::BTreeSet;

use super::findings::{Checks, Level};
use crate::commands::survey::Walk;
use driver::host::Command;
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
    look_at_activation(checks, walk);
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

/// lvm.conf may list what is activated at all, and what only for reading: groups and volumes by name, and
/// tags, which this does not follow.
fn look_at_activation(checks: &mut Checks, walk: &Walk) {
    let ours = walk.volumes.iter().filter(|volume| {
        volume.record.made.is_some() || walk.config.volume_groups.contains_key(volume.id.vg())
    });
    let ours: Vec<_> = ours.filter(|volume| !volume.is_pool()).collect();
    for (key, finding) in [
        ("volume_list", "leaves it out, so it cannot be activated"),
        (
            "read_only_volume_list",
            "has it, so nothing can be written to it",
        ),
    ] {
        let Some(list) = list(walk, key) else {
            continue;
        };
        let mut groups = BTreeSet::new();
        for volume in &ours {
            let id = &volume.id;
            let is_in = list.contains(&id.to_string()) || list.contains(id.vg().as_str());
            if is_in == (key == "read_only_volume_list") && groups.insert(id.vg()) {
                checks
                    .failed("volume-list", format!("`{key}` in lvm.conf {finding}"))
                    .on(id)
                    .run(format!(
                        "lvmconfig activation/{key}, and correct what that prints"
                    ));
            }
        }
    }
}

/// What a list of lvm.conf's holds. None: it is not set, or has a tag.
fn list(walk: &Walk, key: &str) -> Option<BTreeSet<String>> {
    let command = Command::reads("lvmconfig", walk.config.limits.query);
    // Exit code 5: it is not set.
    let command = command
        .args(["--quiet", "--quiet"])
        .args([format!("activation/{key}")])
        .accept(&[0, 5]);
    let output = walk.host.run(&command).ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, list) = said.split_once('=')?;
    let words = list
        .split(|c: char| "[], \n".contains(c))
        .map(|word| word.trim_matches('"'));
    let words: BTreeSet<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    (!words.iter().any(|word| word.contains('@'))).then_some(words)
}
