//! Resumes devices that a failed command left suspended: otherwise every access of a pod would wait.

use std::time::{Duration, Instant};

use anyhow::Error;

use super::mapped::{Mapped, RESUME, with_its_table};
use crate::host::{Command, DeviceNumber, Host, holders};
use crate::names::VgName;

/// Resumes a device, and those below it, after a failed command of the driver. Before that command, none of these
/// devices was suspended. Returns the command's `error`. If a device stays suspended, adds the device's name to the
/// error.
///
/// Each device gets the table that it had before. LVM may have loaded a second table, and may since have freed the
/// extents of that second table.
pub fn resumed(host: &Host, vg: &VgName, device: DeviceNumber, error: Error) -> Error {
    let device = Mapped::of(device);
    if device.suspended(host.kernel).is_none() {
        return error;
    }
    if is_free(host, vg) {
        device.for_each(host.kernel, &|one| resume(host, one));
    }
    match device.suspended(host.kernel) {
        None => error,
        Some(name) => error.context(format!(
            "the device {name} was left suspended, and its pods wait: if no LVM command is at work, run `{}`",
            with_its_table(&name)
        )),
    }
}

fn resume(host: &Host, device: &Mapped) {
    let Some(name) = device.name(host.kernel) else {
        return;
    };
    if !device.is_suspended(host.kernel) {
        return;
    }
    host.log.about("resumed", &name);
    let dmsetup = |args: &[&str]| {
        let command = Command::writes("dmsetup", host.limits.query).args(args);
        host.run(&command.operand(&name)).map(drop)
    };
    let resumed = dmsetup(&["clear"]).and_then(|()| dmsetup(&RESUME));
    if let Err(error) = resumed {
        host.log.about("left-suspended", &error.to_string());
    }
}

/// Waits until no LVM command works on the group, since a running command needs the table that it has loaded. False: a
/// command still works after 10 s, or the driver is told to stop.
fn is_free(host: &Host, vg: &VgName) -> bool {
    const MOST: Duration = Duration::from_secs(10);
    const APART: Duration = Duration::from_millis(100);
    let began = Instant::now();
    while !holders::of_lvm_lock(host.kernel, Some(vg)).is_empty() {
        if began.elapsed() > MOST || host.kernel.pause(APART) {
            return false;
        }
    }
    true
}
