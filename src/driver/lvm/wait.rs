//! Explains why an LVM command failed or did not end.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result};

use super::lockd::{any_obstacle, has_lvmlockd};
use super::mapped::{Mapped, with_its_table};
use super::udev::Udev;
use super::unusable::obstacle;
use crate::host::{Command, Effect, Host, Kernel, ToolError, holders};
use crate::names::{LvId, Shown, VgName};

/// The time limit for asking LVM why this node cannot use a group.
const LIMIT: Duration = Duration::from_secs(10);

/// The FIFO of dmeventd, which watches RAIDs, pools and snapshots. Source: lvm2 daemons/dmeventd/dmeventd.h.
const DMEVENTD: &str = "/run/dmeventd-client";

/// If an LVM command failed (`done`), adds the cause to its error. If LVM refused: why this node cannot use the group,
/// for example because it is another host's. If the command was stopped at its limit: what it waited for. Runs tools
/// for that, each for up to 10 s. `vg`: `None` for a command on all groups.
pub(super) fn find_cause<T>(
    host: &Host,
    vg: Option<&VgName>,
    done: Result<T, ToolError>,
) -> Result<T> {
    done.map_err(|error| with_cause(host, vg, error))
}

/// Like [`find_cause`], for a question to LVM. `what` was asked for, such as "the disks of vg".
pub(super) fn answer<T>(
    host: &Host,
    vg: Option<&VgName>,
    asked: Result<T, ToolError>,
    what: impl fmt::Display,
) -> Result<T> {
    find_cause(host, vg, asked).with_context(|| format!("asking LVM for {what}"))
}

fn with_cause(host: &Host, vg: Option<&VgName>, error: ToolError) -> Error {
    // Suspended leases can stop a command on any group, since LVM's global lock is in a shared group.
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
    let cause = inside_waits(host.kernel)
        .or_else(|| is_locked(host.kernel, vg))
        .or_else(|| multipath_waits(host))
        .or_else(|| device_waits(host.kernel));
    Error::from(error).context(cause.unwrap_or_else(|| outside_waits(host.kernel, effect)))
}

/// The message if LVM waits for an open encrypted volume. LVM's own locks do not show this cause.
fn inside_waits(kernel: &Kernel) -> Option<String> {
    let name = suspended_inside(kernel)?;
    let id = LvId::from_dm_name(&name);
    let refresh = id.map(|id| format!(", and then `lvchange --refresh {id}`"));
    Some(format!(
        "LVM waits for an open encrypted volume: its device {name} is suspended, as by an LVM command that was killed. \
         If none was at work before, run `{}`{}",
        with_its_table(&name),
        refresh.unwrap_or_default()
    ))
}

fn is_locked(kernel: &Kernel, vg: Option<&VgName>) -> Option<String> {
    let mut holders = holders::of_lvm_lock(kernel, vg);
    // A command of this call that even SIGKILL does not end is not the cause: it waits itself.
    holders.retain(|holder| !holders::is_own_child(kernel, holder.pid));
    // The driver starts each command as a group of processes.
    let mut checks = holders
        .iter()
        .filter_map(|holder| holders::check_in(kernel, holder.pid));
    if let Some(check) = checks.next() {
        return Some(format!(
            "LVM is locked while it checks the metadata of a pool or a cache with {check}, since {} s: wait until it ends",
            check.age.as_secs()
        ));
    }
    let is_held = !holders.is_empty();
    is_held.then(|| format!("LVM is locked by {}", holders::name_them(&holders)))
}

/// The message if no path of a multipath device works. Such a device may hold each access until a path works again.
fn multipath_waits(host: &Host) -> Option<String> {
    let all = Mapped::all(host.kernel);
    let mut uuids = all.iter().filter_map(|one| one.uuid(host.kernel));
    if !uuids.any(|uuid| uuid.starts_with("mpath-")) {
        return None;
    }
    let command = Command::reads("dmsetup", LIMIT).args(["status", "--target", "multipath"]);
    let status = host.run(&command).ok()?.text();
    let name = status.lines().find_map(without_paths)?;
    Some(format!(
        "LVM waits, perhaps for the multipath device {}, of which no path works (`multipath -ll`, `dmesg`)",
        name.shown()
    ))
}

