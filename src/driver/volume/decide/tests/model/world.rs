//! The state of the world: volumes with their metadata and content, the tools at work, and who holds which lock
//! or device. Nothing here decides.

use std::collections::BTreeSet;

use super::super::sample::{filesystem, found, keyless, whole, young};
use super::call::Actor;
use crate::lvm::Record;
use crate::names::FsType;
use crate::volume::decide::{Content as Seen, Doubt, FilesystemState};

/// A host, by its number.
pub type Node = usize;
/// A volume by its UUID, which is never given twice: its place among all that ever were.
pub type Lv = usize;
/// A directory of a pod, by its number.
pub type Dir = u8;

/// Its name in the one group that there is. None: it was removed.
pub type Name = Option<&'static str>;

/// The volume that the calls name.
pub const DATA: Name = Some("data");
pub const OTHER: Name = Some("other");
pub const AWAY: Name = Some("away");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    Zero,
    /// Written by mke2fs before its superblock.
    Remains,
    /// `used`: a pod ever had it mounted.
    Ext4 {
        uuid: u8,
        used: bool,
    },
    /// Data that no tool knows.
    Raw,
    /// Written by luksFormat before its key slots: nobody can open it.
    HalfLuks(u8),
    /// A LUKS2 header with this UUID, and what is inside.
    Luks(u8, Inside),
}

/// What is inside a LUKS2 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inside {
    /// What was on the disk, through a new key.
    Noise,
    Remains,
    Ext4 {
        uuid: u8,
        used: bool,
    },
}

/// The UUID of a LUKS2 header, as the tags have it.
pub fn luks(uuid: u8) -> String {
    format!("l{uuid}")
}

impl Content {
    /// As [`look`](crate::volume::look) tells it.
    pub fn seen(self) -> Seen {
        let blank = |doubts: Vec<Doubt>| Seen::Blank {
            zero: doubts.is_empty() && self == Self::Zero,
            doubts,
        };
        match self {
            Self::Zero => blank(Vec::new()),
            Self::Remains => blank(vec![young()]),
            Self::Ext4 { uuid, .. } => Seen::Filesystem(FilesystemState {
                filesystem: filesystem(FsType::Ext4, &format!("u{uuid}")),
                ..found(FsType::Ext4)
            }),
            Self::Raw => blank(vec![Doubt::Data(0)]),
            Self::HalfLuks(uuid) => keyless(&luks(uuid)),
            Self::Luks(uuid, _) => whole(&luks(uuid)),
        }
    }

    /// What the device inside holds, if it is open.
    pub fn inside(self) -> Self {
        match self {
            Self::Luks(_, Inside::Ext4 { uuid, used }) => Self::Ext4 { uuid, used },
            Self::Luks(_, Inside::Remains) => Self::Remains,
            _ => Self::Raw,
        }
    }

    /// Whether a pod ever had it mounted; None: there is no filesystem.
    fn used(&mut self) -> Option<&mut bool> {
        match self {
            Self::Ext4 { used, .. } | Self::Luks(_, Inside::Ext4 { used, .. }) => Some(used),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Volume {
    pub name: Name,
    pub content: Content,
    pub tags: BTreeSet<String>,
    /// On which nodes it has a device.
    pub active: [bool; 2],
    /// As which header it is open, on which nodes.
    pub open: [Option<u8>; 2],
    /// Which node has its lock of lvmlockd's, in a shared group.
    pub lease: Option<Node>,
    pub mounts: BTreeSet<(Node, Dir)>,
    /// The content of its snapshot.
    pub snapshot: Option<Content>,
}

impl Volume {
    pub fn new(name: Name, content: Content, active: bool) -> Self {
        Self {
            name,
            content,
            tags: BTreeSet::new(),
            active: [active, false],
            open: [None; 2],
            lease: None,
            mounts: BTreeSet::new(),
            snapshot: None,
        }
    }

    pub fn with_tag(mut self, tag: &str) -> Self {
        self.tags.insert(tag.to_owned());
        self
    }

    pub fn record(&self) -> Record {
        Record::parse(self.tags.iter().map(String::as_str))
    }

    pub fn is_mounted_on(&self, node: Node) -> bool {
        self.mounts.iter().any(|(on, _)| *on == node)
    }
}

/// A lock of the driver's own, on one node: flock(2) in `volume/lock.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    Volume(Lv),
    /// The group's, for making the volume.
    Group,
}

/// A change that a tool makes at once: a kill comes before it or after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Activate(Lv),
    Deactivate(Lv),
    /// lvchange(8) compares name and UUID; where they do not fit, it succeeds and changes nothing.
    Retag {
        lv: Lv,
        add: Vec<String>,
        remove: Vec<String>,
    },
    /// lvcreate's change of metadata; then comes the wiping.
    Create,
    Wipe(Lv),
    Write(Lv, Content),
    /// The device inside.
    Open(Lv),
    Close(Lv),
    Check(Lv),
    Mount(Lv, Dir),
}

/// A tool at work. It inherits the lock, and goes on if only the driver is killed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tool {
    pub node: Node,
    pub lock: Option<Lock>,
    /// The device that it has opened exclusively.
    pub exclusive: Option<Lv>,
    pub effects: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Nodes share the group.
    pub shared: bool,
    /// Its volumes are to be encrypted.
    pub encrypted: bool,
    pub volumes: Vec<Volume>,
    /// The content of the space that the next volume will get.
    pub leftover: Content,
    /// How many UUIDs of filesystems were given.
    pub made: u8,
    pub actors: Vec<Actor>,
    /// Tools whose driver was killed.
    pub orphans: Vec<Tool>,
    /// How many more kills there are.
    pub kills: u8,
    /// Violations, which must never happen.
    pub wrong: Option<&'static str>,
}

