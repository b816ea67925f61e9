//! The steps of a call, in the order of `volume/act/` and `volume/look/under_lock.rs`. A step is one look,
//! one wait, or one thing that a tool does; whatever is decided between two of them is `decide`'s.

use std::slice::from_ref;

use super::Order;
use super::sight::{Seen, Sight};
use super::world::{Dir, Effect, Lock, Lv, Node, State, Tool, Volume};
use crate::lvm::Tags;
use crate::names::{Bytes, Filesystem, FsType};
use crate::volume::decide::tests::sample::wish;
use crate::volume::decide::{Decision, Facts, Level, Purpose, Reason, Wish, decide};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Does {
    Mount(Dir),
    Unmount(Dir),
    Adopt,
    AllowFormat,
    /// LVM's own commands, by hand: see `operator.rs`.
    Lvm(super::operator::Word),
}

impl Does {
    pub fn dir(&self) -> Option<Dir> {
        match self {
            Self::Mount(dir) | Self::Unmount(dir) => Some(*dir),
            _ => None,
        }
    }

    pub fn is_person(&self) -> bool {
        matches!(self, Self::Adopt | Self::AllowFormat)
    }
}

/// Where an actor is: what it does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantNames)]
pub enum At {
    Begin,
    // act/activate.rs, act/create.rs
    Activate,
    LockInactive,
    RunActivate,
    Activated,
    LockGroup,
    Created,
    // act/bring_up.rs
    Stand,
    Lock,
    Locked,
    Look,
    AwaitGroup,
    LookFurther,
    Bind(Dir),
    // act/encrypted.rs
    Open,
    Opened,
    // act/make.rs
    RecordBegun,
    LookAgain,
    TakeBack(bool),
    DropClaim,
    Format,
    OpenMade,
    Mkfs,
    Made,
    RecordMade,
    // act/first_mount.rs
    Prepare,
    Check,
    RecordFirst,
    Mount,
    Mounted,
    Recorded,
    // calls/unmount.rs
    CloseLock,
    Close,
    Closed,
    // act/release.rs
    Release,
    ReleaseAsk,
    ReleaseLock,
    Deactivate,
    Released,
    // commands/operator.rs
    LockByHand,
    Told,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Success,
    Refused(&'static str),
    Error(&'static str),
}

/// How a filesystem is mounted for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct How {
    pub filesystem: Filesystem,
    pub check: bool,
    pub record: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    pub node: Node,
    pub does: Does,
    /// Its next calls.
    pub then: Vec<Does>,
    pub at: At,
    pub seen: Option<Seen>,
    /// The volume that the call is about, once its device was found.
    pub of: Option<Lv>,
    pub locks: Vec<Lock>,
    pub claim: Option<Lv>,
    pub pin: Option<Lv>,
    pub how: Option<How>,
    /// The UUID of the LUKS2 header that it makes, or makes a filesystem in.
    pub luks: Option<u8>,
    pub tool: Option<Tool>,
    /// Whether the last tool failed.
    pub failed: bool,
    /// Whether the volume's lvcreate has ended.
    pub is_made: bool,
}

impl Actor {
    pub fn new(node: Node, does: &[Does]) -> Self {
        Self {
            node,
            does: does[0].clone(),
            then: does[1..].to_vec(),
            at: At::Begin,
            seen: None,
            of: None,
            locks: Vec::new(),
            claim: None,
            pin: None,
            how: None,
            luks: None,
            tool: None,
            failed: false,
            is_made: false,
        }
    }

    /// Its process is gone: what it held is free, and what it did is to be done again.
    pub fn dies(&mut self) -> Option<Tool> {
        let tool = self.tool.take();
        let all: Vec<Does> = [from_ref(&self.does), &self.then].concat();
        *self = Self::new(self.node, &all);
        tool
    }

