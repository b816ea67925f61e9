//! Mounts a volume: carries out decisions under the volume's lock.

use std::path::Path;

use anyhow::{Context, Error, Result};
use nix::libc::{EINVAL, ENOENT, ESTALE};

use super::encrypted;
use super::first_mount::FirstMount;
use super::make::make;
use crate::mount::{bind, make_dirs, mounted_at, restrict};
use crate::volume::decide::Decision;
use crate::volume::job::{Job, Subject};
use crate::volume::look::{HeldLocks, Look};

/// Mounts the volume's filesystem at `dir`. Returns warnings to show although the call succeeded. A repeated call
/// succeeds and changes nothing.
pub fn bring_up(job: &Job, dir: &Path) -> Result<Vec<String>> {
    let kernel = job.subject.host.kernel;
    let job = Job {
        dir: Some(dir),
        ..*job
    };
    // Directories come before slow steps: kubelet may remove the directory of a pod that has gone, and a mount made
    // there afterwards would never be unmounted. What is mounted there already may hang.
    let (mut made, mut are_made) = (Vec::new(), Ok(()));
    if mounted_at(kernel, dir)?.is_none() {
        made.extend(dir.ancestors().take_while(|dir| !kernel.exists(dir)));
        are_made = make_dirs(kernel, dir);
    }
    let mounted = are_made.and_then(|()| {
        job.conduct(&job.wish(), |seen, decision, locks| {
            mount(&job, seen, decision, locks)
        })
    });
    mounted.inspect_err(|_| {
        for dir in made {
            // Fails, rightly, if somebody has put something there.
            let _ = kernel.remove_dir(dir);
        }
    })
}

/// Carries out what was decided for a volume that is active. `None`: all is to be looked at again.
fn mount(
    job: &Job,
    mut seen: Look,
    decision: Decision,
    locks: &HeldLocks,
) -> Result<Option<Vec<String>>> {
    let Subject { host, id, .. } = job.subject;
    let dir = job.dir.context("no directory to mount on")?;
    match &decision {
        Decision::Ready => return Ok(Some(Vec::new())),
        // The node's config has changed, or somebody has changed the mount.
        Decision::Restrict { row, flags } => {
            return restrict(host.kernel, row, dir, *flags).map(|()| Some(Vec::new()));
        }
        _ => {}
    }
    job.note_name(seen.facts.volume());
    let lock = locks.of_volume()?;
    let is_new = !matches!(decision, Decision::Mount(_));
    let on = seen.facts.top().cloned();
    let on = on.with_context(|| format!("{id} has no device"))?;
    let made = match decision {
        Decision::Bind(from) => {
            return match bind(host.kernel, &from, dir, job.wish().restrictions(&from)) {
                // An unmount takes no lock: the mount to bind from may have just gone.
                Err(error) if is_gone(&error) => Ok(None),
                done => done.map(|()| Some(Vec::new())),
            };
        }
        Decision::Open { read_only } => {
            return encrypted::open(job, &mut seen, read_only, lock).map(|()| None);
        }
        Decision::Mount(how) => Some((how, on)),
        Decision::Make { permit, how } => make(job, &mut seen, permit, &how, lock)?,
        _ => None,
    };
    let Some((how, on)) = made else {
        return Ok(None);
    };
    // e2fsck and mount(8) claim the device themselves. The pin keeps its number until it is mounted.
    let first = FirstMount {
        job,
        dir,
        volume: seen.facts.require_volume()?.clone(),
        on: on.pin(host.kernel)?,
        how,
        is_new,
        lock,
    };
    seen.claim = None;
    let mut remarks = Vec::from_iter(first.prepare()?);
    // The device is pinned, and this call has the volume's lock: only another user can have come meanwhile.
    if seen.took_long() && !seen.is_still_free()? {
        return Ok(None);
    }
    remarks.extend(first.mount()?);
    Ok(Some(remarks))
}

fn is_gone(error: &Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
        .is_some_and(|code| matches!(code, EINVAL | ENOENT | ESTALE))
}
