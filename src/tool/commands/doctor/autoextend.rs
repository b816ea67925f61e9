//! The check of thin pools and snapshots: whether anything extends them before they are full.

use super::facts::{Facts, Lvm, VolumeFacts, Watch, is_thick_snapshot};
use super::findings::Finding;
use driver::names::Bytes;

/// Percentage from which a snapshot that nothing extends is named: a full one is lost for good.
const NEARLY_FULL: u8 = 80;

pub fn autoextend(facts: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let problem = lvm.watch_problem.iter().map(Finding::warning);
    let limit = facts.config.thin_pool_limit;
    let volumes = lvm.volumes.iter();
    let found = volumes.filter_map(|one| {
        let watch = one.watch.as_ref()?;
        let (problem, command) = if is_thick_snapshot(&one.volume) {
            of_snapshot(one, watch)?
        } else {
            of_pool(lvm, one, watch, limit)?
        };
        let why = if is_thick_snapshot(&one.volume) {
            "a snapshot that is full is lost"
        } else {
            "when it is full, its pods cannot write"
        };
        let finding = Finding::warning(problem).on(&one.volume.id);
        Some(finding.why(why).run(command))
    });
    problem.chain(found).collect()
}

/// The fault, and the command that helps.
type Problem = Option<(String, String)>;

fn of_snapshot(one: &VolumeFacts, watch: &Watch) -> Problem {
    let (id, threshold) = (&one.volume.id, watch.monitor.settings.snapshot);
    if threshold < 100 {
        return unwatched(one, watch, threshold);
    }
    let (_, percent) = one.volume.filled_to(NEARLY_FULL).next()?;
    Some((
        format!(
            "it is {percent:.0} % full, and LVM does not extend it: snapshot_autoextend_threshold is 100"
        ),
        format!("lvextend --extents +20%ORIGIN {id}"),
    ))
}

fn of_pool(lvm: &Lvm, one: &VolumeFacts, watch: &Watch, limit: u8) -> Problem {
    let (pool, id) = (&one.volume, &one.volume.id);
    let threshold = watch.monitor.settings.pool;
    let unwatched = unwatched(one, watch, threshold);
    // A full one is named already, with the command that helps at once.
    if unwatched.is_some() || pool.is_pool_filled_to(limit) {
        return unwatched;
    }
    let volumes = lvm.volumes.iter().map(|one| &one.volume);
    let sizes = volumes.filter(|volume| volume.is_in(pool));
    let sizes = sizes.map(|volume| volume.size.get());
    let all = Bytes::new(sizes.fold(0, u64::saturating_add));
    let (why_not, command) = if all <= pool.size {
        return None;
    } else if threshold >= 100 {
        (
            "thin_pool_autoextend_threshold is 100".to_owned(),
            format!(
                "lvextend --size {}b {id}, or set thin_pool_autoextend_threshold = 80 in the section activation \
                 of lvm.conf",
                all.get()
            ),
        )
    } else if pool.free.get() == 0 {
        let vg = id.vg();
        (
            format!("nothing is free in {vg}"),
            format!("vgextend {vg} DISK"),
        )
    } else {
        return None;
    };
    let (all, size) = (all.rounded(), pool.size.rounded());
    let problem =
        format!("its volumes can take {all}, it has {size}, and LVM does not extend it: {why_not}");
    Some((problem, command))
}

fn unwatched(one: &VolumeFacts, watch: &Watch, threshold: u64) -> Problem {
    if threshold >= 100 || watch.monitor.is_watched != Some(false) {
        return None;
    }
    let first = if !watch.has_dmeventd {
        "install dmeventd (elsewhere than on Debian, device-mapper-event), then: "
    } else if watch.monitor.settings.is_off {
        "set monitoring = 1, in the section activation of lvm.conf, then: "
    } else {
        ""
    };
    Some((
        format!("LVM is to extend it at {threshold} %, but dmeventd does not watch it"),
        format!("{first}lvchange --monitor y {}", one.volume.id),
    ))
}
