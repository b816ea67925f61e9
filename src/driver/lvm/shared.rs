//! Groups that several nodes share. lvmlockd(8) takes LVM's locks there, and a lock manager keeps them:
//! sanlock on the disks, or DLM on the network. To activate a volume is to hold its lock.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::report::{Group, Lease, ask, is_set, read};
use crate::host::{Command, Host, Output, ToolError};
use crate::names::{Shown, VgName};

/// State of a volume's lock, as lvmlockd on this node tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseState {
    /// lvmlockd does not run, or does not answer.
    Silent(String),
    /// This node has not joined those that share the group, or was refused.
    NotStarted,
    Starting,
    /// This node's lease is not renewed any more: others may have the volume by now.
    Lost,
    /// This node has the lock, and no other node can.
    Held,
    /// This node has the lock, and others may have it too: `lvchange -asy`.
    Shared,
    NotHeld,
    Elsewhere(Option<Holder>),
}

/// The other node that has a volume, as sanlock shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `host_id` in lvmlocal.conf.
    pub host: u64,
    /// `our_host_name` in sanlock.conf; if that is not set, a UUID and the host's name.
    pub name: String,
    /// Seconds since its last sign of life.
    pub silent: u64,
}

/// Whether nodes may share the group, since lvmlockd runs here or did: only then LVM is asked.
pub fn may_be_shared(host: &Host, vg: &VgName) -> bool {
    has_lvmlockd(host) || host.kernel.exists(Path::new(&leases(vg)))
}

/// Whether lvmlockd runs on this node.
pub fn has_lvmlockd(host: &Host) -> bool {
    host.kernel.exists(Path::new("/run/lvm/lvmlockd.socket"))
}

/// The locks of a group, as lvmlockd and sanlock tell: asked once for all of its volumes.
pub struct GroupLeases {
    vg: VgName,
    dump: Result<String, String>,
    is_forgotten: bool,
}

impl GroupLeases {
    pub fn ask(host: &Host, vg: &VgName, limit: Duration) -> Self {
        let dump = dump(host, limit).map_err(|error| error.to_string());
        let dump = dump.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let is_forgotten = dump.as_ref().is_ok_and(|dump| {
            state(dump, vg.as_str(), None) == LeaseState::NotHeld
                && has_forgotten(host, dump, vg, limit)
        });
        Self {
            vg: vg.clone(),
            dump,
            is_forgotten,
        }
    }

    /// State of the lock of a volume of the group; without a lock, of the group's lockspace.
    pub fn of(&self, lock: Option<&Lease>) -> LeaseState {
        let dump = match &self.dump {
            Ok(dump) => dump,
            Err(error) => return LeaseState::Silent(error.clone()),
        };
        let of = lock.and_then(|lock| lock.of.as_deref());
        match state(dump, self.vg.as_str(), of) {
            LeaseState::Held | LeaseState::Shared | LeaseState::NotHeld if self.is_forgotten => {
                LeaseState::Lost
            }
            // LVM does not tell which lock a snapshot needs, and checks that itself.
            LeaseState::NotHeld if lock.is_some() && of.is_none() => LeaseState::Held,
            state => state,
        }
    }
}

/// All that lvmlockd knows. Every lvmlockctl listens on the same address for its answer: of two at once,
/// the later one ends with -EADDRINUSE.
fn dump(host: &Host, limit: Duration) -> Result<Output, ToolError> {
    const IN_USE: i32 = 158;
    const APART: Duration = Duration::from_millis(100);
    let command = Command::reads("lvmlockctl", limit).args(["--info", "--dump"]);
    let started = Instant::now();
    loop {
        match host.run(&command) {
            Err(ToolError::Failed { code: IN_USE, .. })
                if started.elapsed() < limit && !host.kernel.pause(APART) => {}
            done => return done,
        }
    }
}

