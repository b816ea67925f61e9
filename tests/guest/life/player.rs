//! The life of a node: a list of plain values, which depends only on the seed. A step that does not fit at its turn
//! does nothing, so any part of a list can be played, too.

use crate::kills::Sample;
use crate::kills::steps::{Step as Place, Victim};

/// How many steps a life has, behind its beginning.
const LENGTH: usize = 56;
/// How many names for volumes there are. Each has two pods, and a life has some of them. Names 2n and
/// 2n + 1 are of one kind: each may become the other, or hold a snapshot of the other's volume.
pub const SLOTS: usize = 16;

/// The number is that of a pod (kubelet, pods), of a volume's name (operators) or of a disk. Pods 2n and 2n + 1 want
/// the volume n. `which` chooses one of the things that fit, whatever its number.
#[derive(Clone, Debug)]
pub enum Step {
    Configure(Config),
    Up {
        pod: usize,
        read_only: bool,
    },
    Write {
        pod: usize,
        synced: bool,
    },
    Grow(usize),
    Down(usize),
    /// The call of this number, of those that bring the pod up or down, is cut short there.
    Kill {
        pod: usize,
        up: bool,
        call: usize,
        at: Place,
        victim: Victim,
    },
    /// A process of the pod stays in its volume.
    Hold(usize),
    /// The process ends.
    LetGo,
    Break {
        disk: usize,
        how: Ill,
    },
    Heal(usize),
    Make(usize),
    Remove(usize),
    Swap {
        slot: usize,
        with: usize,
    },
    Extend(usize),
    Snapshot {
        slot: usize,
        to: usize,
    },
    /// Raw data at the beginning of the volume.
    Spoil(usize),
    /// An operator makes a filesystem, ext4 or ext2.
    Format {
        slot: usize,
        ext4: bool,
    },
    Forget(usize),
    Adopt(usize),
    AllowFormat(usize),
    Deactivate(usize),
    /// An operator runs doctor, and follows its advice.
    Consult,
    Replace,
    CutPower,
}

/// What an operator chooses for the node.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
pub struct Config {
    pub attach: bool,
    pub deactivate: bool,
    /// A mount option of each filesystem.
    pub nosuid: bool,
    /// The second group keeps most of its space.
    pub reserve: bool,
}

/// How a disk is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ill {
    No,
    Slow,
    ReadOnly,
    Gone,
}

/// Draws steps, and knows which pods there should be.
struct Player {
    dice: Sample,
    slots: Vec<usize>,
    pods: Vec<usize>,
}

/// The life that this seed gives.
pub fn life(seed: u64) -> Vec<Step> {
    let mut dice = Sample {
        seed,
        full: false,
        only: None,
    };
    let kinds = dice.of((0..SLOTS / 2).collect(), 2);
    let slots: Vec<_> = kinds
        .iter()
        .flat_map(|kind| [2 * kind, 2 * kind + 1])
        .collect();
    let pods = slots.iter().step_by(2).map(|slot| 2 * slot).collect();
    let mut player = Player { dice, slots, pods };
    let mut steps = vec![player.configure()];
    // In each pair of places, one volume is in use. The other one is as new, or a snapshot of the first.
    for pod in player.pods.clone() {
        let slot = pod / 2;
        let (read_only, synced) = (false, true);
        let other = match player.below(2) {
            0 => Step::Make(slot + 1),
            _ => Step::Snapshot { slot, to: slot + 1 },
        };
        steps.extend([
            Step::Make(slot),
            Step::Up { pod, read_only },
            Step::Write { pod, synced },
            other,
        ]);
    }
    steps.extend((0..LENGTH).map(|_| player.step()));
    steps
}

impl Player {
    fn below(&mut self, end: usize) -> usize {
        self.dice.below(end)
    }

    fn slot(&mut self) -> usize {
        self.dice.one_of(&self.slots)
    }

