//! `lvm install --follow`: what the container of the `DaemonSet` runs.

use std::time::Duration;

use anyhow::Result;

use super::Report;
use super::answer;
use super::place::Place;
use crate::cli::Printed;
use crate::host::Host;
use crate::host::files::{self, Stamp};

/// How often the host's file is looked at: one stat(2) each time.
const EVERY: Duration = Duration::from_secs(2);

/// Installs, and then keeps the driver there until it is told to stop.
///
/// # Errors
/// Why the first installation failed. A later one is said, and tried again.
pub fn follow(host: &Host, place: &Place, put: impl Fn() -> Result<Report>) -> Result<Printed> {
    files::tell(&put()?.done);
    let mut seen = files::stamp(&place.exe);
    while !host.kernel.pause(EVERY) {
        let now = files::stamp(&place.exe);
        if now == seen && now.is_some() {
            continue;
        }
        seen = keep(host, place, now, &put);
    }
    Ok(Printed {
        stdout: "stopped    as told; the driver stays on the node\n".to_owned(),
        ..Printed::default()
    })
}

/// Installs again unless what is there now is a newer version. Returns what need not be looked at
/// again.
fn keep(
    host: &Host,
    place: &Place,
    now: Option<Stamp>,
    put: impl Fn() -> Result<Report>,
) -> Option<Stamp> {
    let exe = place.exe.display();
    let there = answer::version(host, &place.exe);
    if there > answer::own_version() {
        files::tell(&format!("left       {exe}, which is a newer version\n"));
        return now;
    }
    files::tell(&format!("missing    {exe}, or it was replaced\n"));
    match put() {
        Ok(report) => {
            files::tell(&report.done);
            files::stamp(&place.exe)
        }
        Err(error) => {
            files::tell(&format!("failed     {error:#}\n"));
            None
        }
    }
}
