//! Asks LVM for volumes and groups.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Deserialize;

use super::group::Group;
use super::report::{LV_FIELDS, ask, read, read_with_warnings};
use super::space::{group_fields, groups_in};
use super::volume::{Lease, Volume};
use super::wait::answer;
use crate::host::{Command, Host, ToolError};
use crate::names::{LvId, VgName};

/// LVM's exit code for a failed command. An unknown name gives the same code. Source: lvm2 tools/errors.h,
/// `ECMD_FAILED`; lvm(8) does not say it.
const FAILED: i32 = 5;

#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Volume(Box<Volume>),
    /// LVM has the volume, but lists it only with `--all`.
    Hidden,
    NoVolume,
    NoGroup,
}

impl Found {
    pub fn volume(self) -> Option<Box<Volume>> {
        match self {
            Self::Volume(volume) => Some(volume),
            Self::Hidden | Self::NoVolume | Self::NoGroup => None,
        }
    }
}

/// Asks LVM for one volume, by name.
///
/// A volume counts as absent only if a report of LVM succeeds and does not list it. Messages are no proof, since they
/// differ between versions of LVM, and the exit code only says that the command failed. Any other failure is an error:
/// a volume that cannot be seen just now must never count as absent.
pub fn find(host: &Host, id: &LvId) -> Result<Found> {
    let found = match ask_for(host, id, &[]) {
        Ok(Found::NoGroup) if matches!(is_listed(host, id.vg(), &[NO_HINTS]), Ok(true)) => {
            find_overlooked(host, id)
        }
        found => found,
    };
    answer(host, Some(id.vg()), found, id)
}

/// Makes LVM ignore its hints, which name the disks that LVM reads. The hints stay the same when a failed disk can be
/// read again. Source: lvm2 lib/label/hints.c.
const NO_HINTS: &str = "--nohints";

/// Asks for a volume again without LVM's old hints. With these hints, LVM did not find the volume's group, though the
/// group is on the disks.
fn find_overlooked(host: &Host, id: &LvId) -> Result<Found, ToolError> {
    if host.is_looking {
        return ask_for(host, id, &[NO_HINTS]);
    }
    // Renews the hints, since the next LVM commands use them, too.
    host.run(&Command::writes("pvscan", host.limits.query).args(["--cache"]))?;
    ask_for(host, id, &[])
}

/// The lock that an activation of the volume takes: for a thin volume, the lock of its pool. `None`: nodes do not share
/// the group, or LVM does not list the pool.
pub fn lock_of(host: &Host, volume: &Volume) -> Option<Lease> {
    let own = volume.lock.clone()?;
    let pool = volume.pool_id().filter(|_| own.args.is_empty());
    let Some(pool) = pool else { return Some(own) };
    find(host, &pool).ok()?.volume()?.lock
}

fn ask_for(host: &Host, id: &LvId, more: &[&str]) -> Result<Found, ToolError> {
    let ask = |fields| ask("lvs", fields, host.limits.query).args(more);
    let command = ask(LV_FIELDS).operand(id.to_string());
    let read = || read_with_warnings(host, &command, |report| report.volumes("lv"));
    let mut answer = read();
    if let Err(ToolError::Failed { code: FAILED, .. }) = answer {
        let list = ask("lv_name").operand(id.vg().as_str());
        match lists(host, &list, "lv", id.lv().as_str()) {
            Ok(false) => return Ok(Found::NoVolume),
            // Somebody has created it meanwhile.
            Ok(true) => answer = read(),
            Err(_) if is_unknown(host, id.vg()) => return Ok(Found::NoGroup),
            Err(_) => {}
        }
    }
    let (volumes, warned) = answer?;
    if volumes.is_empty() {
        return Ok(Found::Hidden);
    }
    match volumes.into_iter().find(|volume| volume.id == *id) {
        Some(volume) => Ok(Found::Volume(Box::new(Volume { warned, ..volume }))),
        None => Err(ToolError::Unintelligible {
            line: command.whole_line(),
            reason: format!("it does not list {id}"),
        }),
    }
}

