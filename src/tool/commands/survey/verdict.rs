//! The verdict on a volume's next mount, for `check`, `status` and other commands.

use anyhow::Error;
use serde::{Serialize, Serializer};

use super::next_mount::NextMount;
use super::steps::{found, to_do};
use crate::commands::explain::Topic;
use driver::host::own_name;
use driver::names::{LvId, folded};
use driver::volume::{Concern, Decision, Facts, Reason, lock};

/// The result of a volume's next mount, as far as it can be known without mounting.
#[derive(Debug)]
pub struct Verdict {
    pub id: LvId,
    pub outcome: Outcome,
    /// The facts, and then the steps of the mount, in order.
    pub steps: Vec<String>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one for each volume
pub enum Outcome {
    Decided(Decision),
    /// The faults of an ext. The next mount repairs them if `e2fsck -p` can.
    Repair(String),
    /// The mount would fail: a tool or key is missing, or e2fsck cannot check the filesystem. The fields: the word, and
    /// the message.
    WouldFail(Topic, String),
    /// A call works on the volume just now.
    Busy(String),
    /// Looking at the volume failed.
    Unknown(String),
}

/// A verdict for programs: its fields are stable.
#[derive(Serialize)]
struct ForPrograms<'a> {
    volume: String,
    /// A [`NextMount`].
    verdict: &'static str,
    /// Why the mount is refused: a stable word, such as `wrong-type`.
    reason: Option<&'static str>,
    message: Option<String>,
    steps: &'a [String],
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let for_programs = ForPrograms {
            volume: self.id.to_string(),
            verdict: self.word(),
            reason: self.why(),
            message: self.message(),
            steps: &self.steps,
        };
        for_programs.serialize(to)
    }
}

impl Verdict {
    pub fn of(facts: &Facts, decision: Decision) -> Self {
        let mut steps = found(facts);
        steps.extend(to_do(&decision));
        Self {
            id: facts.id.clone(),
            outcome: Outcome::Decided(decision),
            steps,
        }
    }

    /// The verdict when looking at the volume failed.
    pub fn of_error(id: &LvId, error: &Error) -> Self {
        let why = folded(&format!("{error:#}"));
        let outcome = if error.is::<lock::Busy>() {
            Outcome::Busy(why)
        } else {
            Outcome::Unknown(why)
        };
        Self {
            id: id.clone(),
            outcome,
            steps: Vec::new(),
        }
    }

    pub fn refusal(&self) -> Option<&Reason> {
        match &self.outcome {
            Outcome::Decided(decision) => decision.refusal(),
            Outcome::Repair(_)
            | Outcome::WouldFail(..)
            | Outcome::Busy(_)
            | Outcome::Unknown(_) => None,
        }
    }

    /// Whether the next mount would be refused, as far as is known.
    pub fn is_refused(&self) -> bool {
        self.why().is_some()
    }

    /// Whether the next mount would be refused. False if the only reason is that another node has the volume, which is
    /// no fault.
    pub fn would_not_mount(&self) -> bool {
        self.is_refused() && !self.is_elsewhere()
    }

    /// Whether another node has the volume.
    pub fn is_elsewhere(&self) -> bool {
        let reason = self.refusal();
        reason.is_some_and(|reason| reason.concern() == Concern::OtherNode)
    }

    /// Whether the next mount would succeed.
    pub fn is_good(&self) -> bool {
        match self.next_mount() {
            NextMount::Bind
            | NextMount::Mount
            | NextMount::Create
            | NextMount::Format
            | NextMount::Resume
            | NextMount::Open => true,
            NextMount::Activate
            | NextMount::NotRead
            | NextMount::Busy
            | NextMount::Repair
            | NextMount::Refuse => false,
        }
    }

    /// Whether the device would have to be read before more is known.
    pub fn is_unread(&self) -> bool {
        self.next_mount() == NextMount::NotRead
    }

    /// A [`NextMount`] in one word.
    pub fn word(&self) -> &'static str {
        self.next_mount().into()
    }

    pub fn next_mount(&self) -> NextMount {
        match &self.outcome {
            Outcome::Decided(decision) => match decision {
                Decision::Refuse(_) => NextMount::Refuse,
                Decision::Bind(_) | Decision::Restrict { .. } | Decision::Ready => NextMount::Bind,
                Decision::Mount(_) => NextMount::Mount,
                Decision::Make { .. } => NextMount::Format,
                Decision::Open { .. } => NextMount::Open,
                Decision::Resume => NextMount::Resume,
                Decision::Look(_) => NextMount::NotRead,
                Decision::Create(_) => NextMount::Create,
                Decision::Activate | Decision::Extend(_) => NextMount::Activate,
            },
            Outcome::Busy(_) => NextMount::Busy,
            Outcome::Repair(_) => NextMount::Repair,
            Outcome::WouldFail(..) | Outcome::Unknown(_) => NextMount::Refuse,
        }
    }

    /// Why the next mount is refused: a stable word. `None`: it is not refused.
    pub fn why(&self) -> Option<&'static str> {
        self.topic().map(Topic::word)
    }

    fn topic(&self) -> Option<Topic> {
        match &self.outcome {
            Outcome::Unknown(_) => Some(Topic::NotLookedAt),
            Outcome::WouldFail(topic, _) => Some(*topic),
            Outcome::Decided(_) | Outcome::Repair(_) | Outcome::Busy(_) => {
                self.refusal().map(|reason| Topic::Refusal(reason.into()))
            }
        }
    }

    /// The command that explains the word of a refusal.
    pub fn see(&self) -> Option<String> {
        let word = self.why()?;
        Some(format!("{} explain {word}", own_name()))
    }

    /// The verdict in one word, for a list. If there is a reason, this is the reason's word, since `wrong-type` says
    /// more than `refuse`.
    pub fn short(&self) -> &'static str {
        self.why().unwrap_or_else(|| self.word())
    }

    /// Why the next mount is refused, what e2fsck has to repair, or which call works on the volume.
    pub fn message(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Decided(_) => self.refusal().map(|reason| reason.message(&self.id)),
            Outcome::Busy(what)
            | Outcome::Repair(what)
            | Outcome::WouldFail(_, what)
            | Outcome::Unknown(what) => Some(what.clone()),
        }
    }

    /// The most important step, for a list.
    pub fn main_step(&self) -> Option<String> {
        let Outcome::Decided(decision) = &self.outcome else {
            return None;
        };
        let steps = to_do(decision);
        let mounts = |step: &&String| step.starts_with("mount ") || step.starts_with("make ");
        steps.iter().find(mounts).or(steps.last()).cloned()
    }
}