impl State {
    pub fn named(&self, name: Name) -> Option<Lv> {
        self.volumes.iter().position(|volume| volume.name == name)
    }

    /// The device that the name leads to on a node.
    pub fn device(&self, node: Node) -> Option<Lv> {
        self.named(DATA).filter(|lv| self.volumes[*lv].active[node])
    }

    fn tools(&self) -> impl Iterator<Item = &Tool> {
        let running = self.actors.iter().filter_map(|actor| actor.tool.as_ref());
        running.chain(&self.orphans)
    }

    /// Whether somebody holds the lock, who is not actor number `but`.
    pub fn is_locked(&self, node: Node, lock: Lock, but: usize) -> bool {
        let by = |(n, actor): (usize, &Actor)| {
            n != but && actor.node == node && actor.locks.contains(&lock)
        };
        let orphan = |tool: &Tool| tool.node == node && tool.lock == Some(lock);
        self.actors.iter().enumerate().any(by) || self.orphans.iter().any(orphan)
    }

    /// Whether an exclusive open fails: it is mounted, claimed by a call or by a tool.
    pub fn is_claimed(&self, node: Node, lv: Lv, but: usize) -> bool {
        let claims =
            |(n, actor): (usize, &Actor)| n != but && actor.node == node && actor.claim == Some(lv);
        self.volumes[lv].is_mounted_on(node)
            || self.actors.iter().enumerate().any(claims)
            || self.writes(node, lv)
    }

    /// Whether a tool has it open that writes.
    pub fn writes(&self, node: Node, lv: Lv) -> bool {
        self.tools()
            .any(|tool| tool.node == node && tool.exclusive == Some(lv))
    }

    /// Whether another call has it open, to read.
    pub fn reads(&self, node: Node, lv: Lv, but: usize) -> bool {
        let reads = |(n, actor): (usize, &Actor)| {
            n != but && actor.node == node && [actor.claim, actor.pin].contains(&Some(lv))
        };
        self.actors.iter().enumerate().any(reads)
    }

    pub fn is_open(&self, node: Node, lv: Lv, but: usize) -> bool {
        self.volumes[lv].open[node].is_some() || self.is_used(node, lv, but)
    }

    /// The same of the device inside, if there is one.
    pub fn is_used(&self, node: Node, lv: Lv, but: usize) -> bool {
        self.is_claimed(node, lv, but) || self.reads(node, lv, but)
    }

    /// The tool's next effect. An error: the tool fails.
    pub fn advance(&mut self, tool: &mut Tool) -> Result<(), ()> {
        let effect = tool.effects.remove(0);
        let node = tool.node;
        match effect {
            Effect::Activate(lv) => {
                let volume = &mut self.volumes[lv];
                let is_its = volume.lease.is_none_or(|holder| holder == node);
                // `--select` finds nothing under this name.
                if volume.name == DATA && (!self.shared || is_its) {
                    volume.active[node] = true;
                    volume.lease = self.shared.then_some(node);
                } else if volume.name == DATA {
                    return Err(());
                }
            }
            Effect::Deactivate(lv) => {
                if self.is_open(node, lv, usize::MAX) {
                    return Err(());
                }
                let volume = &mut self.volumes[lv];
                if volume.name == DATA {
                    volume.active[node] = false;
                    volume.lease = None;
                }
            }
            Effect::Retag { lv, add, remove } => {
                let volume = &mut self.volumes[lv];
                if volume.name == DATA {
                    volume.tags.retain(|tag| !remove.contains(tag));
                    volume.tags.extend(add);
                }
            }
            Effect::Create => {
                if self.named(DATA).is_some() {
                    return Err(());
                }
                let mut volume = Volume::new(DATA, self.leftover, false);
                volume.active[node] = true;
                volume.lease = self.shared.then_some(node);
                tool.effects.push(Effect::Wipe(self.volumes.len()));
                self.volumes.push(volume.with_tag("flexvolume.new"));
            }
            Effect::Wipe(lv) => {
                if self.volumes[lv].content != self.leftover {
                    self.wrong = Some("lvcreate wiped what was put there since");
                }
                self.volumes[lv].content = Content::Zero;
            }
            Effect::Write(lv, content) => {
                let volume = &mut self.volumes[lv];
                let may = volume.record().permission.is_some();
                if volume.content.used().is_some_and(|used| *used) {
                    self.wrong = Some("a filesystem that a pod had was formatted");
                } else if volume.content == Content::Raw && !may {
                    self.wrong = Some("data was formatted unasked");
                }
                volume.content = content;
            }
            Effect::Open(lv) => match self.volumes[lv].content {
                Content::Luks(uuid, _) if self.volumes[lv].open[node].is_none() => {
                    self.volumes[lv].open[node] = Some(uuid);
                }
                _ => return Err(()),
            },
            Effect::Close(lv) => {
                if self.is_used(node, lv, usize::MAX) {
                    return Err(());
                }
                self.volumes[lv].open[node] = None;
            }
            Effect::Check(lv) => {
                self.volumes[lv].content.used().ok_or(())?;
            }
            Effect::Mount(lv, dir) => {
                let claims = |actor: &Actor| actor.node == node && actor.claim == Some(lv);
                if self.actors.iter().any(claims) || self.writes(node, lv) {
                    return Err(());
                }
                let volume = &mut self.volumes[lv];
                *volume.content.used().ok_or(())? = true;
                volume.mounts.insert((node, dir));
            }
        }
        Ok(())
    }
}
