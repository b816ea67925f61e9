//! Who has a volume.

use super::facts::{Facts, Inside, Uses};
use super::reason::Reason;

/// Everyone who has the volume, as far as `facts` say, but kubelet's mounts in this mount namespace. Each is a
/// reason to refuse it for one wish or another: which one matters is for the rules to say.
pub fn users(facts: &Facts) -> Vec<Reason> {
    let mut users = Vec::new();
    if let Some(uses) = &facts.uses {
        users.extend(uses.swap.then_some(Reason::Swap));
        let mut holders = uses.holders.clone();
        holders.extend(foreign(facts, uses.inside.as_ref()));
        if !holders.is_empty() {
            users.push(Reason::Below(holders));
        }
        let hosts = uses.mounts.iter().filter(|mounted| !mounted.kubelets);
        users.extend(hosts.map(|host| Reason::HostMount(host.row.mount_point.clone())));
    }
    let Some(openers) = &facts.openers else {
        return users;
    };
    // Swap, and a device on top, have it open too.
    let is_hosts = matches!(users.first(), Some(Reason::Swap | Reason::Below(_)));
    if !openers.elsewhere.is_empty() {
        users.push(Reason::InUse(openers.elsewhere.clone()));
    } else if openers.has_filesystem && !facts.is_mounted_here() {
        users.push(Reason::StillMounted);
    }
    if !openers.loops.is_empty() {
        users.push(Reason::Loop(openers.loops.clone()));
    }
    if !openers.processes.is_empty() {
        users.push(Reason::Open(openers.processes.clone()));
    }
    users.extend((openers.unseen > 0 && !is_hosts).then_some(Reason::OpenUnseen));
    users
}

/// The device inside, if it was opened with another header than that of the volume's record.
fn foreign(facts: &Facts, inside: Option<&Inside>) -> Option<String> {
    let inside = inside?;
    let record = &facts.volume()?.record;
    let is_own = record.luks_uuid() == inside.device.luks.as_deref();
    (!is_own).then(|| inside.name.clone())
}

impl Uses {
    /// Why every access to it would wait, if it would.
    pub fn waits(&self) -> Option<Reason> {
        let name = self.suspended.clone()?;
        Some(match self.inside {
            Some(_) => Reason::SuspendedInside(name),
            None => Reason::Suspended(name),
        })
    }
}
