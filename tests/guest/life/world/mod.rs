//! One node with two disks, and what happens to it.

mod advice;
mod disks;
mod kubelet;
mod operators;
mod pods;

use std::fs;
use std::path::Path;

use super::Tally;
use super::oracle::{Holds, Lv, Record};
use super::player::{Config, Ill, SLOTS, Step};
use crate::crypt;
use crate::kills::steps::Steps;
use crate::prelude::*;

/// A name for a volume, and what pods want there.
struct Slot {
    disk: usize,
    lv: &'static str,
    fs: &'static str,
    size: &'static str,
    thin: bool,
    encrypted: bool,
}

const fn slot(disk: usize, lv: &'static str, fs: &'static str, size: &'static str) -> Slot {
    let (thin, encrypted) = (lv.as_bytes()[0] == b't', lv.as_bytes()[0] == b'e');
    Slot {
        disk,
        lv,
        fs,
        size,
        thin,
        encrypted,
    }
}

const PLACES: [Slot; SLOTS] = [
    slot(0, "a", "ext4", "32m"),
    slot(0, "b", "ext4", "32m"),
    slot(0, "t1", "ext4", "64m"),
    slot(0, "t2", "ext4", "64m"),
    slot(0, "tx", "xfs", "300m"),
    slot(0, "ty", "xfs", "300m"),
    slot(0, "tm", "btrfs", "128m"),
    slot(0, "tn", "btrfs", "128m"),
    slot(1, "c", "ext4", "32m"),
    slot(1, "d", "ext4", "32m"),
    slot(1, "x", "xfs", "300m"),
    slot(1, "y", "xfs", "300m"),
    slot(1, "m", "btrfs", "128m"),
    slot(1, "n", "btrfs", "128m"),
    slot(1, "e", "ext4", "64m"),
    slot(1, "ef", "ext4", "64m"),
];
const DISK: u64 = 1 << 30;
const RESERVE: &str = "reserve = '700m'\n";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pod {
    Gone,
    /// kubelet calls until it is up.
    Wanted {
        read_only: bool,
    },
    Up {
        read_only: bool,
        lv: usize,
    },
}

pub struct World {
    pub tally: Tally,
    number: usize,
    config: Config,
    tools: Steps,
    node: Node,
    slots: [Option<usize>; SLOTS],
    lvs: Vec<Lv>,
    pods: [Pod; 2 * SLOTS],
    ill: [Ill; 2],
    pool_scarred: bool,
    /// The pod of which a process stays in its volume.
    open: Option<(usize, Process)>,
    /// The words of the last refusal.
    refused: String,
    // Each needs the next.
    groups: [Group; 2],
    disks: [Disk; 2],
}

impl World {
    pub fn new(number: usize) -> Self {
        let name = format!("life{number}");
        let disks = [0, 1].map(|n| Disk::new(&format!("{name}disk{n}"), DISK));
        let groups = [0, 1].map(|n| Group::on(&format!("{name}g{n}"), &[&disks[n].path()]));
        let (tools, node) = (Steps::new(&name), Node::new(Mode::MountOnly));
        let mut world = Self {
            tally: Tally::new(),
            number,
            config: Config::default(),
            tools,
            node,
            slots: [None; SLOTS],
            lvs: Vec::new(),
            pods: [Pod::Gone; 2 * SLOTS],
            ill: [Ill::No; 2],
            pool_scarred: false,
            open: None,
            refused: String::new(),
            groups,
            disks,
        };
        world.configure(Config::default());
        world
    }

    fn configure(&mut self, config: Config) {
        self.config = config;
        let mode = if config.attach {
            Mode::Attach
        } else {
            Mode::MountOnly
        };
        let dir = Steps::dir_of(&format!("life{}", self.number));
        let [first, second] = [0, 1].map(|n| &self.groups[n].name);
        let key = crypt::key_file(&format!("life{}", self.number));
        let mut lines = format!(
            "deactivate = {}\ntool_dirs = [{:?}, '/usr/sbin', '/usr/bin']\n\
             [volume_group.{first}]\n[volume_group.{second}]\ncreate = true\n{}",
            config.deactivate,
            text(&dir),
            if config.reserve { RESERVE } else { "" },
        );
        lines.push_str(&crypt::config(&key));
        let of_each = |fs| format!("[filesystem.{fs}]\nmount_options = 'nosuid'\n");
        if config.nosuid {
            lines.extend(["ext4", "xfs", "btrfs"].map(of_each));
        }
        self.node.configure(mode, &lines);
    }

