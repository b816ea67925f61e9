//! `flexvolume-lvm check --idle`: whether a volume is unused, so that another driver may take it, or a person may
//! rename or remove it.

use anyhow::Result;
use serde::Serialize;

use crate::commands::survey::{Pods, Request, SeenVolume, look, uid_of};
use crate::output::{Printed, printed};
use driver::config::{Config, Loaded};
use driver::host::{Host, own_name};
use driver::names::{LvId, Shown};
use driver::volume::{Decision, Facts, Lvm, Reason, Subject, Uses, lock, not_active, users};

#[derive(Serialize)]
struct IdleReport {
    volume: String,
    ready: bool,
    obstacles: Vec<Obstacle>,
}

/// Why a volume is not idle, or why others could not use it now.
#[derive(Serialize)]
struct Obstacle {
    /// A stable word for programs.
    reason: &'static str,
    message: String,
}

impl Obstacle {
    fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message }
    }

    fn of(id: &LvId, reason: &Reason) -> Self {
        Self::new(reason.into(), reason.message(id))
    }
}

/// Checks whether a volume is active and nothing uses it.
pub fn check(host: &Host, config: &Loaded, id: &LvId, json: bool) -> Result<Printed> {
    let obstacles = match seen(host, config.require()?, id) {
        Ok(seen) => obstacles(host, &seen),
        Err(error) if error.is::<lock::Busy>() => {
            vec![Obstacle::new("busy", format!("{error:#}"))]
        }
        Err(error) => return Err(error),
    };
    let report = IdleReport {
        volume: id.to_string(),
        ready: obstacles.is_empty(),
        obstacles,
    };
    let text = if report.ready {
        format!("{id} is ready: it is active, and nothing has it mounted or open\n")
    } else {
        lines(&report.obstacles)
    };
    printed(&report, text, json, u8::from(!report.ready))
}

fn lines(obstacles: &[Obstacle]) -> String {
    let lines = obstacles.iter().map(|one| format!("{}\n", one.message));
    lines.collect()
}

/// Looks under the volume's lock who uses it.
fn seen(host: &Host, config: &Config, id: &LvId) -> Result<SeenVolume> {
    let request = Request {
        unread: true,
        users: true,
        ..Request::default()
    };
    look(Subject { host, config, id }, None, request)
}

fn is_missing(seen: &SeenVolume) -> bool {
    seen.facts.device.is_none() && matches!(seen.facts.lvm, Some(Lvm::NoVolume))
}

/// Everything that keeps the volume from being ready: its users and a shared group; if it has no users, also an open
/// LUKS2 device. If none of these is there: why nobody could use the volume now.
fn obstacles(host: &Host, seen: &SeenVolume) -> Vec<Obstacle> {
    let (facts, id) = (&seen.facts, &seen.facts.id);
    let is_unknown = matches!(seen.decision, Decision::Refuse(Reason::Unknown));
    // Everyone who has a suspended device open waits until it is resumed. So the other users are not listed.
    if let Some(reason) = facts.uses.as_ref().and_then(Uses::waits)
        && !is_unknown
    {
        return vec![Obstacle::of(id, &reason)];
    }
    let mut found = mounts(host, facts);
    let others = users(facts).into_iter();
    found.extend(others.map(|user| Obstacle::of(id, &user.into())));
    if let Some(inside) = facts.inside().filter(|_| found.is_empty()) {
        let device = inside.device.path.quoted();
        let message = format!(
            "{id} is encrypted and open, and nothing has it mounted: run `cryptsetup close {device}`"
        );
        found.push(Obstacle::new("open", message));
    }
    if facts.volume().is_some_and(|volume| volume.lock.is_some()) {
        let message = format!(
            "{id} is in a volume group that nodes share (lvmlockd), where no CSI driver activates it: leave it as \
             it is"
        );
        found.push(Obstacle::new("shared", message));
    }
    if found.is_empty() {
        found.extend(not_usable(seen));
    }
    found
}

/// Why nobody could use the volume now, even if it has no user.
fn not_usable(seen: &SeenVolume) -> Option<Obstacle> {
    let id = &seen.facts.id;
    let reason = match &seen.decision {
        _ if is_missing(seen) => &Reason::NoVolume(None),
        Decision::Activate => return Some(Obstacle::new("inactive", not_active(id))),
        Decision::Resume => &Reason::Suspended(id.dm_name()),
        Decision::Refuse(reason) => reason,
        Decision::Look(_)
        | Decision::Ready
        | Decision::Bind(_)
        | Decision::Restrict { .. }
        | Decision::Mount(_)
        | Decision::Make { .. }
        | Decision::Open { .. }
        | Decision::Create(_)
        | Decision::Extend(_) => return None,
    };
    Some(Obstacle::of(id, reason))
}

/// An obstacle for each of kubelet's mounts of the volume, with what a person can do.
fn mounts(host: &Host, facts: &Facts) -> Vec<Obstacle> {
    let pods = Pods::read(host.kernel);
    let mounts = facts.uses.iter().flat_map(|uses| &uses.mounts);
    let kubelets = mounts.filter(|mounted| mounted.kubelets);
    let has_pod = kubelets.clone().any(|mounted| !mounted.global);
    let of_pods = kubelets.map(|mounted| {
        let at = &mounted.row.mount_point;
        let what = match uid_of(at) {
            Some(uid) => format!(
                "the pod {} at {}: set its Deployment or StatefulSet to 0 replicas, or delete the pod, and wait",
                pods.name(uid),
                at.shown()
            ),
            None if has_pod => format!(
                "all pods of this node at {}: kubelet unmounts it after the last of them",
                at.shown()
            ),
            None => format!(
                "all pods of this node at {}, and no pod has it: if kubelet has forgotten it, run `{} unmountdevice {}`",
                at.shown(),
                own_name(),
                at.quoted()
            ),
        };
        Obstacle::new("mounted", format!("{} is mounted for {what}", facts.id))
    });
    of_pods.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::host::holders::Opener;
    use driver::names::Shown;
    use driver::volume::{Elsewhere, Openers};

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_an_obstacle(hostile in hostile()) {
            let id = LvId::parse("vg/data").unwrap();
            let (pid, command) = (7, hostile.shown());
            let openers = Openers {
                processes: vec![Opener { pid, command: command.clone(), writes: true }],
                elsewhere: vec![Elsewhere { pid, command, at: hostile.into(), hosts: false }],
                ..Openers::default()
            };
            let mut facts = Facts::of(&id, 0);
            facts.openers = Some(openers);
            let found: Vec<_> = users(&facts).into_iter().map(|user| Obstacle::of(&id, &user.into())).collect();
            let text = lines(&found);
            prop_assert!(has_lines(&text, 2), "{text:?}");
        }
    }
}
