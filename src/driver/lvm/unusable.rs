//! Finds groups on this node's disks that this node cannot use: exported, another host's, shared, or several of one
//! name.

use super::group::Group;
use super::lockd::GroupLeases;
use super::report::{ask, is_set, read};
use crate::host::Host;
use crate::names::{Shown, VgName};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// A group on this node's disks that the node cannot use, though no filter of LVM leaves it out.
#[derive(Debug, Clone)]
pub struct KeptAway {
    pub vg: String,
    /// The owner of the group, as a part of a sentence: "of host NAME", or "shared by sanlock".
    pub owner: String,
    /// Why the node cannot use the group, and what to do.
    pub why: String,
}

/// A row of vgs(8) with the fields that may keep this node from a group.
#[derive(Deserialize)]
#[allow(clippy::struct_field_names)] // LVM's own
struct GroupRow {
    vg_name: String,
    vg_systemid: String,
    vg_lock_type: String,
    #[serde(deserialize_with = "is_set")]
    vg_exported: bool,
}

/// Groups that are exported or another host's, and shared groups whose locks this node cannot use.
pub fn kept_away(host: &Host, known: &[Group], limit: Duration) -> Vec<KeptAway> {
    let all = rows(host, &["--foreign", "--shared"], limit).unwrap_or_default();
    let kept = all.into_iter().filter_map(|row| {
        let is_hidden = !known.iter().any(|group| group.name == row.vg_name);
        let why = of_row(host, &row, is_hidden, limit)?;
        let owner = match row.manager() {
            // The other host's administrator chose the system ID, so it is shown as foreign text.
            None => format!("of host {}", row.vg_systemid.shown()),
            Some(manager) => format!("shared by {}", manager.shown()),
        };
        let vg = row.vg_name;
        Some(KeptAway { vg, owner, why })
    });
    kept.collect()
}

/// The rows of all groups. `others`: LVM's options for groups that it would leave out, such as `--foreign`.
fn rows(host: &Host, others: &[&str], limit: Duration) -> Option<Vec<GroupRow>> {
    let fields = "vg_name,vg_systemid,vg_lock_type,vg_exported";
    let command = ask("vgs", fields, limit).args(["--readonly"]).args(others);
    read(host, &command, |report| report.rows("vg")).ok()
}

/// Why LVM does not let this node use or change an existing group: there are several groups of the name, or it is
/// exported, another host's or shared. `None`: none of these.
pub(super) fn obstacle(host: &Host, vg: &VgName, limit: Duration) -> Option<String> {
    let mut its = rows(host, &["--foreign", "--shared"], limit)?;
    its.retain(|row| row.vg_name == vg.as_str());
    match &its[..] {
        [row] => {
            let shown = rows(host, &[], limit)?;
            let is_hidden = !shown.iter().any(|row| row.vg_name == vg.as_str());
            of_row(host, row, is_hidden, limit)
        }
        [] => None,
        several => Some(twins(vg, several.len())),
    }
}

impl GroupRow {
    /// The lock manager, if nodes share the group.
    fn manager(&self) -> Option<&str> {
        Some(&*self.vg_lock_type).filter(|kind| !["", "none"].contains(kind))
    }
}

fn of_row(host: &Host, row: &GroupRow, is_hidden: bool, limit: Duration) -> Option<String> {
    let vg = &VgName::parse(&row.vg_name).ok()?;
    if row.vg_exported {
        return Some(exported(vg));
    }
    let owner = &row.vg_systemid;
    match row.manager() {
        None if !is_hidden || owner.is_empty() => None,
        None => Some(format!(
            "the volume group {vg} belongs to the host whose system ID is {owner:?} \
             (lvmsystemid(7)), so this node leaves it alone. Run the pod there; or once that \
             host uses none of its volumes, run `vgchange --systemid ID {vg}` there, with the \
             ID that `lvm systemid` prints on this node"
        )),
        Some(manager) if is_hidden => Some(format!(
            "the volume group {vg} is shared between nodes ({manager}), and LVM on this node does \
             not use lvmlockd: set `use_lvmlockd = 1` in lvm.conf, start lvmlockd and {manager}, \
             and run `vgchange --lockstart {vg}`"
        )),
        Some(_) => GroupLeases::ask(host, vg, limit).of(None).obstacle(vg),
    }
}

/// The message about an exported group.
pub fn exported(vg: &impl fmt::Display) -> String {
    format!(
        "the volume group {vg} is exported, so that it can move to another host (vgexport(8)); if it stays on this \
         one, run `vgimport {vg}`"
    )
}

/// The message about several groups of one name.
pub fn twins(vg: &impl fmt::Display, number: usize) -> String {
    format!(
        "{number} volume groups are called {vg}, so LVM uses none of them by that name. Perhaps a disk was \
         copied: compare them (`vgs -o vg_name,vg_uuid,pv_name`), and rename all but one (`vgrename UUID \
         {vg}-2`)"
    )
}