/// Reads lvmlockd's own lines: a lockspace (`info=ls`), followed by its locks (`info=r`).
pub(super) fn state(dump: &str, vg: &str, lock: Option<&str>) -> LeaseState {
    let mut state = LeaseState::NotStarted;
    let mut is_its = false;
    for line in dump.lines() {
        let field = |name: &str| {
            line.split_whitespace()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let is_set = |name| field(name) == Some("1");
        match field("info") {
            Some("ls") => {
                is_its = field("vg_name") == Some(vg);
                if !is_its {
                    continue;
                }
                state = if is_set("kill_vg") || is_set("drop_vg") {
                    LeaseState::Lost
                } else if is_set("create_fail") || is_set("thread_stop") {
                    LeaseState::NotStarted
                } else if is_set("create_done") {
                    LeaseState::NotHeld
                } else {
                    LeaseState::Starting
                };
            }
            Some("r") if is_its && state == LeaseState::NotHeld && lock.is_some() => {
                match field("mode").filter(|_| field("name") == lock) {
                    Some("ex") => state = LeaseState::Held,
                    Some("sh") => state = LeaseState::Shared,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    state
}

/// Why this node cannot use one of the groups whose locks it has started.
pub(super) fn any_obstacle(host: &Host, limit: Duration) -> Option<String> {
    if !has_lvmlockd(host) {
        return None;
    }
    let output = dump(host, limit).ok()?;
    let dump = String::from_utf8_lossy(&output.stdout);
    let mut names = dump.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" vg_name=")?;
        VgName::parse(rest.split(' ').next()?).ok()
    });
    let obstacle = |vg: VgName| GroupLeases::ask(host, &vg, limit).of(None).obstacle(&vg);
    names.find_map(obstacle)
}

/// A group on this node's disks that it cannot use, though no filter leaves it out.
#[derive(Debug, Clone)]
pub struct KeptAway {
    pub vg: String,
    /// "of host NAME", or "shared by sanlock".
    pub owner: String,
    /// Why, and what to do.
    pub why: String,
}

/// What may keep this node from a group.
#[derive(Deserialize)]
#[allow(clippy::struct_field_names)] // LVM's own
struct GroupRow {
    vg_name: String,
    vg_systemid: String,
    vg_lock_type: String,
    #[serde(deserialize_with = "is_set")]
    vg_exported: bool,
}

/// Exported groups, another host's, and shared ones without their locks.
pub fn kept_away(host: &Host, known: &[Group], limit: Duration) -> Vec<KeptAway> {
    let rows = rows(host, &["--foreign", "--shared"], limit).unwrap_or_default();
    let kept = rows.into_iter().filter_map(|row| {
        let is_hidden = !known.iter().any(|group| group.name == row.vg_name);
        let why = of_row(host, &row, is_hidden, limit)?;
        let owner = match row.manager() {
            // Whoever made the group on another host chose its words.
            None => format!("of host {}", row.vg_systemid.shown()),
            Some(manager) => format!("shared by {}", manager.shown()),
        };
        let vg = row.vg_name;
        Some(KeptAway { vg, owner, why })
    });
    kept.collect()
}

/// All groups, with what LVM would leave out for these options.
fn rows(host: &Host, others: &[&str], limit: Duration) -> Option<Vec<GroupRow>> {
    let fields = "vg_name,vg_systemid,vg_lock_type,vg_exported";
    let command = ask("vgs", fields, limit).args(["--readonly"]).args(others);
    read(host, &command, |report| report.rows("vg")).ok()
}

/// Why LVM does not let this node use or change a group that is there. `None` if it is none of these:
/// several groups of the name, exported, another host's, shared.
pub(super) fn obstacle(host: &Host, vg: &VgName, limit: Duration) -> Option<String> {
    let rows = |others: &[&str]| {
        let mut rows = rows(host, others, limit)?;
        rows.retain(|row| row.vg_name == vg.as_str());
        Some(rows)
    };
    let all = rows(&["--foreign", "--shared"])?;
    let is_hidden = || rows(&[]).map(|rows| rows.is_empty());
    match &all[..] {
        [row] => of_row(host, row, is_hidden()?, limit),
        [] => None,
        several => Some(twins(vg, several.len())),
    }
}

impl GroupRow {
    /// What keeps the locks of a group that nodes share.
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

/// Message about an exported group.
pub fn exported(vg: &impl fmt::Display) -> String {
    format!(
        "the volume group {vg} is exported, so that it can move to another host (vgexport(8)); if it stays on this \
         one, run `vgimport {vg}`"
    )
}

/// Message about several groups of one name.
pub fn twins(vg: &impl fmt::Display, number: usize) -> String {
    format!(
        "{number} volume groups are called {vg}, so LVM uses none of them by that name. Perhaps a disk was \
         copied: compare them (`vgs -o vg_name,vg_uuid,pv_name`), and rename all but one (`vgrename UUID \
         {vg}-2`)"
    )
}

impl LeaseState {
    /// Why this node cannot use any volume of a shared group, and what to do.
    pub fn obstacle(&self, vg: &VgName) -> Option<String> {
        let start = format!("`vgchange --lockstart {vg}` (at boot: lvmlocks.service)");
        Some(match self {
            Self::Silent(why) => format!(
                "{vg} is shared between nodes, and lvmlockd does not run on this one ({why}): \
                 start it and the lock manager (`systemctl start sanlock lvmlockd`), then run {start}"
            ),
            Self::NotStarted => format!(
                "{vg} is shared between nodes, and this node has not started its locks: run {start}"
            ),
            Self::Starting => format!(
                "{vg} is shared between nodes, and its locks are just being started on this one. That \
                 takes up to three minutes after a crash: wait, and kubelet tries again"
            ),
            Self::Lost => format!(
                "{vg} is shared between nodes, and this one could not renew its lease, or its sanlock \
                 died. Other nodes may use its volumes by now. End the pods and processes that use them \
                 here, deactivate them (`vgchange -an {vg}`), run `lvmlockctl --drop {vg}` and `systemctl \
                 start sanlock`, and then {start}"
            ),
            Self::Held | Self::Shared | Self::NotHeld | Self::Elsewhere(_) => return None,
        })
    }
}

/// The device of sanlock's leases of a group.
fn leases(vg: &VgName) -> String {
    format!("/dev/mapper/{}-lvmlock", vg.as_str().replace('-', "--"))
}

/// Whether sanlock has died and lost its lease on the group, which lvmlockd does not notice.
fn has_forgotten(host: &Host, dump: &str, vg: &VgName, limit: Duration) -> bool {
    let space = format!("ls_name=lvm_{vg} ");
    let mut lines = dump.lines();
    if !lines.any(|line| line.contains(&space) && line.contains(" lm_type=sanlock")) {
        return false;
    }
    let status = Command::reads("sanlock", limit).args(["client", "status"]);
    match host.run(&status) {
        Ok(output) => {
            let space = format!("s lvm_{vg}:");
            let status = String::from_utf8_lossy(&output.stdout);
            !status.lines().any(|line| line.starts_with(&space))
        }
        Err(error) => matches!(error, ToolError::Failed { .. }),
    }
}

/// The other node that has a lock. `None` if it is free or unknown (always with DLM).
pub fn holder(host: &Host, vg: &VgName, lock: &Lease, limit: Duration) -> Option<Holder> {
    /// Seconds of silence after which a lease is void, and something else keeps this node from the volume. Source:
    /// sanlock's src/timeouts.c: a host gives up after eight timeouts of 10 s, its watchdog has reset it 60 s later,
    /// and this node's sanlock may notice that one renewal late.
    const GIVEN_AWAY: u64 = 160;
    let (_, place) = lock.args.rsplit_once(':')?;
    let space = format!("lvm_{vg}");
    let resource = format!("{space}:{}:{}:{place}", lock.of.as_deref()?, leases(vg));
    let run = |args: &[&str]| {
        let output = host
            .run(&Command::reads("sanlock", limit).args(args))
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let owner = owner(&run(&["direct", "read_leader", "-r", &resource])?)?;
    let holder = node(&run(&["client", "host_status", "-D", "-s", &space])?, owner)?;
    (holder.silent < GIVEN_AWAY).then_some(holder)
}

/// The number of the host in a lease that is taken.
pub(super) fn owner(leader: &str) -> Option<u64> {
    let field = |name| {
        let line = leader.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    field("timestamp ").filter(|time| *time > 0)?;
    field("owner_id ")
}

/// A host in the list of those that share a group: a line of its own for each, and its fields below.
pub(super) fn node(status: &str, host: u64) -> Option<Holder> {
    let first = format!("{host} timestamp ");
    let block = status.lines().skip_while(|line| !line.starts_with(&first));
    let fields = block.skip(1).map_while(|line| line.strip_prefix(' '));
    let field = |name: &str| {
        let mut fields = fields.clone().map(str::trim);
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    let number = |name| field(name)?.parse::<u64>().ok();
    Some(Holder {
        host,
        name: field("owner_name")?.shown().to_string(),
        silent: number("last_check")?.saturating_sub(number("last_live")?),
    })
}
