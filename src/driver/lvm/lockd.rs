//! Asks lvmlockd(8), which takes LVM's locks in a group that several nodes share. The node on which a volume is active
//! holds the volume's lock.

use std::path::Path;
use std::time::{Duration, Instant};

use super::sanlock::{Holder, has_forgotten, leases};
use super::volume::Lease;
use crate::host::{Command, Host, Kernel, Output, ToolError};
use crate::names::VgName;

/// The state of a volume's lock, by lvmlockd on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseState {
    /// lvmlockd does not run, or does not answer.
    Silent(String),
    /// This node has not started the group's locks, or the start failed.
    NotStarted,
    Starting,
    /// This node does not renew its lease any more: another node may have the volume by now.
    Lost,
    /// This node has the lock exclusively.
    Held,
    /// This node has a shared lock (`lvchange -asy`): other nodes may have it, too.
    Shared,
    NotHeld,
    Elsewhere(Option<Holder>),
}

impl LeaseState {
    /// Why this node can use no volume of a shared group, and what to do. `None`: this node can use them.
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

/// Whether nodes may share the group: lvmlockd runs on this node, or has run here. If not, LVM need not be asked.
pub fn may_be_shared(host: &Host, vg: &VgName) -> bool {
    has_lvmlockd(host) || host.kernel.exists(Path::new(&leases(vg)))
}

/// The kernel's lockspaces of DLM. LVM's begin with `lvm_`. Source: lvmlockd(8), "dlm".
const LOCKSPACES: &str = "/sys/kernel/dlm";

/// Whether this node has started the locks of the group, so that nodes share it. LVM is not asked: with sanlock, the
/// leases are on an active volume of the group, with DLM in a lockspace of the kernel.
pub fn is_shared(kernel: &Kernel, vg: &VgName) -> bool {
    let lockspace = Path::new(LOCKSPACES).join(format!("lvm_{vg}"));
    kernel.exists(Path::new(&leases(vg))) || kernel.exists(&lockspace)
}

/// Whether this node has started the locks of any group.
pub fn is_any_shared(kernel: &Kernel) -> bool {
    let mapped = kernel.list(Path::new("/dev/mapper")).unwrap_or_default();
    let lockspaces = kernel.list(Path::new(LOCKSPACES)).unwrap_or_default();
    mapped.iter().any(|name| name.ends_with("-lvmlock"))
        || lockspaces.iter().any(|name| name.starts_with("lvm_"))
}

/// Whether lvmlockd runs on this node.
pub fn has_lvmlockd(host: &Host) -> bool {
    host.kernel.exists(Path::new("/run/lvm/lvmlockd.socket"))
}

/// The locks of a group, by lvmlockd and sanlock. Asked once for all volumes of the group.
pub struct GroupLeases {
    vg: VgName,
    dump: Result<String, String>,
    is_forgotten: bool,
}

impl GroupLeases {
    pub fn ask(host: &Host, vg: &VgName, limit: Duration) -> Self {
        let dump = dump(host, limit)
            .map(|output| output.text())
            .map_err(|error| error.to_string());
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

    /// The state of a volume's lock. Without `lock`: the state of the group's lockspace.
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
            // LVM does not report which lock a snapshot needs, so that lock counts as held. LVM checks it when it
            // activates the snapshot.
            LeaseState::NotHeld if lock.is_some() && of.is_none() => LeaseState::Held,
            state => state,
        }
    }
}

/// The dump of lvmlockd. Every lvmlockctl listens on the same address: if two run at once, the second ends with
/// -EADDRINUSE, and is run again.
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

/// The state of a lock by lvmlockd's dump. Without `lock`: the state of the lockspace of `vg`. In the dump, the line of
/// a lockspace (`info=ls`) comes before the lines of its locks (`info=r`).
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

/// Why this node cannot use a group whose locks it has started. `None`: it can use all such groups.
pub(super) fn any_obstacle(host: &Host, limit: Duration) -> Option<String> {
    if !has_lvmlockd(host) {
        return None;
    }
    let dump = dump(host, limit).ok()?.text();
    let mut names = dump.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" vg_name=")?;
        VgName::parse(rest.split(' ').next()?).ok()
    });
    names.find_map(|vg| GroupLeases::ask(host, &vg, limit).of(None).obstacle(&vg))
}