    /// Plays a step, and looks at all that must be true after it.
    pub fn play(&mut self, number: usize, step: &Step) {
        self.count("steps");
        match step {
            Step::Configure(config) => self.configure(*config),
            Step::Up { pod, read_only } => self.up(*pod, *read_only, None),
            Step::Write { pod, synced } => self.write(*pod, number, *synced),
            Step::Grow(pod) => self.grow(*pod),
            Step::Down(pod) => self.down(*pod, None),
            Step::Kill {
                pod,
                up,
                call,
                at,
                victim,
            } => {
                let cut = Some((*call, at, *victim));
                if *up {
                    self.up(*pod, false, cut);
                } else {
                    self.down(*pod, cut);
                }
            }
            Step::Hold(pod) => self.hold(*pod),
            Step::LetGo => self.open = None,
            Step::Break { disk, how } => self.fall_ill(*disk, *how),
            Step::Heal(disk) => self.heal(*disk),
            Step::Make(slot) if self.slots[*slot].is_none() && self.works(*slot) => {
                self.make(*slot);
            }
            Step::Remove(slot) => self.remove(*slot),
            Step::Swap { slot, with } => self.swap(*slot, *with),
            Step::Extend(slot) => self.extend(*slot),
            Step::Snapshot { slot, to } => self.snapshot(*slot, *to),
            Step::Spoil(slot) => self.spoil(*slot),
            Step::Format { slot, ext4 } => self.format(*slot, *ext4),
            Step::Forget(slot) => self.forget(*slot),
            Step::Adopt(slot) => self.adopt(*slot),
            Step::AllowFormat(slot) => self.allow_format(*slot),
            Step::Deactivate(disk) => self.deactivate(*disk),
            Step::Consult => self.consult(),
            Step::Replace => self.replace(),
            Step::CutPower => self.cut_power(),
            Step::Make(_) => {}
        }
        (0..self.pods.len()).for_each(|pod| self.look_into(pod));
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// All is well again, and everything must be there.
    pub fn end(&mut self) {
        self.open = None;
        (0..2).for_each(|disk| self.heal(disk));
        (0..self.pods.len()).for_each(|pod| self.down(pod, None));
        (0..2).for_each(|disk| self.deactivate(disk));
        self.configure(Config {
            deactivate: false,
            reserve: false,
            ..self.config
        });
        for (slot, place) in PLACES.iter().enumerate() {
            let Some(lv) = self.slots[slot] else { continue };
            let Holds::Fs(fs) = self.lvs[lv].holds else {
                continue;
            };
            if !self.lvs[lv].files.is_empty() && !self.lvs[lv].lost {
                assert_eq!(fs, place.fs);
                if fs == "btrfs" && self.free_device(slot).is_some() {
                    // A snapshot that was written to later may be active with it.
                    run("udevadm", &["settle"]);
                    lenient("btrfs", &["device", "scan", "--forget"]);
                }
                if self.lvs[lv].record != Record::Right && !place.encrypted {
                    self.adopt(slot);
                }
                // An operator may have to mend first what killed calls have left.
                for _ in 0..3 {
                    self.up(2 * slot, false, None);
                }
                assert!(
                    matches!(self.pods[2 * slot], Pod::Up { .. }),
                    "{}: {:?}",
                    self.refused,
                    self.lvs[lv]
                );
                self.look_into(2 * slot);
                self.down(2 * slot, None);
            }
        }
        for (disk, group) in self.groups.iter().enumerate() {
            let all = run("lvs", &["--noheadings", "-o", "lv_uuid", &group.name]).replace('-', "");
            let mut ours = (0..SLOTS).filter(|slot| PLACES[*slot].disk == disk);
            assert!(
                ours.all(|slot| self.slots[slot].is_none_or(|lv| all.contains(&self.lvs[lv].uuid))),
                "{all}"
            );
        }
    }

    fn volume(&self, slot: usize) -> Volume {
        let place = &PLACES[slot];
        let volume = Volume::new(&self.groups[place.disk], place.lv);
        let volume = volume.fs(place.fs).with("size", place.size);
        if place.encrypted {
            volume.encrypted()
        } else {
            volume
        }
    }

    fn works(&self, slot: usize) -> bool {
        matches!(self.ill[PLACES[slot].disk], Ill::No | Ill::Slow)
    }

    fn is_well(&self, slot: usize) -> bool {
        let thin = PLACES[slot].thin;
        let lost = self.lv(slot).is_some_and(|lv| lv.lost);
        self.works(slot) && !(thin && self.pool_scarred) && !lost
    }

    fn lv(&self, slot: usize) -> Option<&Lv> {
        self.slots[slot].map(|lv| &self.lvs[lv])
    }

    fn mounts_of(lv: &Lv) -> Vec<Mount> {
        let all = mounts().into_iter();
        all.filter(|mount| {
            device_at(Path::new(&mount.point)).is_some_and(|uuid| uuid.ends_with(&lv.uuid))
        })
        .collect()
    }
}

impl Drop for World {
    /// A failed life's remains must not be in the way of other lives.
    fn drop(&mut self) {
        self.tools.kill_all();
        self.pull_the_plug();
        (0..2).for_each(|disk| self.heal(disk));
    }
}

/// The UUID in device-mapper of the logical volume that is mounted at exactly this directory.
fn device_at(dir: &Path) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table
        .lines()
        .rfind(|line| line.split(' ').nth(4) == dir.to_str())?;
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut words = filesystem.split(' ');
    let (fs_type, source) = (words.next()?, words.next()?);
    if fs_type == "btrfs" {
        let node = fs::canonicalize(source).ok()?;
        lvs_uuid(&Path::new("/sys/class/block").join(node.file_name()?))
    } else {
        lvs_uuid(&Path::new("/sys/dev/block").join(mount.split(' ').nth(2)?))
    }
}

/// The UUID in device-mapper of this logical volume, or of the one below this LUKS2 device.
fn lvs_uuid(device: &Path) -> Option<String> {
    let uuid = fs::read_to_string(device.join("dm/uuid")).ok()?;
    if !uuid.starts_with("CRYPT-") {
        return Some(uuid.trim().to_owned());
    }
    let below = fs::read_dir(device.join("slaves")).ok()?.next()?.ok()?;
    lvs_uuid(&below.path())
}
