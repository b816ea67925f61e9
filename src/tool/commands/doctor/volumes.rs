//! `flexvolume-lvm doctor` on groups and volumes: for every volume that the driver knows, whether the next mount
//! would fail.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::findings::{Checks, Level};
use super::{faults, groups, storage};
use crate::commands::survey::{Ask, Outcome, Seen, Walk};
use driver::config::Loaded;
use driver::fs::Condition;
use driver::host::{Host, own_name};
use driver::lvm::{GroupLocks, Volume};
use driver::names::Shown;
use driver::names::VgName;
use driver::volume::{Content, Decision, Device, Place, Reason, extend_pool, of_locks};

/// For how long volumes are read.
const LONGEST: Duration = Duration::from_secs(10);

/// `can_lock`: without that no volume can be looked at as a mount does.
pub(super) fn look_at_lvm(checks: &mut Checks, host: &Host, config: &Loaded, can_lock: bool) {
    let walk = match Walk::begin(host, config) {
        Ok(walk) => walk,
        Err(error) => {
            checks.failed("lvm", format!("{error:#}"));
            return;
        }
    };
    let number = format!("{} logical volumes", walk.volumes.len());
    checks.ok("lvm", number);
    look_at_tables(checks, &walk);
    groups::look_at(checks, &walk);
    storage::look_at(checks, &walk);
    faults::look_at(checks, &walk);
    let (mut left_out, mut told) = (Vec::new(), BTreeSet::new());
    let mut locks = BTreeMap::new();
    for volume in &walk.volumes {
        look_at_volume(checks, &walk, volume, &mut locks);
        if volume.is_pool() || config.problem.is_some() || !can_lock {
            continue; // The last two are said already.
        }
        let (id, record) = (&volume.id, &volume.record);
        let is_ours = record.made.is_some()
            || record.making.is_some()
            || record.new
            || walk.is_mounted_for_pods(volume);
        // A volume that pods read is well, though none could write to it now.
        let ask = Ask {
            read_only: walk.is_only_read(volume),
            ..Ask::default()
        };
        let verdict = walk.verdict(id, ask, LONGEST, |seen| {
            look_at_content(checks, seen);
            None
        });
        match &verdict.outcome {
            Outcome::Decided(Decision::Look(_)) if is_ours => left_out.push(id.to_string()),
            // Nothing is wrong with a volume that another node uses, and errors are named already.
            Outcome::Decided(Decision::Refuse(
                Reason::HeldElsewhere(_) | Reason::FilesystemFailed(Place::Here(_), _),
            ))
            | Outcome::Busy(_) => {}
            // A volume without our tag may be the host's own: it is reported only if it is broken.
            Outcome::Decided(Decision::Refuse(reason)) if !is_ours && !reason.is_broken() => {}
            Outcome::Decided(Decision::Refuse(reason)) => {
                let finding = format!("the next mount is refused: {}", reason.of(id));
                let level = if is_ours {
                    Level::Failed
                } else {
                    Level::Warning
                };
                // All volumes of groups with one name are refused in the same words.
                if told.insert(finding.clone()) {
                    checks.add("next-mount", level, finding).on(id);
                }
            }
            Outcome::Decided(_) | Outcome::Repair(_) | Outcome::Tried(..) => {}
            Outcome::Unknown(error) => {
                checks.warning("next-mount", error).on(id);
            }
        }
    }
    if !left_out.is_empty() {
        let finding = format!(
            "not looked at within {} s: {}; `{} check` looks at all",
            LONGEST.as_secs(),
            left_out.join(", "),
            own_name()
        );
        checks.warning("volumes", finding);
    }
}

fn look_at_content(checks: &mut Checks, seen: &Seen) {
    if let Some(Content::Filesystem(found)) = &seen.facts.content
        && found.condition == Condition::Errors
    {
        let id = &seen.facts.id;
        checks
            .warning(
                "filesystem-errors",
                "the kernel met errors in its filesystem",
            )
            .on(id)
            .why("the next mount checks it, and fails if that needs a decision")
            .run(format!("{} check {id}; dmesg", own_name()));
    }
}