/// Whether the group is missing from LVM's list of all groups on the disks. That list also has groups of other hosts
/// and shared groups.
fn is_unknown(host: &Host, vg: &VgName) -> bool {
    matches!(is_listed(host, vg, &[]), Ok(false))
}

fn is_listed(host: &Host, vg: &VgName, more: &[&str]) -> Result<bool, ToolError> {
    let all = ["--readonly", "--foreign", "--shared"].iter().chain(more);
    let command = ask("vgs", "vg_name", host.limits.query).args(all);
    lists(host, &command, "vg", vg.as_str())
}

/// A row with nothing but a name.
#[derive(Deserialize)]
struct Named {
    #[serde(alias = "lv_name", alias = "vg_name")]
    name: String,
}

fn lists(host: &Host, command: &Command, kind: &str, name: &str) -> Result<bool, ToolError> {
    let rows: Vec<Named> = read(host, command, |report| report.rows(kind))?;
    Ok(rows.iter().any(|row| row.name == name))
}

/// Whether an LVM command was killed after it had loaded a new table for this volume and before the kernel used it. LVM
/// answers only when no command is at work on the group, so the command that loaded the table has ended.
pub fn has_unused_table(host: &Host, id: &LvId) -> Result<bool> {
    let is_set = is_set_for(host, id, "lv_inactive_table");
    answer(
        host,
        Some(id.vg()),
        is_set,
        format_args!("the tables of {id}"),
    )
}

/// Whether this field of a volume is not empty in LVM's report.
pub(super) fn is_set_for(host: &Host, id: &LvId, field: &str) -> Result<bool, ToolError> {
    let command = ask("lvs", field, host.limits.query).operand(id.to_string());
    let rows: Vec<BTreeMap<String, String>> = read(host, &command, |report| report.rows("lv"))?;
    Ok(rows
        .iter()
        .flat_map(BTreeMap::values)
        .any(|value| !value.is_empty()))
}

pub fn tagged(host: &Host, tag: &str) -> Result<Vec<Volume>> {
    let command = ask("lvs", LV_FIELDS, host.limits.query).operand(format!("@{tag}"));
    let volumes = read(host, &command, |report| report.volumes("lv"));
    answer(
        host,
        None,
        volumes,
        format_args!("volumes with the tag {tag}"),
    )
}

/// All visible volumes, sorted by name.
pub(super) fn all_volumes(host: &Host) -> Result<Vec<Volume>> {
    let command = ask("lvs", LV_FIELDS, host.limits.query);
    let listed = read_with_warnings(host, &command, |report| report.volumes("lv"));
    let (mut volumes, warned) = answer(host, None, listed, "all volumes")?;
    for volume in &mut volumes {
        volume.warned = warned;
    }
    Ok(volumes)
}

/// The volumes of these groups. Asks `vgs`, since `lvs` does not list the volumes of exported groups.
pub(super) fn volumes_of(host: &Host, groups: &[String]) -> Result<Vec<Volume>> {
    let mut command = ask("vgs", LV_FIELDS, host.limits.query);
    for vg in groups {
        command = command.operand(vg.as_str());
    }
    let volumes = read(host, &command, |report| report.volumes("vg"));
    let names = groups.join(", ");
    answer(host, None, volumes, format_args!("the volumes of {names}"))
}

/// The names of all groups that are on the disks. LVM answers without taking a lock.
pub(super) fn group_names(host: &Host) -> Result<BTreeSet<VgName>, ToolError> {
    let without_locks = ["--readonly", "--shared"];
    let command = ask("vgs", "vg_name", host.limits.query).args(without_locks);
    let rows: Vec<Named> = read(host, &command, |report| report.rows("vg"))?;
    let names = rows.iter().filter_map(|row| VgName::parse(&row.name).ok());
    Ok(names.collect())
}

pub(super) fn all_groups(host: &Host) -> Result<Vec<Group>> {
    let command = ask("vgs", &group_fields(), host.limits.query);
    answer(host, None, read(host, &command, groups_in), "all groups")
}

