//! From the volume's name to its device, and from there to what is decided under its lock:
//! `act/activate.rs`, `act/create.rs`, `act/bring_up.rs`, `look/under_lock.rs`, `act/release.rs`.

use super::Order;
use super::call::{At, End, How, Turn};
use super::sight::{Leased, dir_of};
use super::world::{DATA, Effect, Lock, Lv};
use crate::volume::decide::{Decision, Level, Mount, decide};

impl Turn<'_> {
    pub fn activate(&mut self) -> bool {
        let lv = self.my().seen.as_ref().and_then(|seen| Some(seen.row()?.0));
        match self.my().at {
            At::Activate => {
                let is_locked = self.my().locks.contains(&Lock::Group);
                let most = if is_locked {
                    Level::Room
                } else {
                    Level::Content
                };
                let Some(decision) = self.settle(most) else {
                    return true;
                };
                if let Decision::Create(_) = decision {
                    let effects = vec![Effect::Create];
                    return self.run("lvcreate", Some(Lock::Group), effects, At::Created);
                }
                if self.order != Order::GroupKept {
                    self.my().locks.retain(|lock| *lock != Lock::Group);
                }
                let device = self.my().seen.as_ref().and_then(|seen| seen.device);
                match (decision, device) {
                    (Decision::Ready, Some(device)) => self.is_active(device),
                    (Decision::Look(_), _) => self.go(At::LockGroup),
                    (Decision::Activate, _) if self.state.shared && self.my().locks.is_empty() => {
                        self.go(At::LockInactive)
                    }
                    (Decision::Activate, _) => self.go(At::RunActivate),
                    (Decision::Refuse(reason), _) => self.refuse(&reason),
                    _ => self.look_anew(At::Activate),
                }
            }
            At::LockInactive => self.lock(Lock::Volume(lv.unwrap())) && self.go(At::RunActivate),
            At::RunActivate => {
                let lv = lv.unwrap();
                let lock = Some(Lock::Volume(lv));
                if self.order == Order::NoLeases {
                    self.state.volumes[lv].lease = None;
                }
                let effects = vec![Effect::Activate(lv)];
                self.run("lvchange --activate y", lock, effects, At::Activated)
            }
            At::Activated => {
                if self.my().failed {
                    self.my().seen.as_mut().unwrap().locks = Some(Leased::Elsewhere);
                    let decision = self.settle(Level::Content);
                    return match decision {
                        Some(Decision::Refuse(reason)) => self.refuse(&reason),
                        _ => self.end(End::Error("activating")),
                    };
                }
                let found = self.state.device(self.state.actors[self.me].node);
                if let Some(lv) = found.filter(|found| Some(*found) == lv) {
                    return self.is_active(lv);
                }
                if self.my().of.is_none() {
                    self.my().locks.clear();
                }
                self.look_anew(At::Activate)
            }
            At::LockGroup => self.lock(Lock::Group) && self.look_anew(At::Activate),
            _ => {
                if self.my().failed && self.state.named(DATA).is_none() {
                    return self.end(End::Error("creating"));
                }
                if self.order != Order::GroupKept {
                    self.my().locks.retain(|lock| *lock != Lock::Group);
                }
                self.look_anew(At::Activate)
            }
        }
    }

    /// It has a device. With `of` there was one before, and its lock is held.
    fn is_active(&mut self, device: Lv) -> bool {
        match self.my().of {
            Some(of) if of != device => self.end(End::Error("replaced by another volume")),
            Some(_) => self.look_anew(At::Look),
            None => {
                self.my().of = Some(device);
                self.my().locks.retain(|lock| *lock == Lock::Group);
                self.look_anew(At::Stand)
            }
        }
    }

    pub fn bring_up(&mut self) -> bool {
        let looks_first = self.order == Order::NoLookAfterWait;
        match self.my().at {
            At::Stand => match self.settle(Level::Uses) {
                None => true,
                Some(Decision::Keep { .. }) => self.end(End::Success),
                Some(Decision::Refuse(reason)) => self.refuse(&reason),
                Some(_) if looks_first => self.look_anew(At::Look),
                Some(_) => self.look_anew(At::Lock),
            },
            At::Lock => {
                let (of, _) = self.its();
                self.lock(Lock::Volume(of))
                    && if looks_first {
                        self.act_on_what_was_seen()
                    } else {
                        self.go(At::Locked)
                    }
            }
            At::Locked => match self.its() {
                (of, Some(device)) if of == device => self.go(At::Look),
                _ => self.look_anew(At::Activate),
            },
            At::Look => {
                let Some(decision) = self.settle(Level::Lvm) else {
                    return true;
                };
                let is_new = self
                    .my()
                    .seen
                    .as_ref()
                    .is_some_and(|seen| seen.record().new);
                if is_new && !self.my().is_made && self.order != Order::GroupNotAwaited {
                    return self.go(At::AwaitGroup);
                }
                match decision {
                    Decision::Look(_) if self.order == Order::LockGivenUp => {
                        self.my().locks.clear();
                        self.go(At::LookFurther)
                    }
                    Decision::Look(_) => self.go(At::LookFurther),
                    decision => self.act(decision),
                }
            }
            At::AwaitGroup => {
                if !self.lock(Lock::Group) {
                    return false;
                }
                let me = self.my();
                me.locks.retain(|lock| *lock != Lock::Group);
                me.is_made = true;
                self.look_anew(At::Look)
            }
            At::LookFurther => match self.settle(Level::Inside) {
                None => true,
                Some(_) if looks_first && self.my().locks.is_empty() => {
                    self.my().claim = None;
                    self.go(At::Lock)
                }
                Some(decision) => self.act(decision),
            },
            At::Bind(from) => {
                let (of, _) = self.its();
                let me = self.my();
                let (node, dir) = (me.node, me.does.dir().unwrap());
                let mounts = &mut self.state.volumes[of].mounts;
                if !mounts.contains(&(node, from)) {
                    return self.look_anew(At::Look);
                }
                mounts.insert((node, dir));
                self.did.ran.push("bind".to_owned());
                self.end(End::Success)
            }
            _ => unreachable!(),
        }
    }

    fn act_on_what_was_seen(&mut self) -> bool {
        let encrypted = self.state.encrypted;
        let (facts, wish) = (self.facts(), self.my().wish(encrypted));
        self.act(decide(&facts, &wish))
    }

    /// Does what was decided of the volume, under its lock.
    fn act(&mut self, decision: Decision) -> bool {
        if self.my().does.is_person() {
            return self.told(decision);
        }
        let device = self.my().seen.as_ref().and_then(|seen| seen.device);
        if device != self.my().of {
            return self.end(End::Error("deactivated or replaced just now"));
        }
        match decision {
            Decision::Keep { .. } => self.end(End::Success),
            Decision::Bind(row) => self.go(At::Bind(dir_of(&row).unwrap())),
            Decision::Mount(Mount {
                filesystem,
                check,
                record,
                ..
            }) => {
                self.my().how = Some(How {
                    filesystem,
                    check,
                    record,
                });
                self.go(At::Prepare)
            }
            Decision::Make { .. } => self.go(At::RecordBegun),
            Decision::Open { .. } => self.go(At::Open),
            Decision::MakeInside { .. } => {
                self.my().luks = self.my().seen.as_ref().and_then(|seen| seen.open);
                self.go(At::RecordBegun)
            }
            Decision::Encrypt { uuid, .. } => {
                let again = uuid.map(|uuid| uuid[1..].parse().unwrap());
                let made = self.state.made;
                self.state.made = made.saturating_add(u8::from(again.is_none()));
                self.my().luks = Some(again.unwrap_or(made));
                self.go(At::RecordBegun)
            }
            Decision::Refuse(reason) => self.refuse(&reason),
            _ => self.look_anew(At::Look),
        }
    }

    /// Opens an encrypted volume and closes it: `act/encrypted.rs`.
    pub fn encrypted(&mut self) -> bool {
        let (of, _) = self.its();
        let (at, failed) = (self.my().at, self.my().failed);
        let lock = Some(Lock::Volume(of));
        let close = |turn: &mut Self, then| {
            turn.my().claim = None;
            turn.run("cryptsetup close", lock, vec![Effect::Close(of)], then)
        };
        match at {
            At::Open => {
                self.my().claim = None;
                self.run("cryptsetup open", lock, vec![Effect::Open(of)], At::Opened)
            }
            At::Opened if failed => self.end(End::Error("opening")),
            At::Opened => self.look_anew(At::Look),
            At::CloseLock => self.lock(Lock::Volume(of)) && self.go(At::Close),
            At::Close => {
                let node = self.my().node;
                let volume = &self.state.volumes[of];
                if volume.is_mounted_on(node) || volume.open[node].is_none() {
                    return self.go(At::Closed);
                }
                close(self, At::Closed)
            }
            _ => {
                let is_shared = self.state.shared;
                let me = self.my();
                me.locks.clear();
                (me.of, me.failed) = (None, false);
                if is_shared {
                    self.go(At::Release)
                } else {
                    self.next()
                }
            }
        }
    }

    /// Gives the volume to other nodes, unless it is used here.
    pub fn release(&mut self) -> bool {
        let node = self.my().node;
        let device = self.state.device(node);
        let is_used = device.is_some_and(|lv| self.state.volumes[lv].is_mounted_on(node));
        match self.my().at {
            At::Release if is_used => self.next(),
            At::Release => self.go(At::ReleaseAsk),
            At::ReleaseAsk => {
                self.did.ran.push("lvs".to_owned());
                self.my().of = self.state.named(DATA);
                match self.my().of {
                    Some(_) => self.go(At::ReleaseLock),
                    None => self.next(),
                }
            }
            At::ReleaseLock => {
                let (of, _) = self.its();
                self.lock(Lock::Volume(of)) && self.go(At::Deactivate)
            }
            At::Deactivate if device.is_none() || is_used => self.released(),
            At::Deactivate => {
                let (of, _) = self.its();
                let lock = Some(Lock::Volume(of));
                let effects = vec![Effect::Deactivate(of)];
                self.run("lvchange --activate n", lock, effects, At::Released)
            }
            _ => self.released(),
        }
    }

    fn released(&mut self) -> bool {
        let me = self.my();
        me.locks.clear();
        (me.of, me.failed) = (None, false);
        self.next()
    }
}
