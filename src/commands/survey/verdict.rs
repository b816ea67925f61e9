//! What the next mount of a volume would do, for the commands that tell it.

use std::time::Duration;

use anyhow::{Error, Result, bail};
use serde::Serialize;

use crate::config::Config;
use crate::host::{Host, Lock};
use crate::lvm::{self, Group, Volume, twins};
use crate::names::{FsType, LvId};
use crate::volume::{
    Content, Decision, Device, Elsewhere, Facts, Grow, Level, Look, Lvm, Pool, Reason, Tables,
    Wish, lock,
};

/// How long sanlock is asked which node has a volume: its disk may hang.
const HOLDER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Default)]
pub struct Ask<'a> {
    pub fs: Option<FsType>,
    pub read_only: bool,
    /// How long a call that works on the volume is waited for.
    pub patience: Duration,
    /// Its device, where the kernel was asked just now.
    pub device: Option<&'a Device>,
    /// All volumes, where LVM has listed them just now.
    pub all: &'a [Volume],
    /// And all groups.
    pub groups: &'a [Group],
    /// The kernel's tables, where they were read just now.
    pub tables: Option<&'a Tables>,
    /// The device is not read, though the next mount would read it.
    pub unread: bool,
}

pub struct Seen {
    pub facts: Facts,
    pub decision: Decision,
    /// The volume's lock. None: it is not active, or the lock was not taken.
    pub lock: Option<Lock>,
}

impl Seen {
    pub fn volume(&self, id: &LvId) -> Result<&Volume> {
        match self.facts.volume() {
            Some(volume) => Ok(volume),
            None => bail!("LVM was not asked for {id}"),
        }
    }
}

/// Looks at a volume as the next mount does, under its lock, and changes nothing.
pub fn look(host: &Host, config: &Config, id: &LvId, ask: Ask) -> Result<Seen> {
    let wish = Wish::of_person(config, id, ask.fs, ask.read_only);
    let device = match ask.device {
        Some(device) => Ok(Some(device.clone())),
        None => Device::find(host.kernel, id),
    };
    let mut seen = Look::at(host, config, id, device, None);
    seen.tables = ask.tables;
    seen.by_person = true;
    let lock = match &seen.facts.device {
        Some(device) => Some(lock::hold(host.kernel, device, ask.patience)?),
        None => None,
    };
    let mut decision = seen.settle_up_to(Level::Uses, &wish)?;
    let uses = seen.facts.uses.as_ref();
    if uses.is_none_or(|uses| uses.suspended.is_none()) {
        seen.facts.lvm = listed(host, id, ask);
    }
    if let Decision::Look(_) = decision {
        decision = seen.settle_up_to(Level::Lvm, &wish)?;
        let is_new = seen.facts.is_new();
        // An lvcreate may be at work on it.
        let _being_made = is_new
            .then(|| lock::hold_name(host.kernel, &id.dm_name(), ask.patience))
            .transpose()?;
        if let Decision::Look(_) = decision
            && !ask.unread
        {
            decision = seen.settle(&wish)?;
        }
    }
    let is_shared = seen.facts.volume().is_some_and(|v| v.lock.is_some());
    if decision == Decision::Activate && is_shared && !ask.unread {
        seen.note_holder(HOLDER.min(config.limits.query));
        decision = seen.settle(&wish)?;
    }
    // Whatever was decided, these are shown.
    if seen.facts.uses.is_none() {
        seen.facts.uses = seen.uses()?;
    }
    if seen.facts.lvm.is_none() {
        seen.facts.lvm = Some(seen.ask_lvm(&wish));
    }
    Ok(Seen {
        facts: seen.facts,
        decision,
        lock,
    })
}

/// What a list of all volumes says of one.
fn listed(host: &Host, id: &LvId, Ask { all, groups, .. }: Ask) -> Option<Lvm> {
    let is_its = |group: &&Group| group.name == id.vg().as_str();
    let number = groups.iter().filter(is_its).count();
    if number > 1 {
        return Some(Lvm::Silent(twins(id.vg(), number)));
    }
    let volume = Volume::among(all, id)?;
    let pool = match &volume.pool {
        None => None,
        Some(name) => Some(match volume.pool_among(all) {
            Some(pool) => Pool::Seen(Box::new(pool.clone())),
            None => Pool::Unseen(LvId::new(id.vg().clone(), name.clone()).ok()?),
        }),
    };
    Some(Lvm::Volume {
        volume: Box::new(volume.clone()),
        pool,
        unused_table: false,
        lost: volume.health.contains("partial") && lvm::has_lost_data(host, volume).unwrap_or(true),
    })
}

