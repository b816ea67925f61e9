//! Lists all volume groups and volumes of this node, as far as LVM answers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Error, Result};

use super::find::{all_groups, all_volumes, find_group, group_names, volumes_of};
use super::group::Group;
use super::volume::Volume;
use crate::host::Host;
use crate::names::VgName;

#[derive(Default)]
pub struct Listed {
    /// All visible volumes, sorted by name, pools among them.
    pub volumes: Vec<Volume>,
    pub groups: Vec<Group>,
    /// The groups for which LVM gave no answer, each with LVM's error.
    pub silent: BTreeMap<VgName, String>,
}

/// Asks LVM for everything at once. If that fails, asks for each group separately: a group that LVM cannot read now
/// must not hide the others.
///
/// # Errors
/// LVM answers neither for all groups at once nor for a single one.
pub fn list(host: &Host) -> Result<Listed> {
    let mut listed = at_once(host).or_else(|error| one_by_one(host, error))?;
    let mut exported = Vec::new();
    for group in listed.groups.iter().filter(|group| group.exported) {
        exported.push(group.name.clone());
    }
    if !exported.is_empty() {
        // If this fails, at least the groups themselves are listed.
        let volumes = volumes_of(host, &exported).unwrap_or_default();
        listed.volumes.extend(volumes);
    }
    listed.volumes.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(listed)
}

fn at_once(host: &Host) -> Result<Listed> {
    Ok(Listed {
        volumes: all_volumes(host)?,
        groups: all_groups(host)?,
        silent: BTreeMap::new(),
    })
}

/// Asks for each group separately. `error`: why LVM does not answer for all at once.
fn one_by_one(host: &Host, error: Error) -> Result<Listed> {
    let mut listed = Listed::default();
    let names: BTreeSet<VgName> = group_names(host).unwrap_or_default();
    for vg in names {
        match one(host, &vg) {
            Ok((group, volumes)) => {
                listed.groups.extend(group);
                listed.volumes.extend(volumes);
            }
            Err(why) => {
                listed.silent.insert(vg, format!("{why:#}"));
            }
        }
    }
    if listed.groups.is_empty() {
        return Err(error);
    }
    Ok(listed)
}

fn one(host: &Host, vg: &VgName) -> Result<(Option<Group>, Vec<Volume>)> {
    let group = find_group(host, vg)?;
    let is_exported = group.as_ref().is_some_and(|group| group.exported);
    // The caller adds the volumes of exported groups.
    let volumes = if is_exported {
        Vec::new()
    } else {
        volumes_of(host, &[vg.to_string()])?
    };
    Ok((group, volumes))
}
