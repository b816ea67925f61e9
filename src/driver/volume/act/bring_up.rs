//! Mounts a volume: carries out decisions under the volume's lock.

use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use nix::libc::{EINVAL, ENOENT, ESTALE};

use super::close::close;
use super::encrypted;
use super::first_mount::first_mount;
use super::make::make;
use super::release::{LONGEST_LOOK, give_up};
use crate::host::{Kernel, Lock};
use crate::mount::{Row, bind, make_dirs, mounted_at, restrict};
use crate::reply::Reply;
use crate::volume::decide::Decision;
use crate::volume::job::Job;
use crate::volume::lock::HeldLocks;
use crate::volume::look::Look;
use crate::volume::step::Step;
use crate::volume::subject::Subject;

/// `mountdevice <global dir> <device> <options>` and `mount <dir> <options>`: puts the volume's filesystem at the
/// directory, making it first if the volume is blank. If the volume is mounted already, binds that mount to the
/// directory. Calling it again succeeds and changes nothing.
pub fn bring_up(job: &Job) -> Result<Reply> {
    let dir = job.dir.context("no directory to mount on")?;
    let mut new_dirs = Vec::new();
    let mounted = make_missing(job.subject.host.kernel, dir, &mut new_dirs).and_then(|()| {
        job.conduct(|seen, decision, locks| carry_out(job, dir, seen, decision, locks))
    });
    match mounted {
        Ok(warnings) => Ok(Reply::success().with_message(&warnings.join("; "))),
        Err(error) => {
            let Subject { host, .. } = job.subject;
            host.kernel.undo(|| undo(job.subject, &new_dirs));
            Err(error)
        }
    }
}

/// Makes the directory and its missing parents, and adds those that it makes to `new`: if the call fails, they are
/// removed. Runs before the slow steps: during such a step, the pod may end, and kubelet may remove the directory. A
/// directory that is made after that step would get a mount that nobody unmounts.
fn make_missing<'a>(kernel: &Kernel, dir: &'a Path, new: &mut Vec<&'a Path>) -> Result<()> {
    // If a filesystem is mounted there already, any further access might hang.
    if mounted_at(kernel, dir)?.is_some() {
        return Ok(());
    }
    new.extend(dir.ancestors().take_while(|dir| !kernel.exists(dir)));
    make_dirs(kernel, dir)
}

/// After a failed call: removes the directories that it made, and closes the volume. Deactivates the volume if nodes
/// share its group.
fn undo(subject: Subject, new_dirs: &[&Path]) {
    let Subject { host, .. } = subject;
    for dir in new_dirs {
        // Fails, rightly, if somebody has put something there.
        let _ = host.kernel.remove_dir(dir);
    }
    // Waits for a look at the volume to end. Another call that works on the volume closes it itself.
    if let Err(error) = close(subject, LONGEST_LOOK) {
        host.log.about("left-open", &format!("{error:#}"));
    }
    give_up(subject);
}

/// Carries out what was decided for a volume that is active. Returns warnings to show although the call succeeded.
fn carry_out(
    job: &Job,
    dir: &Path,
    mut seen: Look,
    decision: Decision,
    locks: &HeldLocks,
) -> Result<Step<Vec<String>>> {
    let Subject { host, id, .. } = job.subject;
    // A volume that is mounted here already was tagged by the call that mounted it.
    if !decision.keeps_mount() {
        job.tag_kubelets_name_if_needed(seen.facts.volume());
    }
    match decision {
        Decision::Ready => Ok(Step::Done(Vec::new())),
        // The node's config has changed, or somebody has changed the mount.
        Decision::Restrict { row, flags } => {
            restrict(host, &row, dir, flags, locks.of_volume()?)?;
            Ok(Step::Done(Vec::new()))
        }
        Decision::Bind(from) => bind_from(job, &from, dir, locks.of_volume()?),
        Decision::Open { read_only } => {
            encrypted::open(job, &mut seen, read_only, locks.of_volume()?)?;
            Ok(Step::LookAgain("it was opened"))
        }
        Decision::Mount(how) => {
            let top = seen.facts.top().cloned();
            let on = top.with_context(|| format!("{id} has no device"))?;
            first_mount(job, dir, seen, (how, on), false, locks.of_volume()?)
        }
        Decision::Make { permit, how } => {
            let lock = locks.of_volume()?;
            match make(job, &mut seen, permit, &how, lock)? {
                Step::Done(made) => first_mount(job, dir, seen, made, true, lock),
                Step::LookAgain(why) => Ok(Step::LookAgain(why)),
            }
        }
        // `conduct`, or a call that grows the volume, carries these out.
        Decision::Look(_)
        | Decision::Extend(_)
        | Decision::Create(_)
        | Decision::Activate
        | Decision::Resume
        | Decision::Refuse(_) => bail!("{decision:?} is no decision about a mount of {id}"),
    }
}

/// Binds the mount `from` to the directory.
fn bind_from(job: &Job, from: &Row, dir: &Path, lock: &Lock) -> Result<Step<Vec<String>>> {
    let flags = job.wish.flags_of(from);
    match bind(job.subject.host, from, dir, flags, lock) {
        // An unmount takes no lock: the mount to bind from may have just gone.
        Err(error) if is_gone(&error) => Ok(Step::LookAgain("the mount to bind from is gone")),
        done => done.map(|()| Step::Done(Vec::new())),
    }
}

fn is_gone(error: &Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
        .is_some_and(|code| matches!(code, EINVAL | ENOENT | ESTALE))
}