/// What the next mount of a volume would do, as far as that can be told without mounting.
#[derive(Debug, Clone, Serialize)]
#[serde(into = "Shown")]
pub struct Verdict {
    pub id: LvId,
    pub outcome: Outcome,
    /// What was seen, and what would be done, in order.
    pub steps: Vec<String>,
    /// Whether it is no pod's in any case: the host itself uses the volume, or it is a part of LVM's own.
    pub is_hosts: bool,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Decided(Decision),
    /// It is mounted if `e2fsck -p` can repair what is wrong, which this tells.
    Repair(String),
    /// The tool that it takes refuses: a stable word for which, and what it says.
    Tried(&'static str, String),
    /// A call works on it just now: its step, and for how long.
    Busy(String),
    /// It could not be looked at.
    Unknown(String),
}

/// A verdict for programs: these fields stay.
#[derive(Serialize)]
struct Shown {
    volume: String,
    /// In a word: `mount`, `format`, `bind`, `activate`, `repair`, `resume`, `refuse`, `unread`,
    /// `busy`.
    verdict: &'static str,
    /// Why it is refused: a stable word, such as `wrong-type`.
    reason: Option<&'static str>,
    message: Option<String>,
    steps: Vec<String>,
}

impl From<Verdict> for Shown {
    fn from(verdict: Verdict) -> Self {
        Self {
            volume: verdict.id.to_string(),
            verdict: verdict.word(),
            reason: verdict.why(),
            message: verdict.message(),
            steps: verdict.steps,
        }
    }
}

impl Verdict {
    pub fn of(seen: &Seen) -> Self {
        let facts = &seen.facts;
        let mut steps = found(facts);
        steps.extend(to_do(&seen.decision));
        let is_hosts = match &seen.decision {
            Decision::Refuse(reason) => is_hosts(reason, facts),
            _ => false,
        };
        Self {
            id: facts.id.clone(),
            outcome: Outcome::Decided(seen.decision.clone()),
            steps,
            is_hosts,
        }
    }

    /// That of a look that failed.
    pub fn of_error(id: &LvId, error: &Error) -> Self {
        let outcome = match error.downcast_ref::<lock::Busy>() {
            Some(busy) => Outcome::Busy(busy.at_work()),
            None => Outcome::Unknown(format!("{error:#}")),
        };
        Self {
            id: id.clone(),
            outcome,
            steps: Vec::new(),
            is_hosts: false,
        }
    }

    pub fn refusal(&self) -> Option<&Reason> {
        match &self.outcome {
            Outcome::Decided(Decision::Refuse(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Whether it would be refused, for all that is known.
    pub fn is_refused(&self) -> bool {
        self.why().is_some()
    }

    /// Whether the next mount would succeed.
    pub fn is_good(&self) -> bool {
        match &self.outcome {
            Outcome::Decided(decision) => match decision {
                Decision::Bind(_)
                | Decision::Keep { .. }
                | Decision::Mount(_)
                | Decision::Make { .. }
                | Decision::Resume
                | Decision::Ready => true,
                Decision::Refuse(_)
                | Decision::Look(_)
                | Decision::Activate
                | Decision::Create(_)
                | Decision::Extend => false,
            },
            _ => false,
        }
    }

    /// Whether it would have to be activated to tell.
    pub fn is_inactive(&self) -> bool {
        matches!(self.outcome, Outcome::Decided(Decision::Activate))
    }

    /// Whether the device would have to be read to tell.
    pub fn is_unread(&self) -> bool {
        matches!(self.outcome, Outcome::Decided(Decision::Look(_)))
    }

    pub fn word(&self) -> &'static str {
        match &self.outcome {
            Outcome::Decided(decision) => match decision {
                Decision::Refuse(_) => "refuse",
                Decision::Bind(_) | Decision::Keep { .. } | Decision::Ready => "bind",
                Decision::Mount(_) => "mount",
                Decision::Make { .. } => "format",
                Decision::Resume => "resume",
                Decision::Look(_) => "unread",
                Decision::Activate | Decision::Create(_) | Decision::Extend => "activate",
            },
            Outcome::Busy(_) => "busy",
            Outcome::Repair(_) => "repair",
            Outcome::Tried(..) | Outcome::Unknown(_) => "refuse",
        }
    }

    fn why(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Unknown(_) => Some("not-looked-at"),
            Outcome::Tried(tool, _) => Some(tool),
            _ => self.refusal().map(Into::into),
        }
    }

    /// `wrong-type` says more than `refuse`.
    pub fn short(&self) -> &'static str {
        self.why().unwrap_or_else(|| self.word())
    }

    /// Why it is refused, or who is at work on it.
    pub fn message(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Decided(_) => self.refusal().map(|reason| reason.of(&self.id)),
            Outcome::Busy(what)
            | Outcome::Repair(what)
            | Outcome::Tried(_, what)
            | Outcome::Unknown(what) => Some(what.clone()),
        }
    }

