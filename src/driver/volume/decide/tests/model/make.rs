//! A filesystem is made, and mounted for the first time: `act/make.rs`, `act/first_mount.rs`.

use super::Order;
use super::call::{At, End, How, Turn};
use super::sight::{Sight, reading};
use super::world::{self, Content, Effect, Inside, Lock};
use crate::lvm::{Tags, making_in_luks_tag, making_tag};
use crate::names::FsType;
use crate::volume::decide::tests::sample::filesystem;

impl Turn<'_> {
    pub fn make(&mut self) -> bool {
        let (of, device) = self.its();
        let record = self.my().seen.as_ref().unwrap().record();
        let luks = self.my().luks;
        let making = luks.map_or_else(
            || making_tag(FsType::Ext4),
            |uuid| making_in_luks_tag(FsType::Ext4, &world::luks(uuid)),
        );
        let is_begun = record.tags.contains(&making) || self.order == Order::RecordAfterMkfs;
        let begun = Tags {
            remove: record.unmade_tags().map(str::to_owned).collect(),
            add: vec![making.clone()],
        };
        let (at, failed) = (self.my().at, self.my().failed);
        match at {
            At::RecordBegun if is_begun => {
                self.go(At::LookAgain);
                self.make()
            }
            At::RecordBegun if device != Some(of) => self.end(End::Error("replaced just now")),
            At::RecordBegun => self.retag(of, begun, At::LookAgain),
            At::LookAgain if self.order == Order::NoLookAfterWait => self.go(At::DropClaim),
            At::LookAgain => {
                let is_there = device == Some(of);
                let seen = self.my().seen.clone().unwrap();
                let now = self.state.volumes[of].content;
                let (now, before) = match seen.open {
                    Some(_) => (now.inside(), seen.inside),
                    None => (now, seen.content),
                };
                // Any write is counted, so the marks are enough where all was zero.
                self.did.ran.extend(match before {
                    Some(Sight::Read(Content::Zero)) => vec!["examine marks".to_owned()],
                    _ => reading(now, &record),
                });
                let is_alone = seen
                    .opened(&self.state, self.me, &mut self.did.ran)
                    .is_nobody();
                if is_there && is_alone && before == Some(Sight::Read(now)) {
                    return self.go(At::DropClaim);
                }
                if is_begun {
                    self.my().claim = None;
                    return self.given_back(is_there);
                }
                let back = Tags {
                    add: begun.remove,
                    remove: begun.add,
                };
                self.retag(of, back, At::TakeBack(is_there))
            }
            At::TakeBack(is_there) => self.given_back(is_there),
            At::DropClaim => {
                let me = self.my();
                (me.pin, me.claim) = (Some(of), None);
                let is_open = me.seen.as_ref().is_some_and(|seen| seen.open.is_some());
                self.go(if luks.is_some() && !is_open {
                    At::Format
                } else {
                    At::Mkfs
                })
            }
            // The driver takes the record back if nothing is there still. That it stays is harder.
            At::Made if failed => self.end(End::Error("mkfs refused")),
            At::Made => {
                self.did.ran.push("superblock".to_owned());
                let content = self.state.volumes[of].content;
                let content = luks.map_or(content, |_| content.inside());
                let Content::Ext4 { uuid, .. } = content else {
                    return self.end(End::Error("mkfs lied"));
                };
                self.my().how = Some(How {
                    filesystem: filesystem(FsType::Ext4, &format!("u{uuid}")),
                    check: false,
                    record: false,
                });
                self.go(At::RecordMade)
            }
            At::RecordMade => {
                let how = self.my().how.clone().unwrap();
                let mut tags = record.holding(&how.filesystem, luks.map(world::luks).as_deref());
                if !is_begun {
                    tags.remove.push(making);
                }
                self.retag(of, tags, At::Mount)
            }
            _ => unreachable!(),
        }
    }

    /// Runs mkfs, inside a fresh LUKS2 if the volume is to be encrypted.
    pub fn write(&mut self) -> bool {
        let (of, _) = self.its();
        let (at, failed, luks) = (self.my().at, self.my().failed, self.my().luks);
        match at {
            At::Format => {
                let whole = Content::Luks(luks.unwrap(), Inside::Noise);
                let writes = [Content::HalfLuks(luks.unwrap()), whole];
                let writes = writes.map(|content| Effect::Write(of, content));
                let lock = Some(Lock::Volume(of));
                self.run("cryptsetup luksFormat", lock, writes.to_vec(), At::OpenMade)
            }
            At::OpenMade if failed => self.end(End::Error("cryptsetup refused")),
            At::OpenMade => {
                let lock = Some(Lock::Volume(of));
                self.run("cryptsetup open", lock, vec![Effect::Open(of)], At::Mkfs)
            }
            At::Mkfs if failed => self.end(End::Error("opening")),
            At::Mkfs => {
                let is_open = self
                    .my()
                    .seen
                    .as_ref()
                    .is_some_and(|seen| seen.open.is_some());
                if luks.is_some() && !is_open {
                    self.did.ran.push("luks".to_owned());
                }
                let uuid = self.state.made;
                self.state.made = uuid.saturating_add(1);
                let whole = Content::Ext4 { uuid, used: false };
                let writes = match luks {
                    None => [Content::Remains, whole],
                    Some(luks) => [Inside::Remains, Inside::Ext4 { uuid, used: false }]
                        .map(|inside| Content::Luks(luks, inside)),
                };
                let writes = writes.map(|content| Effect::Write(of, content));
                let lock = Some(Lock::Volume(of));
                self.run("mkfs.ext4", lock, writes.to_vec(), At::Made)
            }
            _ => unreachable!(),
        }
    }

    /// mkfs does not run: the volume is not as it was.
    fn given_back(&mut self, is_there: bool) -> bool {
        if is_there {
            self.look_anew(At::Look)
        } else {
            self.end(End::Error("replaced just now"))
        }
    }

    pub fn first_mount(&mut self) -> bool {
        let (of, device) = self.its();
        let record = self.my().seen.as_ref().unwrap().record();
        let how = self.my().how.clone().unwrap();
        let is_first = (record.making.is_some() || record.permission.is_some())
            && self.order != Order::RecordAfterMount;
        let open = self.my().seen.as_ref().and_then(|seen| seen.open);
        let tags = record.holding(&how.filesystem, open.map(world::luks).as_deref());
        let (at, failed) = (self.my().at, self.my().failed);
        match at {
            At::Prepare => {
                let me = self.my();
                (me.pin, me.claim) = (Some(of), None);
                if !self.state.volumes[of].active[self.state.actors[self.me].node] {
                    return self.end(End::Error("opening it"));
                }
                self.go(At::Check)
            }
            At::Check if how.check => {
                let lock = Some(Lock::Volume(of));
                self.run("e2fsck -p", lock, vec![Effect::Check(of)], At::RecordFirst)
            }
            At::Check => self.go(At::RecordFirst),
            At::RecordFirst if failed => self.end(End::Error("checking it")),
            At::RecordFirst if how.record && is_first => self.retag(of, tags, At::Mount),
            At::RecordFirst => self.go(At::Mount),
            At::Mount if device != Some(of) => self.end(End::Error("replaced just now")),
            At::Mount => {
                let dir = self.my().does.dir().unwrap();
                let lock = Some(Lock::Volume(of));
                self.run("mount", lock, vec![Effect::Mount(of, dir)], At::Mounted)
            }
            At::Mounted if failed => self.end(End::Error("mounting")),
            At::Mounted if how.record && !is_first => self.retag(of, tags, At::Recorded),
            _ => self.end(End::Success),
        }
    }
}
