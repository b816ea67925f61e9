//! `flexvolume-lvm check --idle` and `flexvolume-lvm rename`: what is done on the node when a volume goes to
//! a CSI driver, or comes back.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use serde::Serialize;

use super::export::object_name;
use super::operator;
use super::survey::{Look, Pods, Request, look, uid_of};
use crate::output::{Printed, printed};
use driver::config::{Config, Loaded};
use driver::host::{Host, Writing, own_name};
use driver::lvm;
use driver::names::{LvId, LvName, Shown};
use driver::volume::{Decision, Facts, Lvm, Reason, Subject, Uses, lock, users};

#[derive(Serialize)]
struct HandoverReport {
    volume: String,
    ready: bool,
    obstacles: Vec<Obstacle>,
    notes: Vec<String>,
}

/// Why a volume cannot be handed over or renamed now.
#[derive(Serialize)]
struct Obstacle {
    /// A stable word.
    reason: &'static str,
    message: String,
}

impl Obstacle {
    fn of(id: &LvId, reason: &Reason) -> Self {
        Self {
            reason: reason.into(),
            message: reason.of(id),
        }
    }
}

/// Says whether a volume is free to be handed over; `wanted` is the name that it is to have by now.
pub fn check(
    host: &Host,
    config: &Loaded,
    id: &LvId,
    wanted: Option<&LvName>,
    json: bool,
) -> Result<Printed> {
    let config = config.require()?;
    let wanted = wanted.map_or(Ok(id.clone()), |name| renamed(id, name))?;
    let mut id = id;
    let mut seen = seen(host, config, id, Duration::ZERO);
    if id != &wanted && seen.as_ref().is_ok_and(is_missing) {
        id = &wanted; // That step was done before.
        seen = self::seen(host, config, id, Duration::ZERO);
    }
    let is_encrypted = seen.as_ref().is_ok_and(|seen| {
        let volume = seen.facts.volume();
        volume.is_some_and(|volume| volume.record.luks_uuid().is_some())
    });
    let mut obstacles = match seen {
        Ok(seen) => {
            let mut found = obstacles(host, &seen);
            if found.is_empty() && seen.decision == Decision::Activate {
                let message = format!("{id} is not active: run `lvchange -ay {id}`");
                found.push(Obstacle {
                    reason: "inactive",
                    message,
                });
            }
            found
        }
        Err(error) => match error.downcast_ref::<lock::Busy>() {
            Some(busy) => vec![Obstacle {
                reason: "busy",
                message: format!(
                    "{id} has a call under way: {}; wait for it to end",
                    busy.at_work()
                ),
            }],
            None => return Err(error),
        },
    };
    if id != &wanted {
        obstacles.push(Obstacle {
            reason: "name",
            message: format!(
                "{id} is to be called {}: run `{} rename {id} {}`",
                wanted.lv(),
                own_name(),
                wanted.lv()
            ),
        });
    }
    let mut notes = notes(&wanted);
    if is_encrypted {
        notes.push(format!("{id} is encrypted, and no CSI driver opens it"));
    }
    let report = HandoverReport {
        volume: id.to_string(),
        ready: obstacles.is_empty(),
        obstacles,
        notes,
    };
    let mut text = lines(&report.obstacles);
    if report.ready {
        text = format!("{id} is ready: it is active, and nothing has it mounted or open\n");
    }
    text.extend(report.notes.iter().map(|note| format!("note: {note}\n")));
    let code = u8::from(!report.ready);
    Ok(Printed {
        code,
        ..printed(&report, text, json)?
    })
}

