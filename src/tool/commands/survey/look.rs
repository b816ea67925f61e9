//! Looks at one volume as its next mount does.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use driver::host::Lock;
use driver::names::FsType;
use driver::options::Options;
use driver::volume::{Decision, Facts, Known, Reason, Subject, Wish, look_of_person};

/// How long to wait until sanlock says which node has a volume. sanlock's disk may hang.
const HOLDER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // independent wishes
pub struct Request<'a> {
    pub fs: Option<FsType>,
    pub read_only: bool,
    /// The options of a rehearsed call. They replace `fs` and `read_only`.
    pub options: Option<&'a Options>,
    /// How long to wait for a call that works on the volume.
    pub patience: Duration,
    /// If all looks at volumes have taken longer than this, the device is not read. `None`: no limit.
    pub longest: Option<Duration>,
    /// Whether to leave the device unread, even if the next mount would read it.
    pub unread: bool,
    /// Whether to look who has the device open, even if the next mount would not ask.
    pub users: bool,
    /// Whether to run e2fsck if the decided mount would run it. Here e2fsck does not write to the volume.
    pub tries: bool,
}

pub struct SeenVolume {
    pub facts: Facts,
    pub decision: Decision,
    /// The volume's lock. `None`: the volume is not active.
    pub lock: Option<Lock>,
}

/// Looks at a volume as the next mount does, under the volume's lock. Changes nothing.
pub fn look(subject: Subject, known: Option<Known>, request: Request) -> Result<SeenVolume> {
    let wish = wish(subject, request);
    let (mut seen, mut decision, lock) =
        look_of_person(subject, known, !request.unread, &wish, request.patience)?;
    let is_shared = seen.facts.volume().is_some_and(|v| v.lock.is_some());
    if decision == Decision::Activate && is_shared && !request.unread {
        seen.note_holder(HOLDER);
        decision = seen.settle(&wish)?;
    }
    // The commands show the users, even if the decision did not need them.
    if seen.facts.uses.is_none() {
        seen.facts.uses = seen.uses()?;
    }
    let waits = matches!(decision, Decision::Refuse(Reason::SuspendedInside(_)));
    if seen.facts.lvm.is_none() && !waits {
        seen.add_lvm(&wish);
    }
    if request.users {
        seen.facts.openers = Some(seen.remaining_openers()?);
    }
    Ok(SeenVolume {
        facts: seen.facts,
        decision,
        lock,
    })
}

/// What the next mount wishes, by a rehearsed call's options or by what a person says of it.
fn wish(subject: Subject, request: Request) -> Wish {
    let Subject { config, id, .. } = subject;
    match request.options {
        // The options describe a pod's mount, which would be in kubelet's directory.
        Some(options) => {
            let dir = config.kubelet_dirs.first().map(PathBuf::as_path);
            Wish::of_call(config, options, dir)
        }
        None => Wish::of_person(config, id, request.fs, request.read_only),
    }
}
