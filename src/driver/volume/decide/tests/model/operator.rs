//! An operator: the driver's own commands (`commands/operator.rs`), and LVM's.

use super::call::{At, Does, End, Turn};
use super::sight::Sight;
use super::world::{self, Content, DATA, Lock, Name, Volume};
use crate::lvm::{Tags, is_permission, made_tag, making_in_luks_tag, permission_tag};
use crate::names::FsType;
use crate::volume::decide::tests::sample::{NOW, filesystem};
use crate::volume::decide::{Decision, Doubt, Reason};

/// Commands of LVM by hand: they take no lock of the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// `lvremove`, of what nobody has open.
    Remove,
    /// `lvcreate`, with what is there then.
    Create(Content),
    Rename(Name, Name),
    /// `lvconvert --merge` of a snapshot, which LVM puts off while the volume is open.
    Merge,
    /// `vgcfgrestore` of metadata from the time of mkfs, if the volume is encrypted.
    Restore,
}

impl Turn<'_> {
    /// The lock of a volume that is active, as the first look under it takes it.
    pub fn by_hand(&mut self) -> bool {
        let node = self.my().node;
        if self.my().at == At::Told {
            let end = if self.my().failed {
                End::Error("tagging")
            } else {
                End::Success
            };
            return self.end(end);
        }
        let device = self.state.device(node);
        match (device, self.my().of) {
            (None, _) => self.end(End::Error("it is not active")),
            (now, of) if of.is_some() && now == of => self.look_anew(At::Look),
            (Some(device), _) => {
                self.my().locks.clear();
                self.my().of = Some(device);
                self.lock(Lock::Volume(device))
            }
        }
    }

    /// Records what an operator says of what was seen.
    pub fn told(&mut self, decision: Decision) -> bool {
        let seen = self.my().seen.clone().unwrap_or_default();
        let Some((lv, _)) = seen.row() else {
            return self.end(End::Error("there is none"));
        };
        let record = seen.record();
        let tags = match (&self.my().does, decision) {
            (Does::Adopt, decision) => {
                let uuid = match (decision, seen.content) {
                    (
                        Decision::Refuse(Reason::Swapped { .. } | Reason::NewNotBlank(_)),
                        Some(Sight::Read(Content::Ext4 { uuid, .. })),
                    ) => format!("u{uuid}"),
                    (Decision::Mount(mount), _) => mount.filesystem.uuid,
                    (Decision::Bind(_), _) => match self.state.volumes[lv].content {
                        Content::Ext4 { uuid, .. } => format!("u{uuid}"),
                        _ => return self.end(End::Error("blkid cannot name it")),
                    },
                    (Decision::Refuse(reason), _) => return self.refuse(&reason),
                    _ => return self.end(End::Error("there is nothing to adopt")),
                };
                record.replaced_by(made_tag(&filesystem(FsType::Ext4, &uuid)))
            }
            (_, Decision::Refuse(Reason::Doubts(doubts))) => {
                let tag = permission_tag(&Doubt::names(&doubts), NOW);
                let old = record
                    .tags
                    .iter()
                    .filter(|old| is_permission(old) && **old != tag);
                Tags {
                    remove: old.cloned().collect(),
                    add: vec![tag],
                }
            }
            (_, Decision::Refuse(reason)) => return self.refuse(&reason),
            _ => return self.end(End::Error("nothing was changed")),
        };
        self.retag(lv, tags, At::Told)
    }

    /// LVM's own command: it does it, or refuses.
    pub fn word(&mut self, word: Word) -> bool {
        let is_open = |turn: &Self, lv| (0..2).any(|node| turn.state.is_open(node, lv, turn.me));
        let is_idle =
            |turn: &Self, lv: usize| !is_open(turn, lv) && !turn.state.volumes[lv].active[1];
        let data = self.state.named(DATA);
        let done = match (word, data) {
            (Word::Remove, Some(lv)) if is_idle(self, lv) => {
                let volume = &mut self.state.volumes[lv];
                (volume.name, volume.active, volume.lease) = (None, [false; 2], None);
                true
            }
            (Word::Create(content), None) => {
                let mut volume = Volume::new(DATA, content, true);
                volume.lease = self.state.shared.then_some(0);
                self.state.volumes.push(volume);
                true
            }
            (Word::Rename(from, to), _) => match self.state.named(from) {
                Some(lv) if self.state.named(to).is_none() => {
                    self.state.volumes[lv].name = to;
                    true
                }
                _ => false,
            },
            (Word::Restore, Some(lv)) => {
                let volume = &mut self.state.volumes[lv];
                if let Content::Luks(uuid, _) = volume.content {
                    let making = making_in_luks_tag(FsType::Ext4, &world::luks(uuid));
                    volume.tags = [making].into();
                }
                true
            }
            (Word::Merge, Some(lv)) if !is_open(self, lv) => {
                let volume = &mut self.state.volumes[lv];
                let snapshot = volume.snapshot.take();
                volume.content = snapshot.unwrap_or(volume.content);
                snapshot.is_some()
            }
            _ => false,
        };
        self.end(if done {
            End::Success
        } else {
            End::Error("LVM refuses")
        })
    }
}
