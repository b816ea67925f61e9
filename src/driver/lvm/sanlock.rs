//! sanlock(8), which keeps the locks of a group on its disks: which node has one, and whether that node
//! is alive.

use std::time::Duration;

use super::mapped::Mapped;
use super::report::Lease;
use crate::host::{Command, Host, Kernel, ToolError};
use crate::names::{Shown, VgName};

/// The node that has a volume, as sanlock shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `host_id` in lvmlocal.conf.
    pub host: u64,
    /// `our_host_name` in sanlock.conf; if that is not set, a UUID and the host's name.
    pub name: String,
    /// Seconds since its last sign of life.
    pub silent: u64,
}

/// The device of sanlock's leases of a group.
pub(super) fn leases(vg: &VgName) -> String {
    format!("/dev/mapper/{}-lvmlock", vg.as_str().replace('-', "--"))
}

/// The device-mapper name of a device of sanlock's leases that is suspended for longer than an lvcreate needs,
/// which refreshes it in case that another node has extended it (LVM's lib/locking/lvmlockd.c).
pub(super) fn suspended_leases(kernel: &Kernel) -> Option<String> {
    const MOMENT: Duration = Duration::from_millis(300);
    let suspended = |device: &Mapped| {
        let name = device
            .name(kernel)
            .filter(|name| name.ends_with("-lvmlock"));
        name.filter(|_| device.is_suspended(kernel))
    };
    let all = Mapped::all(kernel);
    let device = all.iter().find(|device| suspended(device).is_some())?;
    kernel.pause(MOMENT);
    suspended(device)
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
fn owner(leader: &str) -> Option<u64> {
    let field = |name| {
        let line = leader.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    field("timestamp ").filter(|time| *time > 0)?;
    field("owner_id ")
}

/// A host in the list of those that share a group: a line of its own for each, and its fields below.
fn node(status: &str, host: u64) -> Option<Holder> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanlock_says_which_node_and_how_long_it_has_been_silent() {
        let leader = "read_leader done 0\nowner_id 2\nowner_generation 1\ntimestamp 173\n";
        assert_eq!(owner(leader), Some(2));
        assert_eq!(owner(&leader.replace("173", "0")), None, "free");
        assert_eq!(owner("read_leader done -2\n"), None);
        let status = "lockspace lvm_vg\n1 timestamp 197\n    last_check=199\n    last_live=199
    io_timeout=10\n    owner_name=node-a\n2 timestamp 100\n    last_check=199\n    last_live=150
    last_req=0\n    io_timeout=10\n    owner_name=node-b\n";
        let want = Holder {
            host: 2,
            name: "node-b".to_owned(),
            silent: 49,
        };
        assert_eq!(node(status, 2), Some(want));
        assert_eq!(node(status, 3), None);
        assert_eq!(node(status, 1).unwrap().silent, 0);
    }
}
