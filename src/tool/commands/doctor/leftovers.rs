//! Checks of what pods left behind in kubelet's directories.

use std::time::Duration;

use super::facts::{Facts, Mounted, Unmounted};
use super::findings::Finding;
use driver::host::own_name;
use driver::names::Shown;

pub fn mounts(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.mounts.iter().filter_map(leftover).collect();
    let count = facts.mounts.len();
    found.push(Finding::ok(format!("{count} in kubelet's directories")));
    found
}

fn leftover(mount: &Mounted) -> Option<Finding> {
    let at = mount.at.shown();
    Some(if mount.source_is_gone {
        let source = mount.source.shown();
        Finding::failed(format!("is mounted from {source}, which has gone"))
            .on(&at)
            .why("every access to it fails")
            .run(format!("end its pod, or: umount {at}"))
    } else if !is_old(mount.age) {
        return None;
    } else if let Some(uid) = &mount.ended_pod {
        Finding::warning(format!("is mounted for pod {uid}, which has no logs here"))
            .on(&at)
            .why("no other node gets the volume, and nothing checks it, while it is mounted")
            .run(format!("if kubelet knows no such pod: umount {at}"))
    } else if mount.is_nodes_alone {
        Finding::warning("is mounted for the whole node, and for no pod")
            .on(&at)
            .why("no other node gets the volume while it is mounted")
            .run(format!("if kubelet starts no pod with it: umount {at}"))
    } else {
        return None;
    })
}

pub fn pod_directories(facts: &Facts) -> Vec<Finding> {
    let old = facts.unmounted.iter().filter(|one| is_old(one.age));
    let found =
        old.map(|Unmounted { at, has_files, .. }| {
            let at = at.shown();
            if *has_files {
                Finding::warning("nothing is mounted there, but files are in it")
                .on(&at)
                .why("a pod wrote them to the host's own disk, or kubelet cannot clear them away")
                .run(format!("ls -la {at}"))
            } else {
                let me = own_name();
                Finding::warning("nothing is mounted there")
                .on(&at)
                .why("its pod waits for the volume, or has ended and kubelet cannot clear it away")
                .run(format!("{me} log, and if kubelet knows no such pod: rmdir {at}"))
            }
        });
    found.collect()
}

/// Younger leftovers may belong to a pod that begins or ends just now.
fn is_old(age: Option<Duration>) -> bool {
    age.is_some_and(|age| age >= Duration::from_secs(600))
}