    pub fn wish(&self, encrypted: bool) -> Wish {
        let by_hand = self.does.is_person();
        let mut wish = Wish {
            fs: (!by_hand).then_some(FsType::Ext4),
            default_fs: FsType::Ext4,
            encrypted: (!by_hand).then_some(encrypted),
            ..wish()
        };
        if matches!(self.at, At::Activate) {
            wish.purpose = Purpose::Device;
        }
        wish.create.allowed = !by_hand;
        wish.create.size = Some(Bytes::new(9));
        wish
    }
}

/// A step of one actor.
pub struct Turn<'a> {
    pub state: State,
    pub me: usize,
    pub order: Order,
    pub did: &'a mut Did,
}

/// Kept beside a world, since no later step can see it.
#[derive(Debug, Default)]
pub struct Did {
    /// The commands that were run, and the locks that were taken.
    pub ran: Vec<String>,
    /// How each call has ended.
    pub ended: Vec<End>,
}

impl Turn<'_> {
    /// None: it waits, or is done.
    pub fn step(mut self) -> Option<State> {
        if let Some(mut tool) = self.my().tool.take() {
            if self.state.advance(&mut tool).is_err() {
                self.my().failed = true;
            } else if !tool.effects.is_empty() {
                self.my().tool = Some(tool);
            }
            return Some(self.state);
        }
        let goes_on = match self.my().at {
            At::Begin => self.begin(),
            At::Activate
            | At::LockInactive
            | At::RunActivate
            | At::Activated
            | At::LockGroup
            | At::Created => self.activate(),
            At::Stand
            | At::Lock
            | At::Locked
            | At::Look
            | At::AwaitGroup
            | At::LookFurther
            | At::Bind(_) => self.bring_up(),
            At::Open | At::Opened | At::CloseLock | At::Close | At::Closed => self.encrypted(),
            At::RecordBegun
            | At::LookAgain
            | At::TakeBack(_)
            | At::DropClaim
            | At::Made
            | At::RecordMade => self.make(),
            At::Format | At::OpenMade | At::Mkfs => self.write(),
            At::Prepare | At::Check | At::RecordFirst | At::Mount | At::Mounted | At::Recorded => {
                self.first_mount()
            }
            At::Release | At::ReleaseAsk | At::ReleaseLock | At::Deactivate | At::Released => {
                self.release()
            }
            At::LockByHand | At::Told => self.by_hand(),
            At::Done => false,
        };
        goes_on.then_some(self.state)
    }

    pub fn my(&mut self) -> &mut Actor {
        &mut self.state.actors[self.me]
    }

    pub fn go(&mut self, at: At) -> bool {
        self.my().at = at;
        true
    }

    /// Begins a look anew.
    pub fn look_anew(&mut self, at: At) -> bool {
        let me = self.my();
        (me.seen, me.claim) = (None, None);
        self.go(at)
    }

    pub fn end(&mut self, end: End) -> bool {
        let is_shared = self.state.shared;
        let me = self.my();
        me.locks.clear();
        (me.seen, me.claim, me.pin, me.how, me.of) = (None, None, None, None, None);
        me.luks = None;
        (me.failed, me.is_made) = (false, false);
        let gives_up = end != End::Success && matches!(me.does, Does::Mount(_));
        self.did.ended.push(end);
        if gives_up && is_shared {
            return self.go(At::Release);
        }
        self.next()
    }

    pub fn next(&mut self) -> bool {
        let me = self.my();
        if me.then.is_empty() {
            return self.go(At::Done);
        }
        me.does = me.then.remove(0);
        self.go(At::Begin)
    }

    fn begin(&mut self) -> bool {
        let me = self.my();
        let node = me.node;
        match me.does.clone() {
            Does::Mount(_) => {
                self.go(At::Activate);
                self.activate()
            }
            Does::Unmount(dir) => {
                let mounted = |lv: &Lv| self.state.volumes[*lv].mounts.contains(&(node, dir));
                let lv = (0..self.state.volumes.len()).find(mounted);
                if let Some(lv) = lv {
                    let mounts = &mut self.state.volumes[lv].mounts;
                    mounts.remove(&(node, dir));
                    let is_last = !mounts.iter().any(|(on, _)| *on == node);
                    self.did
                        .ran
                        .push(if is_last { "unmount-alone" } else { "umount2" }.to_owned());
                }
                let is_left =
                    |volume: &Volume| volume.open[node].is_some() && !volume.is_mounted_on(node);
                if let Some(left) = self.state.volumes.iter().position(is_left) {
                    let me = self.my();
                    me.of = Some(left);
                    return self.go(At::CloseLock);
                }
                if self.state.shared {
                    return self.go(At::Release);
                }
                self.next()
            }
            Does::Adopt | Does::AllowFormat => self.go(At::LockByHand),
            Does::Lvm(word) => self.word(word),
        }
    }

    pub fn facts(&mut self) -> Facts {
        let shared = self.state.shared;
        let me = self.my();
        let seen = me.seen.clone().unwrap_or_default();
        seen.facts(shared, &me.does)
    }

    /// One look more, as [`Look::settle_up_to`](crate::volume::look::Look::settle_up_to). None: there is
    /// more to look at.
    pub fn settle(&mut self, most: Level) -> Option<Decision> {
        let encrypted = self.state.encrypted;
        let wish = self.my().wish(encrypted);
        if self.my().seen.is_none() {
            let node = self.my().node;
            let device = self.state.device(node);
            self.my().seen = Some(Seen {
                device,
                ..Seen::default()
            });
        } else if let Decision::Look(level) = decide(&self.facts(), &wish) {
            let mut seen = self.my().seen.clone()?;
            seen.look(level, &self.state, self.me, &mut self.did.ran);
            // Of an encrypted volume that is open, it claims the device inside.
            let read = seen.open.map_or(seen.content, |_| seen.inside);
            let claims = matches!(read, Some(Sight::Read(_))) && !self.my().does.is_person();
            let lv = seen.device.filter(|_| claims);
            let me = self.my();
            (me.seen, me.claim) = (Some(seen), lv);
        }
        match decide(&self.facts(), &wish) {
            Decision::Look(level) if level <= most => None,
            decision => Some(decision),
        }
    }

    pub fn lock(&mut self, lock: Lock) -> bool {
        let node = self.my().node;
        if self.state.is_locked(node, lock, self.me) {
            return false;
        }
        self.my().locks.push(lock);
        self.did.ran.push("lock".to_owned());
        true
    }

    pub fn run(&mut self, line: &str, lock: Option<Lock>, effects: Vec<Effect>, then: At) -> bool {
        self.did.ran.push(line.to_owned());
        let me = self.my();
        let exclusive = match &effects[0] {
            Effect::Write(lv, _) | Effect::Check(lv) | Effect::Open(lv) => Some(*lv),
            _ => None,
        };
        let node = me.node;
        me.failed = false;
        // cryptsetup claims the volume itself, which the device inside has claimed.
        let is_outside =
            |lv: Lv| line.starts_with("cryptsetup") && self.state.volumes[lv].open[node].is_some();
        if exclusive.is_some_and(|lv| is_outside(lv) || self.state.is_claimed(node, lv, self.me)) {
            self.my().failed = true;
            return self.go(then);
        }
        self.my().tool = Some(Tool {
            node,
            lock: lock.filter(|lock| self.state.actors[self.me].locks.contains(lock)),
            exclusive,
            effects,
        });
        self.go(then)
    }

    pub fn retag(&mut self, lv: Lv, tags: Tags, then: At) -> bool {
        let Tags { add, remove } = tags;
        let words = |flag: &str, tags: &[String]| {
            let mut words: Vec<_> = tags.iter().map(|tag| format!(" {flag} {tag}")).collect();
            words.sort_unstable();
            words.concat()
        };
        let (less, more) = (words("--deltag", &remove), words("--addtag", &add));
        let line = format!("lvchange{less}{more}");
        let lock = Some(Lock::Volume(lv));
        self.run(&line, lock, vec![Effect::Retag { lv, add, remove }], then)
    }

    /// The volume by which the call goes, and its device.
    pub fn its(&mut self) -> (Lv, Option<Lv>) {
        let node = self.my().node;
        (self.my().of.unwrap(), self.state.device(node))
    }

    pub fn refuse(&mut self, reason: &Reason) -> bool {
        self.end(End::Refused(reason.into()))
    }
}
