//! `flexvolume-lvm doctor` on LVM's own setup: groups that LVM does not see, and volumes that the kernel cannot
//! activate or mount.

use std::collections::BTreeMap;

use super::autoextend;
use super::findings::Checks;
use crate::commands::survey::Walk;
use driver::lvm::{self, Sight};
use driver::names::Shown;

pub fn look_at(checks: &mut Checks, walk: &Walk) {
    look_for_twins(checks, walk);
    look_for_hidden_groups(checks, walk);
    autoextend::look_at(checks, walk);
}

fn look_for_twins(checks: &mut Checks, walk: &Walk) {
    let mut numbers: BTreeMap<_, usize> = BTreeMap::new();
    for group in &walk.groups {
        let number = numbers.entry(&group.name).or_default();
        *number = number.saturating_add(1);
    }
    for (vg, number) in numbers.into_iter().filter(|(_, number)| *number > 1) {
        checks
            .failed("duplicate-groups", lvm::twins(vg, number))
            .on(vg)
            .run(format!("vgrename UUID {vg}-2"));
    }
}

/// Groups on disks that lvm.conf or the devices file leaves out.
fn look_for_hidden_groups(checks: &mut Checks, walk: &Walk) {
    let hidden = groups_beyond(walk, Sight::All);
    if hidden.is_empty() {
        return;
    }
    let unlisted = groups_beyond(walk, Sight::Unlisted);
    for (vg, disks) in hidden {
        let (where_told, command) = if unlisted.contains_key(&vg) {
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
        let finding = format!("is on {}, and {where_told}", disks.join(", "));
        checks
            .warning("hidden-groups", finding)
            .on(&vg)
            .why("a pod that names the group waits with `this node has no volume group`")
            .run(command);
    }
}

/// The groups that LVM would see and does not, with their disks.
fn groups_beyond(walk: &Walk, sight: Sight) -> BTreeMap<String, Vec<String>> {
    let named = &walk.config.volume_groups;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let all = lvm::disks(walk.host, sight);
    for lvm::Disk { vg, path, .. } in all.unwrap_or_default() {
        let is_ours = named.is_empty() || named.keys().any(|name| name.as_str() == vg);
        if is_ours && !walk.has_group(&vg) {
            groups.entry(vg).or_default().push(path.shown().to_string());
        }
    }
    groups
}
