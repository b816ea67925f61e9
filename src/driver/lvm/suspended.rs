//! Resumes devices that a failed command left suspended: otherwise every access of a pod would wait.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::mapped::{Mapped, RESUME, group_of, with_its_table};
use crate::host::{Command, DeviceNumber, Host, Kernel, holders};
use crate::names::VgName;

/// If a command of the driver failed (`done`), resumes a device, and those of its group below it. Before that command,
/// none of these devices was suspended. Runs dmsetup, and waits up to 10 s for other LVM commands. Runs also if the
/// driver was told to stop. If a device stays suspended, adds the device's name to the error.
///
/// Each device gets the table that it had before. LVM may have loaded a second table, and may since have freed the
/// extents of that second table.
pub fn resume_if_failed(
    host: &Host,
    vg: &VgName,
    device: DeviceNumber,
    done: Result<()>,
) -> Result<()> {
    let kernel = host.kernel;
    let Err(error) = done else {
        return Ok(());
    };
    if suspended(kernel, device).is_empty() {
        return Err(error);
    }
    kernel.undo(|| {
        if is_free(host, vg) {
            for name in suspended(kernel, device) {
                resume(host, &name);
            }
        }
    });
    Err(match suspended(kernel, device).first() {
        None => error,
        Some(name) => error.context(format!(
            "the device {name} was left suspended, and its pods wait: if no LVM command is at work, run `{}`",
            with_its_table(name)
        )),
    })
}

/// The names of this device and of those of its group below it, as far as they are suspended, the lowest first.
///
/// The disks of a group may be on volumes of another group. While a command of LVM works on that other group, that
/// command has devices of that group suspended, and nobody else may resume them.
fn suspended(kernel: &Kernel, device: DeviceNumber) -> Vec<String> {
    let mut stack = Mapped::of(device).stack(kernel);
    let uuid = |one: &Mapped| one.uuid(kernel).unwrap_or_default();
    let own = stack.last().map(uuid);
    // The device inside an encrypted volume is cryptsetup's, and is on a volume of the group.
    let group = stack
        .iter()
        .rev()
        .find_map(|one| group_of(&uuid(one)).map(str::to_owned));
    stack.retain(|one| {
        let uuid = uuid(one);
        let is_own = own.as_ref() == Some(&uuid);
        let is_of_group = group.as_ref().is_some_and(|group| uuid.starts_with(group));
        (is_own || is_of_group) && one.is_suspended(kernel)
    });
    stack.iter().filter_map(|one| one.name(kernel)).collect()
}

fn resume(host: &Host, name: &str) {
    host.log.about("resumed", name);
    for args in [&["clear"][..], &RESUME] {
        let command = Command::writes("dmsetup", host.limits.query).args(args);
        if let Err(error) = host.run(&command.operand(name)) {
            host.log.about("left-suspended", &error.to_string());
            return;
        }
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
