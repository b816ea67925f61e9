//! Who uses a volume. Each user may be a reason to refuse the volume, depending on the wish.

use std::path::PathBuf;

use super::facts::Facts;
use super::reason::Reason;
use super::uses::{Elsewhere, LoopDevice, Mounted, Uses};
use crate::crypt::Unlocked;
use crate::host::holders::Opener;
use crate::volume::inside::Inside;

/// A user of a volume. The rules decide which users matter; the [`Reason`] of the same name has the message.
#[derive(Debug, Clone, PartialEq)]
pub enum User {
    Swap,
    PartOfDevice {
        holders: Vec<String>,
        unlocked: Option<Unlocked>,
    },
    HostMount {
        at: PathBuf,
        pods: bool,
    },
    InUse(Vec<Elsewhere>),
    StillMounted,
    Loop(Vec<LoopDevice>),
    Open(Vec<Opener>),
    OpenUnseen,
}

impl From<User> for Reason {
    fn from(user: User) -> Self {
        match user {
            User::Swap => Self::Swap,
            User::PartOfDevice { holders, unlocked } => Self::PartOfDevice { holders, unlocked },
            User::HostMount { at, pods } => Self::HostMount { at, pods },
            User::InUse(elsewhere) => Self::InUse(elsewhere),
            User::StillMounted => Self::StillMounted,
            User::Loop(loops) => Self::Loop(loops.into_iter().map(|one| one.name).collect()),
            User::Open(processes) => Self::Open(processes),
            User::OpenUnseen => Self::OpenUnseen,
        }
    }
}

/// Everyone who uses the volume, as far as `facts` say. Mounts for pods, in this mount namespace, do not count.
pub fn users(facts: &Facts) -> Vec<User> {
    let mut users = Vec::new();
    if let Some(uses) = &facts.uses {
        users.extend(uses.swap.then_some(User::Swap));
        let mut holders = uses.holders.clone();
        holders.extend(foreign(facts, uses.inside.as_ref()));
        if !holders.is_empty() {
            users.push(User::PartOfDevice {
                holders,
                unlocked: uses.unlocked.clone(),
            });
        }
        let is_pods = |one: &Mounted| one.kubelets || one.runtimes && facts.is_recorded();
        let has_pods = uses.mounts.iter().any(|one| one.kubelets || one.runtimes);
        let hosts = uses.mounts.iter().filter(|one| !is_pods(one));
        users.extend(hosts.map(|host| User::HostMount {
            at: host.row.mount_point.clone(),
            pods: has_pods,
        }));
    }
    let Some(openers) = &facts.openers else {
        return users;
    };
    // Swap, or a device on top, also has the volume open, so it may be the unseen opener.
    let is_hosts = matches!(users.first(), Some(User::Swap | User::PartOfDevice { .. }));
    if !openers.elsewhere.is_empty() {
        users.push(User::InUse(openers.elsewhere.clone()));
    } else if openers.has_filesystem && !facts.is_mounted_here() {
        users.push(User::StillMounted);
    }
    if !openers.loops.is_empty() {
        users.push(User::Loop(openers.loops.clone()));
    }
    if !openers.processes.is_empty() {
        users.push(User::Open(openers.processes.clone()));
    }
    users.extend((openers.unseen > 0 && !is_hosts).then_some(User::OpenUnseen));
    users
}

/// The kernel name of the device inside, if it was opened with another header than the recorded one.
fn foreign(facts: &Facts, inside: Option<&Inside>) -> Option<String> {
    let inside = inside?;
    let record = &facts.volume()?.record;
    let is_own = record.luks_uuid() == inside.device.luks.as_deref();
    (!is_own).then(|| inside.device.kernel_name())
}

/// Fails if a user could write to the device.
pub fn require_no_writer(facts: &Facts) -> Result<(), Reason> {
    for user in users(facts) {
        match user {
            User::OpenUnseen => return Err(user.into()),
            User::Loop(mut loops) => {
                loops.retain(|one| one.writes);
                if !loops.is_empty() {
                    return Err(User::Loop(loops).into());
                }
            }
            User::Open(mut processes) => {
                processes.retain(|process| process.writes);
                if !processes.is_empty() {
                    return Err(Reason::Open(processes));
                }
            }
            User::Swap
            | User::PartOfDevice { .. }
            | User::HostMount { .. }
            | User::InUse(_)
            | User::StillMounted => {}
        }
    }
    Ok(())
}

impl Uses {
    /// Why every access to the volume would wait. `None`: accesses do not wait.
    pub fn waits(&self) -> Option<Reason> {
        let name = self.suspended.clone()?;
        Some(match self.inside {
            Some(_) => Reason::SuspendedInside(name),
            None => Reason::Suspended(name),
        })
    }
}
