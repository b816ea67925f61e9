//! What the next mount of a volume would do, for the commands that tell it.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::config::Config;
use crate::host::{Host, Lock};
use crate::lvm::{self, Group, Volume, twins};
use crate::names::{FsType, LvId};
use crate::options::Options;
use crate::volume::{
    Content, Decision, Device, Elsewhere, Facts, Grow, Job, Level, Lvm, Pool, Purpose, Reason,
    Tables, Wish, lock,
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
    let options = Options::of(id.clone(), ask.fs, ask.read_only);
    let job = Job::new(host, config, &options);
    let wish = Wish {
        purpose: Purpose::Filesystem,
        ..job.wish(None)
    };
    let device = match ask.device {
        Some(device) => Ok(Some(device.clone())),
        None => Device::find(host.kernel, id),
    };
    let mut seen = job.look_at(device, None);
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

/// What it is called where the device was not read: that alone would tell.
const UNREAD: &str = "unread";

#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub volume: String,
    /// In a word: `mount`, `format`, `bind`, `activate`, `resume`, `refuse`, `unread`.
    #[serde(rename = "verdict")]
    pub word: &'static str,
    /// Why it is refused: a stable word, such as `wrong-type`.
    pub reason: Option<&'static str>,
    pub message: Option<String>,
    /// What was seen, and what would be done, in order.
    pub steps: Vec<String>,
    #[serde(skip)]
    is_hosts: bool,
}

impl Verdict {
    pub fn of(seen: &Seen) -> Self {
        let facts = &seen.facts;
        let mut steps = found(facts);
        let (word, reason) = match &seen.decision {
            Decision::Refuse(reason) => ("refuse", Some(reason)),
            Decision::Bind(row) => {
                steps.push(format!("bind from {}", row.mount_point.display()));
                ("bind", None)
            }
            Decision::Mount(mount) => {
                for other in &mount.elsewhere {
                    steps.push(format!(
                        "mounted elsewhere: {}",
                        Elsewhere::list(std::slice::from_ref(other))
                    ));
                }
                if mount.check {
                    steps.push("check it with e2fsck -p".to_owned());
                }
                if mount.grow == Grow::Before {
                    steps.push("grow it to the size of the volume".to_owned());
                }
                steps.push(format!("mount {} {}", mount.fs, mount.uuid));
                if mount.record {
                    steps.push("record it in the volume's tags".to_owned());
                }
                if mount.grow == Grow::After {
                    steps.push("grow it to the size of the volume".to_owned());
                }
                ("mount", None)
            }
            Decision::Make { fs, again } => {
                let again = if *again {
                    " again: its mkfs was stopped"
                } else {
                    ""
                };
                steps.push(format!("make {fs}{again}"));
                steps.push(format!("mount {fs}"));
                ("format", None)
            }
            Decision::Resume => {
                steps.push("resume what a killed LVM command left suspended".to_owned());
                ("resume", None)
            }
            Decision::Look(_) => {
                steps.push("read what is on it".to_owned());
                (UNREAD, None)
            }
            _ => {
                steps.push("activate it, and look at what is on it".to_owned());
                ("activate", None)
            }
        };
        Self {
            volume: facts.id.to_string(),
            word,
            reason: reason.map(Into::into),
            message: reason.map(|reason| reason.of(&facts.id)),
            is_hosts: reason.is_some_and(|reason| is_hosts(reason, facts)),
            steps,
        }
    }

    pub fn unknown(id: &LvId, message: String) -> Self {
        Self {
            volume: id.to_string(),
            word: "refuse",
            reason: Some("not-looked-at"),
            message: Some(message),
            steps: Vec::new(),
            is_hosts: false,
        }
    }

    /// Why it is refused, else the word.
    pub fn line(&self) -> &str {
        self.message.as_deref().unwrap_or(self.word)
    }

    /// Whether the next mount would succeed, as far as that can be told without mounting.
    pub fn is_good(&self) -> bool {
        !matches!(self.word, "refuse" | "activate" | UNREAD)
    }

    /// Whether the device would have to be read to tell.
    pub fn is_unread(&self) -> bool {
        self.word == UNREAD
    }

    /// `wrong-type` says more than `refuse`.
    pub fn short(&self) -> &'static str {
        self.reason.unwrap_or(self.word)
    }

    /// Whether the host itself uses the volume, or it is a part of LVM's own: no pod's in any case.
    pub fn is_hosts(&self) -> bool {
        self.is_hosts
    }
}

fn is_hosts(reason: &Reason, facts: &Facts) -> bool {
    match reason {
        Reason::Swap | Reason::Below(_) | Reason::HostMount(_) | Reason::Pool => true,
        // A virtual machine's disk, say. One that a pod had before is missed by its pod.
        Reason::Open(_) | Reason::OpenUnseen | Reason::Loop(_) => facts
            .volume()
            .is_some_and(|volume| volume.record.tags.is_empty()),
        _ => false,
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