/// One volume group. `None`: LVM lists no such group.
pub fn find_group(host: &Host, vg: &VgName) -> Result<Option<Group>> {
    let command = ask("vgs", &group_fields(), host.limits.query).operand(vg.to_string());
    match read(host, &command, groups_in) {
        Ok(groups) => Ok(groups.into_iter().find(|group| group.name == vg.as_str())),
        Err(ToolError::Failed { code: FAILED, .. }) if is_unknown(host, vg) => Ok(None),
        Err(error) => answer(host, Some(vg), Err(error), format_args!("the group {vg}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::host::{Kernel, Output, Tools};

    /// LVM's answers to three questions: about a volume, about the volumes of its group, about all groups. Each is an
    /// output, or the exit code of a failure.
    struct Answers([Result<&'static str, i32>; 3]);

    impl Tools for Answers {
        fn run(&self, command: &Command) -> Result<Output, ToolError> {
            let [volume, group, groups] = self.0;
            let answer = match command.tool_name() {
                "vgs" => groups,
                _ if command.line().ends_with(" vg/x") => volume,
                _ => group,
            };
            let failed = |code| ToolError::Failed {
                line: command.line(),
                code,
                stderr: "Volume group \"vg\" not found".to_owned(),
            };
            answer.map_err(failed).map(|stdout| Output {
                stdout: stdout.into(),
                ..Output::default()
            })
        }
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn only_a_report_that_lacks_it_says_that_it_is_absent() {
        const NONE: Result<&str, i32> = Ok(r#"{"report":[{"lv":[],"vg":[]}]}"#);
        const OTHER: Result<&str, i32> =
            Ok(r#"{"report":[{"lv":[{"lv_name":"xx"}],"vg":[{"vg_name":"vg2"}]}]}"#);
        const HERE: Result<&str, i32> =
            Ok(r#"{"report":[{"lv":[{"lv_name":"x"}],"vg":[{"vg_name":"vg"}]}]}"#);
        let cases = [
            ("no volumes", [Err(5), NONE, Err(5)], Some(Found::NoVolume)),
            ("others only", [Err(5), OTHER, Err(5)], Some(Found::NoVolume)),
            ("there, and something else failed", [Err(5), HERE, NONE], None),
            ("no groups", [Err(5), Err(5), NONE], Some(Found::NoGroup)),
            ("other groups", [Err(5), Err(5), OTHER], Some(Found::NoGroup)),
            ("a group that may not be used", [Err(5), Err(5), HERE], None),
            ("LVM cannot list", [Err(5), Err(5), Err(5)], None),
            ("LVM does not start", [Err(3), NONE, NONE], None),
            ("killed", [Err(137), NONE, NONE], None),
            ("hidden", [NONE, NONE, NONE], Some(Found::Hidden)),
            ("no report", [Err(5), Ok("x"), Ok("y")], None),
            ("a report without names", [Err(5), Ok(r#"{"report":[{"lv":[{}]}]}"#), HERE], None),
        ];
        for (name, answers, want) in cases {
            let (tools, kernel) = (Answers(answers), Kernel::new().unwrap());
            let limits = crate::config::Limits::default();
            let host = Host::new(&tools, &kernel, &limits);
            let id = LvId::parse("vg/x").unwrap();
            let found = find(&host, &id);
            assert_eq!(found.ok(), want, "{name}");
        }
    }

    /// Somebody creates the volume after LVM was asked for it.
    struct CreatedMeanwhile(AtomicU32);

    impl Tools for CreatedMeanwhile {
        fn run(&self, command: &Command) -> Result<Output, ToolError> {
            const ROWS: &str = r#"{"report":[{"lv":[{"lv_name":"x"}]}]}"#;
            let outputs = [Err(5), Ok(ROWS), Ok(r#"{"report":[{"lv":[]}]}"#)];
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            Answers([outputs[number as usize]; 3]).run(command)
        }
    }

    #[test]
    fn a_volume_that_is_created_meanwhile_is_asked_for_again() {
        let (tools, kernel) = (CreatedMeanwhile(AtomicU32::new(0)), Kernel::new().unwrap());
        let limits = crate::config::Limits::default();
        let host = Host::new(&tools, &kernel, &limits);
        let found = find(&host, &LvId::parse("vg/x").unwrap());
        assert_eq!(found.ok(), Some(Found::Hidden));
    }
}
