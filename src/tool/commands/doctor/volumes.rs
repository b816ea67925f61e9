//! Checks of volumes: for every one that the driver knows, whether the next mount would fail.

use std::collections::BTreeSet;

use super::facts::{Facts, LONGEST, Lvm, VolumeFacts};
use super::findings::{Finding, Severity};
use crate::commands::survey::Outcome;
use crate::commands::time::date;
use driver::host::{Lack, own_name};
use driver::names::Shown;
use driver::volume::{Decision, Place, Reason, extend_pool, of_header, of_locks};

pub fn lost(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let found = lvm.lost.iter().map(|id| {
        let finding = Finding::failed(Reason::Unknown.of(id)).on(id);
        finding.why("pods have it mounted").run("pvs -a")
    });
    found.collect()
}

/// A volume that was made tomorrow.
pub fn clock(facts: &Facts, lvm: &Lvm) -> Vec<Finding> {
    const A_DAY: u64 = 86_400;
    let youngest = lvm.volumes.iter().max_by_key(|one| one.volume.created);
    let ahead = youngest.filter(|one| one.volume.created > facts.now.saturating_add(A_DAY));
    let found = ahead.map(|one| {
        Finding::warning(format!(
            "the clock is slow: it says {}, and {} was made at {}",
            date(facts.now),
            one.volume.id,
            date(one.volume.created)
        ))
        .why("times in the log are wrong, and so are the ages of volumes, remains and permissions")
        .run("timedatectl")
    });
    found.into_iter().collect()
}

pub fn failed(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    let finding = Finding::failed(one.failed.as_ref()?.of(id));
    let finding = finding.why("pods cannot rely on what they write there");
    Some(finding.run("dmesg"))
}

pub fn filesystem_errors(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    one.has_errors.then(|| {
        Finding::warning("the kernel met errors in its filesystem")
            .why("the next mount checks it, and fails if that needs a decision")
            .run(format!("{} check {id}; dmesg", own_name()))
    })
}

pub fn filesystem_full(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    let finding = Finding::warning(match one.lack? {
        Lack::Space => "its filesystem is full",
        Lack::Inodes => "no inode is left in its filesystem",
    });
    // A larger ext has more inodes: mke2fs(8), -i.
    let grow = format!("delete files, or: lvextend --resizefs --extents +20%LV {id}");
    Some(finding.why("pods cannot create files in it").run(grow))
}

pub fn health(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    let health = &one.volume.health;
    (!health.is_empty() && !one.volume.has_overflowed()).then(|| {
        Finding::warning(format!("LVM says {health:?}"))
            .why("it may lose data, or cannot be activated")
            .run(format!("lvs -a -o +devices {id}"))
    })
}

pub fn mkfs_unfinished(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let (id, record) = (&one.volume.id, &one.volume.record);
    let finding = match (record.making_in_luks(), record.making.as_ref()?) {
        (Some((fs, _)), _) => format!("luksFormat, or mkfs.{fs} inside, was not seen to end"),
        (None, fs) => format!("mkfs.{fs} was not seen to end"),
    };
    let finding = Finding::warning(finding);
    let finding = finding.why(match &one.next_mount {
        Some(Outcome::Decided(Decision::Refuse(_))) => "the next mount is refused",
        Some(Outcome::Decided(Decision::Mount(_))) => "the next mount records it",
        _ => "the next mount makes it again",
    });
    Some(finding.run(format!("{} check {id}", own_name())))
}

pub fn may_be_formatted(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    one.volume.record.permission.as_ref().map(|_| {
        Finding::warning("the next mount may format it, as an operator allowed")
            .why("the permission is good for a day")
            .run(format!("{} check {id}", own_name()))
    })
}

pub fn kept_from_others(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    one.is_kept_idle.then(|| {
        Finding::warning("active here, and nothing uses it")
            .why("no other node can have it; only a pod that is just starting needs it so")
            .run(format!("lvchange -an {id}"))
    })
}

/// Whoever has it, its data is lost when it is full.
pub fn snapshots_full(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    const NEARLY_FULL: u8 = 80;
    let volumes = lvm.volumes.iter().map(|one| &one.volume);
    let snapshots = volumes.filter(|volume| {
        let mut roles = volume.role.split(',');
        // One that ran full is refused, and the words of that say what helps.
        roles.any(|part| part == "thicksnapshot") && !volume.has_overflowed()
    });
    let found = snapshots.filter_map(|snapshot| {
        let (_, percent) = snapshot.filled_to(NEARLY_FULL).next()?;
        let finding = Finding::warning(format!("it is {percent:.0} % full"));
        let finding = finding.why("a snapshot that is full is lost");
        let finding = finding.run(format!("lvextend --extents +20%ORIGIN {}", snapshot.id));
        Some(finding.on(&snapshot.id))
    });
    found.collect()
}