    /// A pod that there should be. If there is none, a new one.
    fn pod(&mut self) -> usize {
        if self.pods.is_empty() {
            self.new_pod()
        } else {
            self.dice.one_of(&self.pods)
        }
    }

    /// Adds a pod that there should be from now on, if possible another than those.
    fn new_pod(&mut self) -> usize {
        let mut all: Vec<_> = self
            .slots
            .iter()
            .flat_map(|slot| [2 * slot, 2 * slot + 1])
            .collect();
        if self.pods.len() < all.len() {
            all.retain(|pod| !self.pods.contains(pod));
        }
        let pod = self.dice.one_of(&all);
        self.pods.retain(|other| *other != pod);
        self.pods.push(pod);
        pod
    }

    fn old_pod(&mut self) -> usize {
        let pod = self.pod();
        self.pods.retain(|other| *other != pod);
        pod
    }

    fn configure(&mut self) -> Step {
        Step::Configure(Config {
            attach: self.below(2) == 0,
            deactivate: self.below(2) == 0,
            nosuid: self.below(2) == 0,
            reserve: self.below(4) == 0,
        })
    }

    fn step(&mut self) -> Step {
        let (slot, other, disk) = (self.slot(), self.slot(), self.below(2));
        match self.below(110) {
            0..10 => Step::Up {
                pod: self.new_pod(),
                read_only: self.below(5) == 0,
            },
            10..22 => Step::Up {
                pod: self.pod(),
                read_only: false,
            },
            22..36 => Step::Write {
                pod: self.pod(),
                synced: self.below(4) > 0,
            },
            36..44 => Step::Down(self.old_pod()),
            44..66 => self.kill(),
            66..69 => {
                let how = [Ill::Slow, Ill::ReadOnly, Ill::Gone, Ill::Gone];
                Step::Break {
                    disk,
                    how: self.dice.one_of(&how),
                }
            }
            69..74 => Step::Heal(disk),
            74..77 => Step::CutPower,
            77..82 => Step::Make(slot),
            82 => Step::Remove(slot),
            83..86 => Step::Swap { slot, with: other },
            86 => Step::Extend(slot),
            87..89 => Step::Snapshot { slot, to: other },
            89 => Step::Spoil(slot),
            90 => Step::Format {
                slot,
                ext4: self.below(3) > 0,
            },
            91 => Step::Forget(slot),
            92 => Step::Adopt(slot),
            93 => Step::AllowFormat(slot),
            94 => Step::Deactivate(disk),
            95 => self.configure(),
            96 => Step::Replace,
            97 => Step::Hold(self.pod()),
            98..100 => Step::LetGo,
            100 => Step::Grow(self.pod()),
            101..104 => Step::Consult,
            _ => Step::Snapshot { slot, to: slot ^ 1 },
        }
    }

    /// A call does not reach half of these steps, and then is not killed.
    fn kill(&mut self) -> Step {
        let (up, tool, none) = (self.below(3) > 0, 1 + self.below(6), String::new());
        let own = if up {
            &["flock", "flock", "mount"]
        } else {
            &["umount2", "umount2", "flock"]
        };
        let own = self.dice.one_of(own).to_owned();
        let at = match self.below(if up { 7 } else { 3 }) {
            0 => Place::OwnBefore(own, 1),
            1 => Place::OwnAfter(own, 1),
            2 => Place::Before(tool, none),
            3 => Place::After(tool, none),
            _ => {
                let inside = ["pwrite64", "ioctl", "write", "fsync", "io_submit"];
                let inside = self.dice.one_of(&inside).to_owned();
                Place::Inside(tool, none, inside, 1 + self.below(12))
            }
        };
        Step::Kill {
            pod: if up { self.new_pod() } else { self.pod() },
            up,
            call: self.dice.one_of(&[0, 1, 2, 2, 2, 3]),
            at,
            victim: self
                .dice
                .one_of(&[Victim::Both, Victim::Both, Victim::Driver, Victim::Tool]),
        }
    }
}
