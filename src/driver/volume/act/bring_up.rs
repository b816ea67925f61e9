//! Carries out decisions under the volume's lock, and looks again after each wait.

use std::path::Path;

use anyhow::{Error, Result, bail};
use nix::libc::{EINVAL, ENOENT, ESTALE};
use nix::mount::MsFlags;

use super::encrypted;
use super::first_mount::FirstMount;
use super::job::Job;
use super::make::{What, make};
use super::resume::ensure_not_suspended;
use crate::host::Lock;
use crate::mount::{Row, bind, make_dirs, restrict};
use crate::names::FsType;
use crate::volume::decide::{Decision, Level, Refusal, There};
use crate::volume::device::Device;
use crate::volume::look::{Asker, Decided, HeldLocks, Look, look_under_lock, require_same};
use crate::volume::subject::Subject;

/// Mounts the volume's filesystem at `dir`. `handed`: the device that kubelet passes, or "". Returns warnings
/// to show although the call succeeded. A repeated call succeeds and changes nothing.
pub fn bring_up<'a>(job: &Job<'a>, dir: &'a Path, handed: &str) -> Result<Option<String>> {
    let host = job.subject.host;
    let kernel = host.kernel;
    let (device, made) = job.activate(None)?;
    require_same(host, job.options, handed, &device)?;
    let wish = job.wish(Some(dir));
    // A mount that is already there needs no lock.
    let asker = job.asker(Some(dir)).who_made(made.as_ref());
    let mut seen = Look::at(job.subject, asker);
    match seen.settle_up_to(Level::Uses, &wish)? {
        Decision::Keep { flags } => return keep(job, &seen, dir, flags),
        Decision::Refuse(reason) => return Err(Refusal::of(&device.id, reason).into()),
        _ => {}
    }
    let (device, lock) = job.hold_active(device)?;
    job.note_name(&device);
    // Directories come before slow steps: kubelet may remove the directory of a pod that has gone, and a mount
    // made there afterwards would never be unmounted.
    let made = dir.ancestors().take_while(|dir| !kernel.exists(dir));
    let made: Vec<&Path> = made.collect();
    make_dirs(kernel, dir)?;
    under_lock(job, dir, asker, &device, lock).inspect_err(|_| {
        for dir in made {
            // Fails, rightly, if somebody has put something there.
            let _ = kernel.remove_dir(dir);
        }
    })
}

/// Looks, decides and does one thing, until the volume `of` is mounted at `dir`. `lock`: its lock.
fn under_lock<'a>(
    job: &Job<'a>,
    dir: &'a Path,
    asker: Asker<'a>,
    of: &Device,
    lock: Lock,
) -> Result<Option<String>> {
    const TRIES: usize = 8;
    let Subject { host, config, id } = job.subject;
    let wish = job.wish(Some(dir));
    let patience = config.limits.lock;
    let mut holding = HeldLocks::from(lock);
    for _ in 0..TRIES {
        let held = look_under_lock(job.subject, asker, &wish, patience, &mut holding)?;
        let Decided { mut seen, decision } = held;
        let Some(device) = seen.facts.device.clone() else {
            bail!("{id} was deactivated just now; repeat the call");
        };
        if device.lv_uuid != of.lv_uuid {
            // The name now means another volume, whose lock is not held.
            bail!("{id} was replaced by another volume just now; repeat the call");
        }
        let lock = holding.of_volume()?;
        let top = seen.facts.top().cloned().unwrap_or(device.clone());
        let is_new = !matches!(decision, Decision::Mount(_));
        let (how, on) = match decision {
            Decision::Keep { flags } => return keep(job, &seen, dir, flags),
            Decision::Bind(from) => {
                note_options(job, &from);
                match bind(host.kernel, &from, dir, wish.restrictions(&from)) {
                    // An unmount takes no lock: the mount to bind from may have just gone.
                    Err(error) if is_gone(&error) => continue,
                    done => return done.map(|()| None),
                }
            }
            Decision::Resume => {
                ensure_not_suspended(job.subject, &device, Some(lock))?;
                continue;
            }
            Decision::Open { read_only } => {
                encrypted::open(job, &mut seen, &device, read_only, lock)?;
                continue;
            }
            Decision::Mount(how) => (how, top),
            Decision::Make { permit, again } => {
                let what = What::Plain { again };
                match make(job, &mut seen, &device, permit, &what, lock)? {
                    Some(made) => made,
                    None => continue,
                }
            }
            Decision::Encrypt { permit, uuid } => {
                let what = job.in_luks(uuid)?;
                match make(job, &mut seen, &device, permit, &what, lock)? {
                    Some(made) => made,
                    None => continue,
                }
            }
            Decision::MakeInside { permit } => {
                let uuid = top.luks.clone().unwrap_or_default();
                let what = What::Inside { uuid };
                match make(job, &mut seen, &device, permit, &what, lock)? {
                    Some(made) => made,
                    None => continue,
                }
            }
            Decision::Refuse(reason) => return Err(Refusal::of(id, reason).into()),
            // The volume has changed since the last look.
            Decision::Look(_)
            | Decision::Ready
            | Decision::Create(_)
            | Decision::Activate
            | Decision::Extend(_) => continue,
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
        if seen.took_long() {
            match seen.users_now(&wish)? {
                Some(Decision::Refuse(reason)) => return Err(Refusal::of(id, reason).into()),
                Some(_) => continue,
                None => {}
            }
        }
        remarks.extend(first.mount()?);
        return Ok((!remarks.is_empty()).then(|| remarks.join("; ")));
    }
    bail!(
        "what is known of {id} changes all the time, or something else is mounted over its mounts \
         (`findmnt`); repeat the call"
    )
}

fn keep(job: &Job, seen: &Look, dir: &Path, flags: Option<MsFlags>) -> Result<Option<String>> {
    let uses = seen.facts.uses.as_ref();
    let Some(There::This(row)) = uses.and_then(|uses| uses.there.as_ref()) else {
        return Ok(None);
    };
    note_options(job, row);
    if let Some(flags) = flags {
        // The node's config has changed, or somebody has changed the mount.
        restrict(job.subject.host.kernel, row, dir, flags)?;
    }
    Ok(None)
}

/// Logs mount options of the node and of the pod that do not apply. They belong to the filesystem, which pods share,
/// so they count only at its first mount. Those by which the node restricts each mount do apply.
fn note_options(job: &Job, row: &Row) {
    let Subject { host, config, id } = job.subject;
    let of_pod = &job.options.mount_options;
    let of_node = FsType::parse(&row.fs_type).map(|fs| config.mount_options(id.vg(), fs));
    let of_node = of_node.unwrap_or_default();
    let finals: Vec<&str> = of_node.finals().collect();
    let wanted = of_node.and_of_pod(of_pod).0.joined().unwrap_or_default();
    // ext shows `errors=` only if its superblock says otherwise.
    let says_errors = row.super_options.contains("errors=");
    let is_untold = |option: &str| option.starts_with("errors=") && !says_errors;
    let missing: Vec<&str> = wanted
        .split(',')
        .filter(|option| !["", "ro", "rw"].contains(option) && !finals.contains(option))
        .filter(|option| !row.has_option(option) && !is_untold(option))
        .collect();
    if !missing.is_empty() {
        host.log
            .about("mountoptions-not-applied", &missing.join(","));
    }
}

fn is_gone(error: &Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
        .is_some_and(|code| matches!(code, EINVAL | ENOENT | ESTALE))
}