/// Tables of config.toml whose group or pool is missing.
fn look_at_tables(checks: &mut Checks, walk: &Walk) {
    let config = walk.config;
    for (vg, policy) in &config.volume_groups {
        if !walk.has_group(vg.as_str()) {
            let finding = format!(
                "[volume_group.{vg}] in {}: this node has no such group",
                config.file
            );
            checks.warning("config", finding);
            continue;
        }
        let Some(name) = &policy.thin_pool else {
            continue;
        };
        let is_it = |volume: &&Volume| volume.id.vg() == vg && volume.id.lv() == name;
        if !walk.volumes.iter().find(is_it).is_some_and(Volume::is_pool) {
            let finding = format!(
                "thin_pool = {:?} in {}: {vg} has no such pool",
                name.as_str(),
                config.file
            );
            checks.warning("config", finding);
        }
    }
}

fn look_at_volume(
    checks: &mut Checks,
    walk: &Walk,
    volume: &Volume,
    locks: &mut BTreeMap<VgName, GroupLocks>,
) {
    let id = &volume.id;
    let mut warn = |check, finding: String, why, command: String| {
        let finding = checks.warning(check, finding).on(id);
        finding.why(why).run(command);
    };
    if !volume.health.is_empty() {
        warn(
            "volume-health",
            format!("LVM says {:?}", volume.health),
            "it may lose data, or cannot be activated",
            format!("lvs -a -o +devices {id}"),
        );
    }
    if let Some(fs) = &volume.record.making {
        warn(
            "mkfs-unfinished",
            format!("mkfs.{fs} was not seen to end"),
            "the next mount makes it again",
            format!("{} check {id}", own_name()),
        );
    }
    if volume.record.permission.is_some() {
        warn(
            "may-be-formatted",
            "the next mount may format it, as an operator allowed".to_owned(),
            "the permission is good for a day",
            format!("{} check {id}", own_name()),
        );
    }
    if walk.is_kept_idle(volume) {
        warn(
            "kept-from-others",
            "active here, and nothing uses it".to_owned(),
            "no other node can have it; only a pod that is just starting needs it so",
            format!("lvchange -an {id}"),
        );
    }
    let limit = walk.config.thin_pool_limit;
    if volume.is_pool_filled_to(limit) {
        let full: Vec<_> = volume.filled_to(limit).collect();
        let findings = full.iter().map(|(what, percent)| {
            let (pool, size, percent) = (id.clone(), volume.size, *percent);
            Reason::PoolFull {
                pool,
                size,
                what,
                percent,
                limit,
            }
            .of(id)
        });
        let extend: Vec<_> = full
            .iter()
            .map(|(what, _)| extend_pool(id, volume.size, what))
            .collect();
        let first = if volume.free.get() == 0 {
            format!("vgextend {} DISK, then: ", id.vg())
        } else {
            String::new()
        };
        warn(
            "pool-full",
            findings.collect::<Vec<_>>().join(". "),
            "its volumes run full with it",
            format!("{first}{}", extend.join(" && ")),
        );
    }
    // The next mount does not ask for the lock of what is mounted already.
    let is_mounted = |device: &Device| !walk.mounts(device.number).is_empty();
    if let Some(lock) = &volume.lock
        && walk.device(volume).is_some_and(is_mounted)
    {
        let vg = id.vg();
        let ask = || GroupLocks::ask(walk.host, vg, walk.config.limits.query);
        let its = locks.entry(vg.clone()).or_insert_with(ask);
        if let Some(reason) = of_locks(&its.of(Some(lock)), vg, true) {
            let finding = format!("mounted, but {}", reason.of(id));
            checks.failed("volume-lock", finding).on(id);
        }
    }
    if volume.active && !volume.is_pool() && matches!(Device::find(walk.host.kernel, id), Ok(None))
    {
        let finding = format!("active, but {} is missing", id.device().shown());
        checks
            .failed("device-node", finding)
            .on(id)
            .why("it cannot be mounted")
            .run(format!("vgmknodes {}", id.vg()));
    }
}