    /// The step that says most, for a list.
    pub fn main_step(&self) -> Option<String> {
        let Outcome::Decided(decision) = &self.outcome else {
            return None;
        };
        let steps = to_do(decision);
        let mounts = |step: &&String| step.starts_with("mount ") || step.starts_with("make ");
        steps.iter().find(mounts).or(steps.last()).cloned()
    }
}

fn is_hosts(reason: &Reason, facts: &Facts) -> bool {
    match reason {
        Reason::Swap | Reason::Below(_) | Reason::HostMount(_) | Reason::Pool => true,
        // A virtual machine's disk, say, or a group that is not for pods. One that a pod had before is missed
        // by its pod.
        Reason::Open(_) | Reason::OpenUnseen | Reason::Loop(_) | Reason::NotAllowed(_) => facts
            .volume()
            .is_some_and(|volume| volume.record.tags.is_empty()),
        _ => false,
    }
}

/// What the next mount would do, in order.
fn to_do(decision: &Decision) -> Vec<String> {
    match decision {
        Decision::Refuse(_) | Decision::Keep { .. } | Decision::Ready => Vec::new(),
        Decision::Bind(row) => vec![format!("bind from {}", row.mount_point.display())],
        Decision::Mount(mount) => {
            let grow = |when: Grow| {
                let now = mount.grow == when;
                now.then(|| "grow it to the size of the volume".to_owned())
            };
            let elsewhere = mount.elsewhere.iter().map(|other| {
                let other = Elsewhere::list(std::slice::from_ref(other));
                format!("mounted elsewhere: {other}")
            });
            let mut steps: Vec<String> = elsewhere.collect();
            let check = "check it with e2fsck -p, which must find nothing that it cannot repair";
            steps.extend(mount.check.then(|| check.to_owned()));
            steps.extend(grow(Grow::Before));
            steps.push(format!("mount {} {}", mount.fs, mount.uuid));
            if mount.record {
                steps.push("record it in the volume's tags".to_owned());
            }
            steps.extend(grow(Grow::After));
            steps
        }
        Decision::Make { fs, again } => {
            let again = if *again {
                " again: its mkfs was stopped"
            } else {
                ""
            };
            vec![format!("make {fs}{again}"), format!("mount {fs}")]
        }
        Decision::Resume => {
            vec!["resume what a killed LVM command left suspended".to_owned()]
        }
        Decision::Look(_) => vec!["read what is on it".to_owned()],
        Decision::Activate | Decision::Create(_) | Decision::Extend => {
            vec!["activate it, and look at what is on it".to_owned()]
        }
    }
}

fn found(facts: &Facts) -> Vec<String> {
    let mut steps = vec![match &facts.device {
        Some(device) => format!("active: {} ({})", device.path.display(), device.number),
        None => "not active".to_owned(),
    }];
    if let Some(uses) = &facts.uses {
        for mounted in &uses.mounts {
            steps.push(format!("mounted at {}", mounted.row.mount_point.display()));
        }
    }
    if let Some(Lvm::Volume { volume, .. }) = &facts.lvm {
        let tags = volume.record.tags.join(", ");
        steps.push(if tags.is_empty() {
            "no record in its tags".to_owned()
        } else {
            format!("its record: {tags}")
        });
    }
    if let Some(content) = &facts.content {
        steps.push(content_in_words(content));
    }
    steps
}

pub fn content_in_words(content: &Content) -> String {
    match content {
        Content::Blank { zero: true, .. } => {
            "blank: all that could hold a signature reads as zero".to_owned()
        }
        Content::Blank { .. } => "nothing that blkid knows".to_owned(),
        Content::Filesystem(found) => format!(
            "{} {}, covering {} of {}",
            found.fs, found.uuid, found.covers, found.device
        ),
        Content::Damaged(fs) => format!("{fs}, damaged"),
        Content::Other(what) => what.clone(),
        Content::Several => "several signatures at once".to_owned(),
        Content::Unreadable { at, .. } => format!("cannot be read at byte {at}"),
        Content::Claimed(_) => "in use".to_owned(),
        Content::Failed(why) => why.clone(),
    }
}