/// Gives a volume that nothing uses another name in its group. Its tags stay on it.
pub fn rename(host: &Writing, config: &Loaded, id: &LvId, name: &LvName) -> Result<Printed> {
    let config = config.require()?;
    let new = renamed(id, name)?;
    let there = lvm::find_as_it_is(host, &new)?;
    let exists = matches!(there, lvm::Found::Volume(_) | lvm::Found::Hidden);
    let seen = seen(host, config, id, config.limits.lock)?;
    if exists && is_missing(&seen) {
        bail!(
            "there is no logical volume {id}, but {new} exists: if this was run before, nothing is left to do; \
             see `{} status {new}`",
            own_name()
        );
    }
    if *id == new && !is_missing(&seen) {
        bail!("{id} has this name already");
    }
    let obstacles = obstacles(host, &seen);
    if !obstacles.is_empty() {
        bail!("{id} keeps its name.\n{}", lines(&obstacles).trim_end());
    }
    if exists {
        bail!("there is a logical volume {new} already, and {id} keeps its name: choose another");
    }
    // No mount by anybody can begin before it has its new name.
    let claim = match seen
        .facts
        .device
        .as_ref()
        .map(|d| d.open(host.kernel, true))
    {
        Some(Err(error)) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {
            bail!("{id} keeps its name. {}", Reason::InUse(Vec::new()).of(id))
        }
        claim => claim.transpose().context("opening the device")?,
    };
    let volume = seen.facts.require_volume()?;
    let own = seen.lock.is_none();
    let own = own.then(|| lock::hold_inactive(host.kernel, volume, config.limits.lock));
    let own = own.transpose()?;
    // Its lock may have been waited for, as long as another call brought it up.
    let is_idle = |now: &lvm::Volume| now.uuid == volume.uuid && !now.active;
    if own.is_some() && !matches!(&lvm::find(host, id)?, lvm::Found::Volume(now) if is_idle(now)) {
        bail!("{id} keeps its name: it was activated or replaced just now. Run this again");
    }
    let held = seen.lock.as_ref().or(own.as_ref());
    host.rename(id, name, held.context("the volume's lock is not held")?)?;
    drop(claim);
    match lvm::find(host, &new)? {
        lvm::Found::Volume(now) if now.uuid == volume.uuid => {}
        _ => bail!(
            "another volume was called {id} just now, and is called {new} by now: compare their UUIDs \
             (`lvs -o lv_name,lv_uuid {}`; {} was meant)",
            id.vg(),
            volume.uuid
        ),
    }
    operator::log(host, config, "rename", id, name.as_str());
    let (me, old) = (own_name(), id.lv());
    let mut said = format!(
        "{id} is {new} now. What names {old}, such as a PersistentVolume, has to name {name}.\n\
         To undo: {me} rename {new} {old}\n"
    );
    let mut notes = notes(&new);
    if config.policy(id.vg())?.is_some_and(|group| group.create) {
        notes.push(format!(
            "this node may create volumes, so a pod that still names {id} gets a new and empty one"
        ));
    }
    said.extend(notes.iter().map(|note| format!("note: {note}\n")));
    Ok(Printed::text(said))
}

fn renamed(id: &LvId, name: &LvName) -> Result<LvId> {
    LvId::new(id.vg().clone(), name.clone())
}

fn lines(obstacles: &[Obstacle]) -> String {
    let lines = obstacles.iter().map(|one| format!("{}\n", one.message));
    lines.collect()
}

/// Looks at who has it, under its lock.
fn seen(host: &Host, config: &Config, id: &LvId, patience: Duration) -> Result<Look> {
    let request = Request {
        patience,
        unread: true,
        users: true,
        ..Request::default()
    };
    look(Subject { host, config, id }, None, request)
}

fn is_missing(seen: &Look) -> bool {
    seen.facts.device.is_none() && matches!(seen.facts.lvm, Some(Lvm::NoVolume))
}

