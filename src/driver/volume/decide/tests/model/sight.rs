//! Shows each level of a world as `volume/look/` would see it, and makes facts of it.

use std::sync::LazyLock;

use super::super::sample::{ROOM, blank, free, opened, process, row, shared, table};
use super::call::Does;
use super::world::{Content, Dir, Lv, State, luks};
use crate::lvm::{LeaseState, Record};
use crate::mount::Row;
use crate::names::LvUuid;
use crate::volume::decide::{
    Content as Found, Facts, Ground, Level, Lvm, Mounted, Openers, There, Uses,
};

/// The facts so far, level by level. `None`: the level was not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    pub device: Option<Lv>,
    pub uses: Option<Vec<Dir>>,
    pub lvm: Option<Answer>,
    pub locks: Option<Leased>,
    pub openers: Option<Opened>,
    pub content: Option<Sight>,
    /// As which header it is open. Looked at with `uses`.
    pub open: Option<u8>,
    pub inside: Option<Sight>,
    /// Whether its group was asked for.
    pub room: bool,
    /// Whether its disks were looked at. They are all alike.
    pub ground: bool,
}

/// LVM's answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    NoVolume,
    Volume {
        lv: Lv,
        tags: Vec<String>,
        open: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leased {
    Here,
    NotHere,
    Elsewhere,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Opened {
    pub reads: bool,
    pub writes: bool,
    pub mounted: bool,
}

impl Opened {
    pub fn is_nobody(self) -> bool {
        self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    Read(Content),
    /// Someone else has it; blkid reads this beside that.
    Claimed(Content),
    Failed,
}

/// Lists the processes that read a device with this content.
type Reading = fn(Content, &Record) -> Vec<String>;

impl Sight {
    fn found(self) -> Found {
        match self {
            Self::Read(content) => content.seen(),
            Self::Claimed(content) => match content.seen() {
                Found::Filesystem(found) => Found::Claimed(Some(found.filesystem)),
                _ => Found::Claimed(None),
            },
            Self::Failed => Found::Failed("it is not active".to_owned()),
        }
    }
}

static BLANK: LazyLock<Facts> = LazyLock::new(blank);
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let at = |dir| format!("/var/lib/kubelet/pods/{dir}/volumes/k~lvm/a");
    (0..4)
        .map(|dir| row(&at(dir), "ext4", "rw", "rw"))
        .collect()
});

impl Seen {
    /// Looks at a level. The commands that this runs are added to `ran`.
    pub fn look(&mut self, level: Level, state: &State, me: usize, ran: &mut Vec<String>) {
        let actor = &state.actors[me];
        let node = actor.node;
        match level {
            Level::Uses => {
                let mounts = self.device.map(|lv| &state.volumes[lv].mounts);
                let mounts = mounts.into_iter().flatten();
                let here = mounts.filter(|(on, _)| *on == node);
                self.uses = Some(here.map(|(_, dir)| *dir).collect());
                self.open = self.device.and_then(|lv| state.volumes[lv].open[node]);
            }
            Level::Lvm => {
                self.lvm = Some(match state.named(super::world::DATA) {
                    Some(lv) => Answer::Volume {
                        lv,
                        tags: state.volumes[lv].tags.iter().cloned().collect(),
                        open: state.is_open(node, lv, me),
                    },
                    None => Answer::NoVolume,
                });
                let lists: &[_] = match self.lvm {
                    // That it is absent only a list tells.
                    Some(Answer::NoVolume) => &["lvs", "lvs"],
                    _ => &["lvs"],
                };
                ran.extend(lists.iter().map(ToString::to_string));
            }
            Level::LeaseState => {
                let lease = self.row().and_then(|(lv, _)| state.volumes[lv].lease);
                self.locks = Some(if lease == Some(node) {
                    Leased::Here
                } else {
                    Leased::NotHere
                });
                ran.push("lvmlockctl".to_owned());
            }
            Level::Openers => self.openers = Some(self.opened(state, me, ran)),
            Level::Ground => self.ground = true,
            Level::Content => self.content = Some(self.read(state, me, ran)),
            Level::Inside => self.inside = Some(self.read_inside(state, me, ran)),
            Level::Room => {
                self.room = true;
                ran.push("vgs".to_owned());
            }
        }
    }

    pub fn opened(&self, state: &State, me: usize, ran: &mut Vec<String>) -> Opened {
        ran.push("dmsetup".to_owned());
        let node = state.actors[me].node;
        self.device.map_or_else(Opened::default, |lv| Opened {
            reads: state.reads(node, lv, me),
            writes: state.writes(node, lv),
            mounted: state.volumes[lv].is_mounted_on(node),
        })
    }

    fn read(&mut self, state: &State, me: usize, ran: &mut Vec<String>) -> Sight {
        let actor = &state.actors[me];
        let Some(lv) = self
            .device
            .filter(|lv| state.volumes[*lv].active[actor.node])
        else {
            return Sight::Failed;
        };
        let content = state.volumes[lv].content;
        if self.open.is_some() {
            // The device inside has claimed it, and shows who is there.
            ran.extend(reading(content, &self.record()));
            return Sight::Read(content);
        }
        self.read_alone((lv, content, reading), state, me, ran)
    }

    fn read_inside(&mut self, state: &State, me: usize, ran: &mut Vec<String>) -> Sight {
        let node = state.actors[me].node;
        let is_open = |lv: &Lv| state.volumes[*lv].open[node] == self.open;
        let Some(lv) = self.device.filter(is_open) else {
            return Sight::Failed;
        };
        let content = state.volumes[lv].content.inside();
        ran.push("dmsetup".to_owned());
        self.read_alone((lv, content, reading_further), state, me, ran)
    }

    fn read_alone(
        &mut self,
        (lv, content, reading): (Lv, Content, Reading),
        state: &State,
        me: usize,
        ran: &mut Vec<String>,
    ) -> Sight {
        let actor = &state.actors[me];
        let is_mounted = self.uses.as_ref().is_some_and(|uses| !uses.is_empty());
        if is_mounted || self.openers.is_some_and(|openers| openers.mounted) {
            ran.push("blkid".to_owned());
            return Sight::Claimed(content);
        }
        if !actor.does.is_person() && state.is_claimed(actor.node, lv, me) {
            self.openers = Some(self.opened(state, me, ran));
            ran.push("blkid".to_owned());
            return Sight::Claimed(content);
        }
        ran.extend(reading(content, &self.record()));
        Sight::Read(content)
    }

    /// LVM's row of the volume.
    pub fn row(&self) -> Option<(Lv, &[String])> {
        match &self.lvm {
            Some(Answer::Volume { lv, tags, .. }) => Some((*lv, tags)),
            _ => None,
        }
    }

    pub fn record(&self) -> Record {
        let (_, tags) = self.row().unwrap_or_default();
        Record::parse(tags.iter().map(String::as_str))
    }

    /// The facts that `decide` gets.
    pub fn facts(&self, is_shared: bool, does: &Does) -> Facts {
        let mut facts = BLANK.clone();
        let uuid = |lv: Lv| LvUuid::of(&format!("lv{lv}"));
        if let (Some(lv), Some(device)) = (self.device, &mut facts.device) {
            device.lv_uuid = uuid(lv);
        } else {
            facts.device = None;
        }
        facts.uses = self.uses.as_ref().map(|dirs| uses(dirs, does));
        match &self.lvm {
            None => facts.lvm = None,
            Some(Answer::NoVolume) => facts.lvm = Some(Lvm::NoVolume),
            Some(Answer::Volume { lv, open, .. }) => {
                if let Some(Lvm::Volume { volume, .. }) = &mut facts.lvm {
                    volume.uuid = uuid(*lv);
                    volume.open = *open;
                    volume.record = self.record();
                }
                if is_shared {
                    shared(&mut facts, LeaseState::Held);
                }
            }
        }
        if let Some(uuid) = self.open
            && facts.uses.is_some()
        {
            opened(&mut facts, &luks(uuid));
            facts.openers = None;
        }
        facts.ground = self.ground.then(Ground::default);
        facts.room = self.room.then(|| free(ROOM.get()));
        facts.locks = self.locks.map(|leased| match leased {
            Leased::Here => LeaseState::Held,
            Leased::NotHere => LeaseState::NotHeld,
            Leased::Elsewhere => LeaseState::Elsewhere(None),
        });
        facts.openers = self.openers.map(openers);
        facts.content = self.content.map(Sight::found);
        facts.inside = self.inside.map(Sight::found);
        facts.table = self.inside.map(|_| table());
        facts
    }
}

fn uses(dirs: &[Dir], does: &Does) -> Uses {
    let row = |dir: Dir| ROWS[usize::from(dir)].clone();
    let own = dirs.iter().find(|dir| does.dir() == Some(**dir));
    let mounted = |dir: &Dir| Mounted {
        row: row(*dir),
        kubelets: true,
        own_global: false,
    };
    Uses {
        there: own.map(|dir| There::This(row(*dir))),
        mounts: dirs.iter().map(mounted).collect(),
        ..Uses::default()
    }
}

fn openers(opened: Opened) -> Openers {
    let readers = opened.reads.then(|| process(false));
    let writers = opened.writes.then(|| process(true));
    Openers {
        processes: writers.into_iter().chain(readers).collect(),
        has_filesystem: opened.mounted,
        ..Openers::default()
    }
}

/// The processes that read a volume, as `read` in `volume/look/content.rs` starts them.
pub fn reading(content: Content, record: &Record) -> Vec<String> {
    let header = record.luks_uuid().map(|_| "luks".to_owned());
    let rest = reading_further(content, record);
    header.into_iter().chain(rest).collect()
}

/// The same of the device inside, which has no header.
fn reading_further(content: Content, record: &Record) -> Vec<String> {
    let mut ran = vec![match &record.made {
        None => "examine whole",
        Some(_) => "superblock",
    }];
    let is_recorded = |uuid: u8| {
        let uuid = format!("u{uuid}");
        record.made.as_ref().is_some_and(|made| made.uuid == uuid)
    };
    match content {
        Content::HalfLuks(_) | Content::Luks(..) => ran.clear(),
        Content::Zero if record.made.is_none() => {}
        Content::Zero => ran.extend(["blkid", "examine cached"]),
        Content::Remains | Content::Raw => {
            ran.extend(["blkid", "examine cached", "blkid", "wipefs"]);
        }
        Content::Ext4 { uuid, .. } if is_recorded(uuid) => {}
        Content::Ext4 { .. } => ran.extend(["blkid", "superblock"]),
    }
    ran.into_iter().map(str::to_owned).collect()
}

/// The directory of a mount that [`uses`] showed.
pub fn dir_of(row: &Row) -> Option<Dir> {
    let at = ROWS.iter().position(|one| one == row)?;
    u8::try_from(at).ok()
}
