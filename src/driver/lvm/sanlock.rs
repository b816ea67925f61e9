//! Asks sanlock(8), which keeps the locks of a shared group on the group's disks.

use std::time::Duration;

use super::volume::Lease;
use crate::host::{Command, Host, ToolError};
use crate::names::{Shown, VgName};

/// The other node that has a volume, by sanlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The node's number: `host_id` in lvmlocal.conf.
    pub host: u64,
    /// The node's name: `our_host_name` in sanlock.conf. If that is not set, a UUID and the host's name.
    pub name: String,
    /// Seconds since the node's last sign of life.
    pub silent: u64,
}

/// The other node that has a lock. `None`: the lock is free, or its holder is unknown, as always with DLM.
pub fn holder(host: &Host, vg: &VgName, lock: &Lease, limit: Duration) -> Option<Holder> {
    /// After so many seconds of silence, a node has lost its lease. Then it does not keep this node from the volume.
    /// Source: sanlock's src/timeouts.c. A host gives up after eight timeouts of 10 s. Its watchdog resets it at most
    /// 60 s later. This node's sanlock may notice the reset one renewal later, which is 20 s.
    const GIVEN_AWAY: u64 = 160;
    let (_, place) = lock.args.rsplit_once(':')?;
    let space = format!("lvm_{vg}");
    let resource = format!("{space}:{}:{}:{place}", lock.of.as_deref()?, leases(vg));
    let leader = ask(host, limit, &["direct", "read_leader", "-r", &resource])?;
    let owner = owner(&leader)?;
    let hosts = ask(host, limit, &["client", "host_status", "-D", "-s", &space])?;
    let holder = node(&hosts, owner)?;
    (holder.silent < GIVEN_AWAY).then_some(holder)
}

/// What sanlock prints. `None`: it fails.
fn ask(host: &Host, limit: Duration, args: &[&str]) -> Option<String> {
    let command = Command::reads("sanlock", limit).args(args);
    Some(host.run(&command).ok()?.text())
}

/// The path of the device that contains sanlock's leases of a group.
pub(super) fn leases(vg: &VgName) -> String {
    format!("/dev/mapper/{}-lvmlock", vg.as_str().replace('-', "--"))
}

/// Whether sanlock has died and lost its lease on the group, which lvmlockd does not notice.
pub(super) fn has_forgotten(host: &Host, dump: &str, vg: &VgName, limit: Duration) -> bool {
    let space = format!("ls_name=lvm_{vg} ");
    let mut lines = dump.lines();
    if !lines.any(|line| line.contains(&space) && line.contains(" lm_type=sanlock")) {
        return false;
    }
    let status = Command::reads("sanlock", limit).args(["client", "status"]);
    match host.run(&status) {
        Ok(output) => {
            let space = format!("s lvm_{vg}:");
            !output.text().lines().any(|line| line.starts_with(&space))
        }
        Err(error) => matches!(error, ToolError::Failed { .. }),
    }
}

/// The number of the host that has a lease. `None`: the lease is free.
pub(super) fn owner(leader: &str) -> Option<u64> {
    number(leader, "timestamp ").filter(|time| *time > 0)?;
    number(leader, "owner_id ")
}

fn number(leader: &str, name: &str) -> Option<u64> {
    let text = leader.lines().find_map(|line| line.strip_prefix(name))?;
    text.trim().parse().ok()
}

/// Finds a host in sanlock's list of the hosts that share a group. Each host has a line, and its fields are on the
/// lines below that.
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
