//! One look at a volume, as its next mount looks.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use driver::host::Lock;
use driver::names::FsType;
use driver::options::Options;
use driver::volume::{
    Asker, Decision, Facts, HeldLocks, Known, Reason, Subject, Wish, look_under_lock,
};

/// How long to ask sanlock which node has a volume: its disk may hang.
const HOLDER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // wishes, each by itself
pub struct Request<'a> {
    pub fs: Option<FsType>,
    pub read_only: bool,
    /// The options of a call that is rehearsed, instead of these two.
    pub options: Option<&'a Options>,
    /// How long a call that works on the volume is waited for.
    pub patience: Duration,
    /// The device is read only as long as looking at volumes has taken less than this so far. `None`: always.
    pub longest: Option<Duration>,
    /// The device is not read, though the next mount would read it.
    pub unread: bool,
    /// Who has the device open is looked at in any case, even if the next mount would not ask.
    pub users: bool,
    /// e2fsck is tried, too, if the decided mount runs it, without writing to the volume.
    pub tries: bool,
}

pub struct SeenVolume {
    pub facts: Facts,
    pub decision: Decision,
    /// The volume's lock. None: it is not active.
    pub lock: Option<Lock>,
}

/// Looks at a volume as the next mount does, under its lock, and changes nothing.
pub fn look(subject: Subject, known: Option<Known>, request: Request) -> Result<SeenVolume> {
    let Subject { config, id, .. } = subject;
    let wish = match request.options {
        // The options are a pod's: kubelet will have it mounted in its own directory.
        Some(options) => {
            let dir = config.kubelet_dirs.first().map(PathBuf::as_path);
            Wish::of_call(config, options, dir)
        }
        None => Wish::of_person(config, id, request.fs, request.read_only),
    };
    let asker = Asker {
        is_person: true,
        unread: request.unread,
        known,
        ..Asker::default()
    };
    let mut holding = HeldLocks::default();
    let (mut seen, mut decision) =
        look_under_lock(subject, asker, &wish, request.patience, &mut holding)?;
    let is_shared = seen.facts.volume().is_some_and(|v| v.lock.is_some());
    if decision == Decision::Activate && is_shared && !request.unread {
        seen.note_holder(HOLDER);
        decision = seen.settle(&wish)?;
    }
    // The commands show these, whatever was decided.
    if seen.facts.uses.is_none() {
        seen.facts.uses = seen.uses()?;
    }
    let waits = matches!(decision, Decision::Refuse(Reason::SuspendedInside(_)));
    if seen.facts.lvm.is_none() && !waits {
        seen.add_lvm(&wish);
    }
    if request.users {
        seen.facts.openers = Some(seen.users()?);
    }
    Ok(SeenVolume {
        facts: seen.facts,
        decision,
        lock: holding.volume,
    })
}