/// The name of the device, if each of its paths has failed: a path is a number such as `8:16`, and then `A` or `F`.
/// Source: Linux' drivers/md/dm-mpath.c, `multipath_status`.
fn without_paths(line: &str) -> Option<&str> {
    let (name, status) = line.split_once(": ")?;
    let words: Vec<&str> = status.split(' ').collect();
    let paths = words.windows(2).filter_map(|pair| match pair {
        [number, state] if number.contains(':') => Some(*state),
        _ => None,
    });
    let of_paths: Vec<&str> = paths.collect();
    (!of_paths.is_empty() && of_paths.iter().all(|state| *state == "F")).then_some(name)
}

fn device_waits(kernel: &Kernel) -> Option<String> {
    let mut mapped = Mapped::all(kernel).into_iter();
    let device = mapped.find(|device| device.is_suspended(kernel))?;
    let name = device.name(kernel).unwrap_or_default();
    Some(format!(
        "LVM waits, perhaps for the device {name}, which is suspended: if no LVM command is at work, run \
         `dmsetup resume {}`",
        name.quoted()
    ))
}

/// The message if LVM waits neither for a lock nor for a suspended device: then it waits for a disk or for udev. A
/// command that only reads does not need udev.
fn outside_waits(kernel: &Kernel, effect: Effect) -> String {
    if effect == Effect::Reads {
        return "LVM waits, perhaps for a disk: check that each answers (`pvs`, `dmesg`)"
            .to_owned();
    }
    if kernel.exists(Path::new(DMEVENTD)) && !holders::runs(kernel, "dmeventd") {
        return "LVM waits for dmeventd, which does not run: run `systemctl restart dm-event.socket dm-event.service`. If it \
                runs elsewhere, LVM waits for udev or a disk (`udevadm settle`, `pvs`, `dmesg`)"
            .to_owned();
    }
    match Udev::ask(kernel) {
        Udev::CannotBeHeard => {
            "LVM waits for udev, whose answer does not come here: kubelet runs in an IPC namespace of its own. Run it \
             in the host's (`hostIPC: true` of a pod, `--ipc host` of a container)"
        }
        Udev::Killed => {
            "LVM waits for udev, and udevd was killed: run `systemctl restart systemd-udevd`"
        }
        Udev::Listens | Udev::NoSocket => {
            "LVM waits for udev or for a disk: check that udevd runs (`udevadm settle`, `dmsetup udevcookies`) and that \
             each disk answers (`pvs`, `dmesg`)"
        }
    }
    .to_owned()
}

/// The name of a suspended device that is inside an open encrypted volume, or below such a device. LVM reads each
/// device that may be one of its disks, even inside an encrypted volume. If such a device is suspended, LVM waits in
/// the kernel.
fn suspended_inside(kernel: &Kernel) -> Option<String> {
    let mut all = Mapped::all(kernel);
    all.retain(|device| {
        let uuid = device.uuid(kernel);
        uuid.is_some_and(|uuid| uuid.starts_with("CRYPT-"))
    });
    all.iter().find_map(|device| device.suspended(kernel))
}

/// The device-mapper name of a suspended device of sanlock's leases. An lvcreate suspends this device for a moment: it
/// refreshes the device, since another node may have extended it (source: LVM's lib/locking/lvmlockd.c). So only a
/// device that stays suspended longer counts.
fn suspended_leases(kernel: &Kernel) -> Option<String> {
    const MOMENT: Duration = Duration::from_millis(300);
    let device = Mapped::all(kernel)
        .into_iter()
        .find(|device| suspended_as_leases(kernel, device).is_some())?;
    kernel.pause(MOMENT);
    suspended_as_leases(kernel, &device)
}

fn suspended_as_leases(kernel: &Kernel, device: &Mapped) -> Option<String> {
    let name = device.name(kernel)?;
    (name.ends_with("-lvmlock") && device.is_suspended(kernel)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multipath_device_without_paths_is_named() {
        let cases = [
            (
                "mpatha: 0 9 multipath 2 0 0 0 1 1 E 0 2 2 8:16 F 1 8:32 F 1",
                Some("mpatha"),
            ),
            (
                "mpatha: 0 9 multipath 2 0 0 0 1 1 E 0 2 2 8:16 F 1 8:32 A 0",
                None,
            ),
            ("mpatha: 0 9 multipath 2 0 0 0 0 0", None),
        ];
        for (line, want) in cases {
            assert_eq!(without_paths(line), want, "{line}");
        }
    }
}