/// All that is in the way of a volume's next name or driver, but that it is not active.
fn obstacles(host: &Host, seen: &Look) -> Vec<Obstacle> {
    let (facts, id) = (&seen.facts, &seen.facts.id);
    let is_unknown = matches!(seen.decision, Decision::Refuse(Reason::Unknown));
    // Everyone who has it open waits for that, udev for example.
    if let Some(reason) = facts.uses.as_ref().and_then(Uses::waits)
        && !is_unknown
    {
        return vec![Obstacle::of(id, &reason)];
    }
    let mut found = mounts(host, facts);
    let others = users(facts).into_iter();
    found.extend(others.map(|user| Obstacle::of(id, &user)));
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    if let Some(inside) = inside.filter(|_| found.is_empty()) {
        let device = inside.device.path.shown();
        let message = format!(
            "{id} is encrypted and open, and nothing has it mounted: run `cryptsetup close {device}`"
        );
        let reason = "open";
        found.push(Obstacle { reason, message });
    }
    if facts.volume().is_some_and(|volume| volume.lock.is_some()) {
        let message = format!(
            "{id} is in a volume group that nodes share (lvmlockd), where no CSI driver activates it: leave it as \
             it is"
        );
        let reason = "shared";
        found.push(Obstacle { reason, message });
    }
    if !found.is_empty() {
        return found;
    }
    let now = is_unknown.then(|| called_now(host, seen)).flatten();
    let (reason, message) = match (&seen.decision, now) {
        _ if is_missing(seen) => (
            "no-volume",
            format!(
                "there is no logical volume {id}: `lvs {}` lists those that are there",
                id.vg()
            ),
        ),
        (_, Some(now)) => (
            "half-renamed",
            format!(
                "LVM calls {id} {now}, but its device has the old name, as after an lvrename that was killed: \
                 run `lvchange -ay {now}`"
            ),
        ),
        (Decision::Resume, _) => ("suspended", Reason::Suspended(id.dm_name()).of(id)),
        (Decision::Refuse(reason), _) => (reason.into(), reason.of(id)),
        _ => return found,
    };
    found.push(Obstacle { reason, message });
    found
}

/// LVM's name of the active volume, if its device has a name that LVM does not know.
fn called_now(host: &Host, seen: &Look) -> Option<LvId> {
    let device = seen.facts.device.as_ref()?;
    let all = lvm::all_volumes(host).ok()?;
    let is_it = |volume: &lvm::Volume| volume.uuid == device.lv_uuid;
    all.into_iter().find(is_it).map(|volume| volume.id)
}

/// Its mounts for pods.
fn mounts(host: &Host, facts: &Facts) -> Vec<Obstacle> {
    let pods = Pods::read(host.kernel);
    let mounts = facts.uses.iter().flat_map(|uses| &uses.mounts);
    let of_pods = mounts.filter(|mounted| mounted.kubelets).map(|mounted| {
        let at = &mounted.row.mount_point;
        let what = match uid_of(at) {
            Some(uid) => format!(
                "the pod {} at {}: set what made the pod to 0 replicas, or delete it, and wait",
                pods.name(uid),
                at.shown()
            ),
            None => format!(
                "all pods of this node at {}: kubelet unmounts it after the last of them",
                at.shown()
            ),
        };
        Obstacle {
            reason: "mounted",
            message: format!("{} is mounted for {what}", facts.id),
        }
    });
    of_pods.collect()
}

/// Notes on a name that a CSI driver would treat in its own way.
fn notes(id: &LvId) -> Vec<String> {
    let name = id.lv().as_str();
    let mut notes = Vec::new();
    // Source: its pkg/server/nodeserver.go, NodeUnpublishVolume: it takes them for ephemeral.
    if name.starts_with("csi-") {
        notes.push(format!(
            "csi-driver-lvm removes a volume whose name begins with csi- when its pod ends, whatever the \
             reclaim policy: before that driver gets {id}, rename it"
        ));
    }
    if object_name(name).is_err() {
        notes.push(format!(
            "no object in Kubernetes can be called {name}, and lvm-localpv needs one of the volume's name"
        ));
    }
    notes
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
            let found: Vec<_> = users(&facts).iter().map(|user| Obstacle::of(&id, user)).collect();
            let text = lines(&found);
            prop_assert!(has_lines(&text, 2), "{text:?}");
        }
    }
}
