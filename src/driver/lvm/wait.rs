//! Why an LVM command failed or did not end.

use super::lockd::{any_obstacle, has_lvmlockd};
use super::mapped::{Mapped, with_its_table};
use super::udev::Udev;
use super::unusable::obstacle;
use crate::host::{Effect, Host, Kernel, ToolError, holders};
use crate::names::{LvId, Shown, VgName};
use anyhow::Error;
use std::time::Duration;

/// Limit for asking LVM what keeps this node from a group.
const LIMIT: Duration = Duration::from_secs(10);

/// If an LVM command had to be stopped at its limit, adds what it was waiting for: who holds
/// the lock of the volume group, or what else makes LVM wait. If it failed, adds what keeps this node
/// from the group, if that is another host's or shared. `vg` is `None` for a command on all groups.
pub(super) fn explain(host: &Host, vg: Option<&VgName>, error: ToolError) -> Error {
    // For any group: LVM's global lock is in one that nodes share.
    if has_lvmlockd(host)
        && let Some(name) = suspended_leases(host.kernel)
    {
        return Error::from(error).context(format!(
            "sanlock can read no lock on this node, since its device {name} is suspended, as after an \
             lvcreate that was killed: run `dmsetup resume {}` at once, before the node loses its locks",
            name.quoted()
        ));
    }
    if let ToolError::Failed { .. } = error {
        let words = error.into();
        let obstacle = match vg {
            Some(vg) => obstacle(host, vg, LIMIT),
            None => any_obstacle(host, LIMIT),
        };
        return match obstacle {
            Some(obstacle) => Error::context(words, obstacle),
            None => words,
        };
    }
    let ToolError::TimedOut { effect, .. } = error else {
        return error.into();
    };
    if let Some(name) = suspended_inside(host.kernel) {
        let refresh = LvId::from_dm_name(&name);
        let refresh = refresh.map(|id| format!(", and then `lvchange --refresh {id}`"));
        return Error::from(error).context(format!(
            "LVM waits for an open encrypted volume: its device {name} is suspended, as by an LVM command that was \
             killed. If none was at work before, run `{}`{}",
            with_its_table(&name),
            refresh.unwrap_or_default()
        ));
    }
    let holders = holders::of_lvm_lock(host.kernel, vg);
    let mut mapped = Mapped::all(host.kernel).into_iter();
    let cause = if !holders.is_empty() {
        format!("LVM is locked by {}", holders::name_them(&holders))
    } else if let Some(device) = mapped.find(|device| device.is_suspended(host.kernel)) {
        let name = device.name(host.kernel).unwrap_or_default();
        format!(
            "LVM waits, perhaps for the device {name}, which is suspended: if no LVM command is at work, run \
             `dmsetup resume {}`",
            name.quoted()
        )
    } else if effect == Effect::Reads {
        "LVM waits, perhaps for a disk: check that each answers (`pvs`, `dmesg`)".to_owned()
    } else {
        match Udev::ask(host.kernel) {
            Udev::CannotBeHeard => "LVM waits for udev, whose answer does not come here: kubelet runs in an IPC \
                 namespace of its own. Run it in the host's (`hostIPC: true` of a pod, `--ipc host` of a container)",
            Udev::Killed => "LVM waits for udev, and udevd was killed: run `systemctl restart systemd-udevd`",
            Udev::Listens | Udev::NoSocket => "LVM waits for udev or for a disk: check that udevd runs \
                 (`udevadm settle`, `dmsetup udevcookies`) and that each disk answers (`pvs`, `dmesg`)",
        }
        .to_owned()
    };
    Error::from(error).context(cause)
}

/// The name of a suspended device at or below an open encrypted one. LVM reads the device inside an encrypted one,
/// since it reads each device that may be a disk of its own. If one of these devices is suspended, LVM waits in the
/// kernel.
fn suspended_inside(kernel: &Kernel) -> Option<String> {
    let is_encrypted = |device: &Mapped| {
        let uuid = kernel.read(&device.0.join("dm/uuid"));
        uuid.is_ok_and(|uuid| uuid.starts_with("CRYPT-"))
    };
    let mut all = Mapped::all(kernel).into_iter().filter(is_encrypted);
    all.find_map(|device| device.suspended(kernel))
}

/// The device-mapper name of a suspended device of sanlock's leases. An lvcreate suspends it for a moment, when it
/// refreshes the device in case that another node has extended it (LVM's lib/locking/lvmlockd.c). Only a device that
/// stays suspended longer counts.
fn suspended_leases(kernel: &Kernel) -> Option<String> {
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