pub fn pool_full(facts: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let (volume, id, size) = (&one.volume, &one.volume.id, one.volume.size);
    let limit = facts.config.thin_pool_limit;
    if !volume.is_pool_filled_to(limit) {
        return None;
    }
    let (mut findings, mut commands) = (Vec::new(), Vec::new());
    for (what, percent) in volume.filled_to(limit) {
        let pool = id.clone();
        let full = Reason::PoolFull {
            pool,
            size,
            what,
            percent,
            limit,
        };
        findings.push(full.of(id));
        commands.push(extend_pool(id, size, what));
    }
    let first = if volume.free.get() == 0 {
        format!("vgextend {} DISK, then: ", id.vg())
    } else {
        String::new()
    };
    let finding = Finding::warning(findings.join(". "));
    let finding = finding.why("its volumes run full with it");
    Some(finding.run(format!("{first}{}", commands.join(" && "))))
}

/// Its LUKS2 header, of which there are two copies.
pub fn luks_header(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let (id, recorded) = (&one.volume.id, one.volume.record.luks.as_deref()?);
    let header = match one.header.as_ref()? {
        Ok(header) => header.as_ref(),
        Err(error) => {
            let finding = format!("its LUKS2 header cannot be read: {error}");
            return Some(Finding::failed(finding).why("without it nobody can read the volume"));
        }
    };
    if let Err(reason) = of_header(recorded, header) {
        // The next mount is refused for it, and that is said already.
        let is_said = matches!(
            &one.next_mount,
            Some(Outcome::Decided(Decision::Refuse(Reason::Header { .. })))
        );
        let finding = Finding::failed(reason.of(id));
        return (!is_said).then(|| finding.why("it cannot be opened again once it is closed"));
    }
    header.is_some_and(|header| !header.is_whole).then(|| {
        Finding::warning("one of the two copies of its LUKS2 header is damaged")
            .why("once the other one is, too, nobody can read the volume; each cryptsetup mends it from that")
            .run(format!("cryptsetup luksUUID {}", id.device().shown()))
    })
}

pub fn lock(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    let reason = of_locks(one.lock.as_ref()?, id.vg(), true)?;
    Some(Finding::failed(format!("mounted, but {}", reason.of(id))))
}

pub fn device_node(_: &Facts, one: &VolumeFacts) -> Option<Finding> {
    let id = &one.volume.id;
    one.lacks_node.then(|| {
        Finding::failed(format!("active, but {} is missing", id.device().shown()))
            .why("it cannot be mounted")
            .run(format!("vgmknodes {}", id.vg()))
    })
}

pub fn next_mount(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let mut told = BTreeSet::new();
    let (ours, others): (Vec<_>, Vec<_>) = lvm.volumes.iter().partition(|one| one.is_ours);
    let found = ours.into_iter().chain(others).filter_map(|one| {
        let id = &one.volume.id;
        let reason = match one.next_mount.as_ref()? {
            Outcome::Decided(Decision::Refuse(reason)) => reason,
            Outcome::Tried(_, what) => {
                let finding = format!("the next mount is refused: {what}");
                return Some(Finding::failed(finding).on(id).noted_unless(one.is_ours));
            }
            Outcome::Unknown(error) => {
                return Some(Finding::warning(error).on(id).noted_unless(one.is_ours));
            }
            _ => return None,
        };
        let is_well = match reason {
            // Nothing is wrong with a volume that another node uses, and errors are named already.
            Reason::HeldElsewhere(_) | Reason::FilesystemFailed(Place::Here(_), _) => true,
            // What is nobody's is well as it is, unless it is broken.
            _ => !one.is_ours && !reason.is_broken(),
        };
        let level = if one.is_ours {
            Severity::Failed
        } else {
            Severity::Note
        };
        let refused = match reason {
            // Its paragraph is that of the pool.
            Reason::PoolFull { pool, .. } => format!("the thin pool {pool} is full"),
            _ => reason.of(id),
        };
        let finding = format!("the next mount is refused: {refused}");
        // All volumes of groups with one name are refused in the same words. Ours come first.
        (!is_well && told.insert(finding.clone())).then(|| Finding::new(level, finding).on(id))
    });
    found.collect()
}

/// Volumes for which there was no time.
pub fn left_out(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let is_unread = |one: &&VolumeFacts| {
        matches!(one.next_mount, Some(Outcome::Decided(Decision::Look(_)))) && one.is_ours
    };
    let unread = lvm.volumes.iter().filter(is_unread);
    let names: Vec<String> = unread.map(|one| one.volume.id.to_string()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    vec![Finding::warning(format!(
        "not looked at within {} s: {}; `{} check` looks at all",
        LONGEST.as_secs(),
        names.join(", "),
        own_name()
    ))]
}
