//! `lvm install --follow`: what the container of the `DaemonSet` runs.

use std::time::Duration;

use anyhow::Result;

use super::Report;
use super::answer;
use super::place::Place;
use crate::cli::Printed;
use crate::host::Host;
use crate::host::files;

/// How often the host's file is looked at: one stat(2) each time.
const EVERY: Duration = Duration::from_secs(2);

/// Installs, and then keeps the driver there until it is told to stop. A newer version that comes
/// meanwhile is left alone; one that is there at the start is not, or nothing could be rolled back.
///
/// # Errors
/// Why the first installation failed. A later one is said, and tried again.
pub fn follow(
    host: &Host,
    place: &Place,
    driver: &[u8],
    put: impl Fn() -> Result<Report>,
) -> Result<Printed> {
    files::tell(&put()?.done);
    let mut good = None;
    let mut failed: Option<String> = None;
    while !host.kernel.pause(EVERY) {
        // Looked at before it is read: whatever replaces it meanwhile has another stamp.
        let now = files::stamp(&place.exe);
        if now.is_some() && now == good {
            continue;
        }
        let fits = now.is_some()
            && (files::is_executable_with(&place.exe, driver) || is_newer(host, place));
        (good, failed) = if fits {
            (now, None)
        } else {
            (None, install_again(place, &put, failed.as_deref()))
        };
    }
    Ok(Printed {
        stdout: "stopped    as told; the driver stays on the node\n".to_owned(),
        ..Printed::default()
    })
}

fn is_newer(host: &Host, place: &Place) -> bool {
    let newer = answer::version(host, &place.exe) > answer::own_version();
    if newer {
        let exe = place.exe.display();
        files::tell(&format!("left       {exe}, which is a newer version\n"));
    }
    newer
}

/// Returns why it failed. What is the same as `before`, the round before this one, is not said
/// again: the log of the container would hold nothing else.
fn install_again(
    place: &Place,
    put: impl Fn() -> Result<Report>,
    before: Option<&str>,
) -> Option<String> {
    if before.is_none() {
        let exe = place.exe.display();
        files::tell(&format!("missing    {exe}, or it was replaced\n"));
    }
    match put() {
        Ok(report) => {
            files::tell(&report.done);
            None
        }
        Err(error) => {
            let why = format!("failed     {error:#}\n");
            if before != Some(why.as_str()) {
                files::tell(&why);
            }
            Some(why)
        }
    }
}
