//! One node with two disks, and what happens to it.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::oracle::{Asked, Expected, Holds, Lv, Record};
use super::player::{Ill, SLOTS, Step};
use crate::kills::steps::{Cut, Step as Place, Steps, Victim};
use crate::marks::put;
use crate::prelude::*;

/// A name for a volume, and what pods want there.
struct Slot {
    disk: usize,
    lv: &'static str,
    fs: &'static str,
    size: &'static str,
    thin: bool,
}

const fn slot(disk: usize, lv: &'static str, fs: &'static str, size: &'static str) -> Slot {
    let thin = matches!(lv.as_bytes()[0], b't');
    Slot {
        disk,
        lv,
        fs,
        size,
        thin,
    }
}

const PLACES: [Slot; SLOTS] = [
    slot(0, "a", "ext4", "32m"),
    slot(0, "b", "ext4", "32m"),
    slot(0, "t1", "ext4", "64m"),
    slot(0, "t2", "ext4", "64m"),
    slot(1, "c", "ext4", "32m"),
    slot(1, "x", "xfs", "300m"),
    slot(1, "m", "btrfs", "128m"),
];
const DISK: u64 = 1 << 30;

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

/// How much was played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub steps: usize,
    pub mounts: usize,
    pub refusals: usize,
    pub kills: usize,
    pub cuts: usize,
}

impl Tally {
    pub fn add(&mut self, more: Self) {
        self.steps += more.steps;
        self.mounts += more.mounts;
        self.refusals += more.refusals;
        self.kills += more.kills;
        self.cuts += more.cuts;
    }
}

pub struct World {
    pub tally: Tally,
    number: usize,
    attach: bool,
    tools: Steps,
    node: Node,
    slots: [Option<usize>; SLOTS],
    lvs: Vec<Lv>,
    pods: [Pod; 2 * SLOTS],
    ill: [Ill; 2],
    pool_full: bool,
    pool_scarred: bool,
    open: Option<(usize, fs::File)>,
    // Each needs the next.
    groups: [Group; 2],
    disks: [Disk; 2],
}

/// What came of kubelet's calls.
enum Came {
    Done,
    Refused(Reply),
    Cut,
}

/// What `check --json` says of a volume.
#[derive(Debug)]
struct Checked {
    verdict: String,
    reason: String,
    message: String,
}

/// A call of kubelet's, which it makes if nothing is mounted there.
struct Call {
    unless: Option<PathBuf>,
    args: Vec<String>,
}

fn call(words: &[&str]) -> Call {
    let args = words.iter().map(|word| (*word).to_owned()).collect();
    Call { unless: None, args }
}

impl World {
    pub fn new(number: usize) -> Self {
        let name = format!("life{number}");
        let disks = [0, 1].map(|n| Disk::new(&format!("{name}disk{n}"), DISK));
        let groups = [0, 1].map(|n| Group::on(&format!("{name}g{n}"), &[&disks[n].path()]));
        let (tools, node) = (Steps::new(&name), Node::new(Mode::MountOnly));
        let pool = "lvcreate -qq -y --type thin-pool -Z n -n pool -L 200m";
        sh(&format!("{pool} {}", groups[0].name));
        let mut world = Self {
            tally: Tally::default(),
            number,
            attach: false,
            tools,
            node,
            slots: [None; SLOTS],
            lvs: Vec::new(),
            pods: [Pod::Gone; 2 * SLOTS],
            ill: [Ill::No; 2],
            pool_full: false,
            pool_scarred: false,
            open: None,
            groups,
            disks,
        };
        world.configure(false, false);
        world
    }

    fn configure(&mut self, attach: bool, deactivate: bool) {
        self.attach = attach;
        let mode = if attach {
            Mode::Attach
        } else {
            Mode::MountOnly
        };
        let dir = Steps::dir_of(&format!("life{}", self.number));
        let [first, second] = [0, 1].map(|n| &self.groups[n].name);
        let lines = format!(
            "deactivate = {deactivate}\ntool_dirs = [{:?}, '/usr/sbin', '/usr/bin']\n\
             [volume_group.{first}]\n[volume_group.{second}]\ncreate = true\n",
            text(&dir)
        );
        self.node.configure(mode, &lines);
    }

    /// Plays a step, and looks at all that must be true after it.
    pub fn play(&mut self, number: usize, step: &Step) {
        self.tally.steps += 1;
        match step {
            Step::Configure { attach, deactivate } => self.configure(*attach, *deactivate),
            Step::Up { pod, read_only } => self.up(*pod, *read_only, None),
            Step::Write { pod, synced } => self.write(*pod, number, *synced),
            Step::Grow { pod } => self.grow(*pod),
            Step::Down { pod } => self.down(*pod, None),
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
            Step::Hold { pod } => self.hold(*pod),
            Step::LetGo => self.open = None,
            Step::Break { disk, how } => self.fall_ill(*disk, *how),
            Step::Heal { disk } => self.heal(*disk),
            Step::Fill => self.fill(),
            Step::Drain => self.drain(),
            Step::Make { slot } if self.slots[*slot].is_none() && self.works(*slot) => {
                self.make(*slot);
            }
            Step::Remove { slot } => self.remove(*slot),
            Step::Swap { slot, with } => self.swap(*slot, *with),
            Step::Extend { slot } => self.extend(*slot),
            Step::Snapshot { slot, to } => self.snapshot(*slot, *to),
            Step::Spoil { slot } => self.spoil(*slot),
            Step::Format { slot, ext4 } => self.format(*slot, *ext4),
            Step::Forget { slot } => self.forget(*slot),
            Step::Adopt { slot } => self.adopt(*slot),
            Step::AllowFormat { slot } => self.allow_format(*slot),
            Step::Deactivate { disk } => self.deactivate(*disk),
            Step::Replace => self.replace(),
            Step::CutPower => self.cut_power(),
            Step::Make { .. } => {}
        }
        (0..self.pods.len()).for_each(|pod| self.look_into(pod));
    }

    /// All is well again, and everything must be there.
    pub fn end(&mut self) {
        self.open = None;
        (0..2).for_each(|disk| self.heal(disk));
        self.drain();
        (0..self.pods.len()).for_each(|pod| self.down(pod, None));
        (0..2).for_each(|disk| self.deactivate(disk));
        self.configure(self.attach, false);
        for (slot, place) in PLACES.iter().enumerate() {
            let Some(lv) = self.slots[slot] else { continue };
            let Holds::Fs(fs) = self.lvs[lv].holds else {
                continue;
            };
            if !self.lvs[lv].files.is_empty() {
                assert_eq!(fs, place.fs);
                if self.lvs[lv].record != Record::Right {
                    self.adopt(slot);
                }
                self.up(2 * slot, false, None);
                assert!(
                    matches!(self.pods[2 * slot], Pod::Up { .. }),
                    "{:?}",
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

    // What kubelet does.

    fn volume(&self, slot: usize) -> Volume {
        let place = &PLACES[slot];
        let volume = Volume::new(&self.groups[place.disk], place.lv);
        volume.fs(place.fs).with("size", place.size)
    }

    fn volume_of(&self, pod: usize, read_only: bool) -> Volume {
        let volume = self.volume(pod / 2);
        if read_only {
            volume.read_only()
        } else {
            volume
        }
    }

    fn dir(&self, pod: usize) -> PathBuf {
        self.node
            .pod_dir(&format!("pod{pod}"), &self.volume(pod / 2))
    }

    fn up(&mut self, pod: usize, read_only: bool, cut: Option<(usize, &Place, Victim)>) {
        let slot = pod / 2;
        let read_only = match self.pods[pod] {
            Pod::Up { .. } => return,
            Pod::Wanted { read_only } => read_only,
            Pod::Gone => read_only,
        };
        let volume = self.volume_of(pod, read_only);
        let expected = self.expected(pod, read_only);
        let before = self.check(slot, read_only);
        if let Some(lv) = self.lv(slot) {
            let formats = before.verdict == "format" && !lv.files.is_empty();
            assert!(!formats, "{before:?}, but it holds {:?}", lv.files.keys());
        }
        self.pods[pod] = Pod::Wanted { read_only };
        let (json, device) = (volume.json(), volume.device());
        let (global, dir) = (self.node.global_dir(&volume), self.dir(pod));
        let json_for = volume.json_for(&format!("pod{pod}"));
        let mut calls = Vec::new();
        if self.attach {
            calls.push(call(&["attach", &json, &host_name()]));
            calls.push(call(&["waitforattach", &device, &json]));
            let mount = call(&["mountdevice", text(&global), &device, &json]);
            calls.push(Call {
                unless: Some(global),
                ..mount
            });
        }
        let mount = call(&["mount", text(&dir), &json_for]);
        calls.push(Call {
            unless: Some(dir),
            ..mount
        });
        let came = self.make_calls(calls, cut);
        self.find_created(slot);
        match came {
            Came::Done => self.is_up(pod, read_only, &before, &expected),
            Came::Refused(reply) => self.is_refused(pod, read_only, &before, &expected, &reply),
            Came::Cut => {
                if let Some(lv) = self.slots[slot].map(|lv| &mut self.lvs[lv]) {
                    lv.killed = true;
                    if lv.holds == Holds::Blank || lv.holds == Holds::Raw && lv.permitted {
                        lv.holds = Holds::Perhaps;
                    }
                    if lv.record != Record::Right {
                        lv.record = Record::Perhaps;
                    }
                }
            }
        }
    }

    fn is_up(&mut self, pod: usize, read_only: bool, before: &Checked, expected: &Expected) {
        self.tally.mounts += 1;
        let slot = pod / 2;
        assert!(
            !expected.refused,
            "mounted, and not refused: {expected:?}, {before:?}"
        );
        let well = self.works(slot);
        assert!(
            before.reason.is_empty() || !well,
            "{before:?}, and it is mounted"
        );
        let lv = self.slots[slot].expect("a volume that was mounted");
        self.pods[pod] = Pod::Up { read_only, lv };
        let lv = &mut self.lvs[lv];
        lv.holds = Holds::Fs(PLACES[slot].fs);
        lv.permitted = false;
        if well {
            lv.killed = false;
        }
        lv.record = match lv.record {
            Record::Right => Record::Right,
            _ if read_only || !well => Record::Perhaps,
            _ => Record::Right,
        };
    }

    fn is_refused(
        &mut self,
        pod: usize,
        read_only: bool,
        before: &Checked,
        expected: &Expected,
        reply: &Reply,
    ) {
        const TEXTS: [(&str, &str); 12] = [
            ("name-taken", "the node-wide mount "),
            ("another-is-there", " already holds "),
            ("there-read-only", "read-only, but the pod wants to write"),
            ("activating", "activating "),
            ("tagging", "tagging "),
            ("creating", "creating "),
            ("making", "making "),
            ("checking", "checking the filesystem"),
            ("mounting", "mounting "),
            ("growing", "growing "),
            ("new-not-blank", "is new and nobody has used it"),
            ("no-size", "none is made "),
        ];
        self.tally.refusals += 1;
        let slot = pod / 2;
        println!("    refused: {}", reply.message);
        let killed = self.lv(slot).is_some_and(|lv| lv.killed);
        if killed && self.operator(slot, reply) {
            return;
        }
        let after = self.check(slot, read_only);
        let said = |checked: &Checked| {
            !checked.reason.is_empty() && reply.message.contains(&checked.message)
        };
        let by_text = || {
            TEXTS
                .iter()
                .find(|(_, words)| reply.message.contains(words))
        };
        let word = [before, &after].into_iter().find(|checked| said(checked));
        let word = word.map_or_else(
            || by_text().map_or("?", |(word, _)| *word),
            |checked| &checked.reason,
        );
        let allowed = expected.words.contains(word);
        assert!(
            allowed,
            "{word} is not true: {reply:?}, {expected:?}, {before:?}, {after:?}, {:?}",
            self.lv(slot)
        );
        let of_places = ["name-taken", "another-is-there", "there-read-only"].contains(&word);
        let told = said(before) || ["activate", "unread"].contains(&&*before.verdict) || of_places;
        assert!(
            told || !self.works(slot) || self.pool_scarred,
            "{before:?} was told, and then {reply:?}"
        );
    }

    /// What an operator does about what a kill has left, as the message says.
    fn operator(&mut self, slot: usize, reply: &Reply) -> bool {
        let (volume, group) = (self.volume(slot), &self.groups[PLACES[slot].disk]);
        let said = |words: &str| reply.message.contains(words);
        if said(&format!("`lvremove {}`", group.path(PLACES[slot].lv))) {
            assert!(
                self.lv(slot).is_none_or(|lv| lv.files.is_empty()),
                "{reply:?}"
            );
            group.lv("lvremove", &[], PLACES[slot].lv);
            self.slots[slot] = None;
        } else if said("Superblock checksum does not match superblock") {
            run(
                "debugfs",
                &[
                    "-n",
                    "-w",
                    "-R",
                    "set_super_value state 0",
                    &volume.device(),
                ],
            );
        } else if let Some((_, part)) = reply.message.split_once("prohibited while logical volume ")
        {
            run("lvchange", &["-an", part.split(' ').next().unwrap()]);
        } else {
            return false;
        }
        true
    }

    fn down(&mut self, pod: usize, cut: Option<(usize, &Place, Victim)>) {
        if self.pods[pod] == Pod::Gone {
            return;
        }
        let (dir, volume) = (self.dir(pod), self.volume(pod / 2));
        let global = self.node.global_dir(&volume);
        let is_last = self.pods[pod ^ 1] == Pod::Gone;
        let mut calls = vec![call(&["unmount", text(&dir)])];
        if self.attach && is_last {
            calls.push(call(&["unmountdevice", text(&global)]));
            calls.push(call(&["detach", &volume.name, &host_name()]));
        }
        let held = matches!(self.open, Some((holder, _)) if holder == pod);
        match self.make_calls(calls, cut) {
            Came::Refused(reply) if held => {
                self.tally.refusals += 1;
                reply.is_failure(&["is in use by"]);
                return;
            }
            Came::Refused(reply) => panic!("a pod that cannot end: {reply:?}"),
            Came::Cut => {
                if let Some(lv) = self.slots[pod / 2] {
                    self.lvs[lv].killed = true;
                }
                if let Pod::Up { read_only, .. } = self.pods[pod] {
                    self.pods[pod] = Pod::Wanted { read_only };
                }
                return;
            }
            Came::Done => assert!(!held, "unmounted while a file was open"),
        }
        self.pods[pod] = Pod::Gone;
        for dir in [Some(dir), (self.attach && is_last).then_some(global)]
            .into_iter()
            .flatten()
        {
            assert!(mount_at(&dir).is_none());
            let removed = fs::remove_dir(&dir);
            assert!(removed.is_ok() || !dir.exists(), "{removed:?}");
        }
    }

    /// Makes these calls one after the other, as far as they succeed. One of them is cut short.
    fn make_calls(&mut self, calls: Vec<Call>, cut: Option<(usize, &Place, Victim)>) -> Came {
        let count = calls.len();
        for (number, call) in calls.into_iter().enumerate() {
            if let Some(dir) = call.unless {
                precreated(dir.clone());
                if mount_at(&dir).is_some() {
                    continue;
                }
            }
            let args: Vec<&str> = call.args.iter().map(String::as_str).collect();
            let here = cut.filter(|(at, ..)| at % count == number);
            let reply = if let Some((_, place, victim)) = here {
                let cut = self.tools.cut(&self.node, &call.args, place, victim);
                Steps::wait_for_orphans(&self.tools.ran());
                self.tools.plan("none");
                match cut {
                    Cut::Missed(reply) => reply,
                    Cut::Answered(reply) if reply.status == "Success" => reply,
                    Cut::Answered(_) | Cut::Killed => {
                        self.tally.kills += 1;
                        return Came::Cut;
                    }
                }
            } else {
                self.node.call(&args)
            };
            if reply.status != "Success" {
                return Came::Refused(reply);
            }
        }
        Came::Done
    }

    fn check(&self, slot: usize, read_only: bool) -> Checked {
        let place = &PLACES[slot];
        let id = self.groups[place.disk].path(place.lv);
        let size = format!("size={}", place.size);
        let fs = format!("fsType={}", place.fs);
        let mut args = vec!["check", "--json", &id, "-o", &fs, "-o", &size];
        if read_only {
            args.push("--ro");
        }
        let (json, _) = self.node.says(&args);
        let report: Value =
            serde_json::from_str(&json).unwrap_or_else(|_| panic!("{args:?}: {json}"));
        let field = |name| {
            report["volumes"][0][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        Checked {
            verdict: field("verdict"),
            reason: field("reason"),
            message: field("message"),
        }
    }

    fn expected(&self, pod: usize, read_only: bool) -> Expected {
        let (slot, place) = (pod / 2, &PLACES[pod / 2]);
        let volume = self.volume(slot);
        let lv = self.lv(slot);
        let all = lv.map_or_else(Vec::new, Self::mounts_of);
        let is_other = |dir: &Path| {
            device_at(dir).is_some_and(|uuid| lv.is_none_or(|lv| !uuid.ends_with(&lv.uuid)))
        };
        Asked {
            lv,
            fs: place.fs,
            read_only,
            creatable: place.disk == 1,
            disk: self.ill[place.disk],
            thin: place.thin,
            pool_full: self.pool_full,
            pool_scarred: self.pool_scarred,
            read_only_mount: all.iter().any(|mount| mount.options.starts_with("ro")),
            mounted: !all.is_empty(),
            renamed: [self.node.global_dir(&volume), self.dir(pod)]
                .iter()
                .any(|dir| is_other(dir)),
        }
        .expected()
    }

    // What pods do.

    fn write(&mut self, pod: usize, number: usize, synced: bool) {
        let Pod::Up {
            read_only: false,
            lv,
        } = self.pods[pod]
        else {
            return;
        };
        if self.pool_full && PLACES[pod / 2].thin {
            return;
        }
        let (name, dir) = (format!("f{number}"), self.dir(pod));
        let page = format!("{} {number}\n", self.lvs[lv].uuid).repeat(1 + number * 8);
        let write = || {
            fs::write(dir.join(&name), &page)?;
            if synced {
                fs::File::open(dir.join(&name))?.sync_all()?;
                fs::File::open(&dir)?.sync_all()?;
            }
            Ok::<_, std::io::Error>(())
        };
        let written = write();
        let well = self.works(pod / 2) && !self.lvs[lv].scarred && !self.pool_scarred;
        assert!(written.is_ok() || !well, "{written:?}");
        let lv = &mut self.lvs[lv];
        let to = if written.is_ok() && synced && well {
            &mut lv.files
        } else {
            &mut lv.unsure
        };
        to.insert(name, page);
    }

    fn grow(&mut self, pod: usize) {
        let Pod::Up {
            read_only: false,
            lv,
        } = self.pods[pod]
        else {
            return;
        };
        let slot = pod / 2;
        if !self.is_well(slot) || self.slots[slot] != Some(lv) || self.lvs[lv].scarred {
            return;
        }
        let bytes = self.groups[PLACES[slot].disk].size(PLACES[slot].lv) + (8 << 20);
        let reply = self
            .node
            .grow(&format!("pod{pod}"), &self.volume(slot), bytes);
        if !(self.pool_full && PLACES[slot].thin) {
            reply.is_success();
        }
    }

    fn hold(&mut self, pod: usize) {
        if let (Pod::Up { .. }, None) = (self.pods[pod], &self.open) {
            let options = fs::File::options()
                .read(true)
                .custom_flags(nix::libc::O_DIRECTORY)
                .open(self.dir(pod));
            self.open = options.ok().map(|file| (pod, file));
        }
    }

    // What happens to disks, and what operators do.

    fn is_well(&self, slot: usize) -> bool {
        let thin = PLACES[slot].thin;
        self.works(slot) && !(thin && self.pool_scarred)
    }

    fn works(&self, slot: usize) -> bool {
        matches!(self.ill[PLACES[slot].disk], Ill::No | Ill::Slow)
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

    /// The volume of a slot, if nobody uses it and LVM can work on it.
    fn free(&self, slot: usize) -> Option<usize> {
        let lv = self.slots[slot].filter(|_| self.is_well(slot))?;
        Self::mounts_of(&self.lvs[lv]).is_empty().then_some(lv)
    }

    /// The same, and active.
    fn free_device(&self, slot: usize) -> Option<(usize, String)> {
        let lv = self.free(slot)?;
        self.groups[PLACES[slot].disk].lv("lvchange", &["-ay"], PLACES[slot].lv);
        Some((lv, self.volume(slot).device()))
    }

    fn take_in(&mut self, slot: usize) -> &mut Lv {
        let place = &PLACES[slot];
        let id = self.groups[place.disk].path(place.lv);
        let uuid = run("lvs", &["--noheadings", "-o", "lv_uuid", &id]).replace('-', "");
        self.slots[slot] = Some(self.lvs.len());
        self.lvs.push(Lv::new(uuid));
        self.lvs.last_mut().unwrap()
    }

    fn make(&mut self, slot: usize) {
        let place = &PLACES[slot];
        if place.thin {
            if self.pool_full || self.pool_scarred {
                return;
            }
            self.groups[place.disk].thin(place.lv, place.size);
        } else {
            self.groups[place.disk].linear(place.lv, place.size);
        }
        self.take_in(slot);
    }

    /// A call may have created it, or half of it.
    fn find_created(&mut self, slot: usize) {
        let place = &PLACES[slot];
        if self.slots[slot].is_none()
            && place.disk == 1
            && self.works(slot)
            && self.groups[1].has(place.lv)
        {
            self.take_in(slot).holds = Holds::Blank;
        }
    }

    fn remove(&mut self, slot: usize) {
        if self.free(slot).is_some() {
            self.groups[PLACES[slot].disk].lv("lvremove", &[], PLACES[slot].lv);
            self.slots[slot] = None;
        }
    }

    /// Two volumes change their names.
    fn swap(&mut self, slot: usize, with: usize) {
        let (one, other) = (&PLACES[slot], &PLACES[with]);
        let well = self.is_well(slot) && self.is_well(with);
        if slot == with || one.disk != other.disk || one.fs != other.fs || !well {
            return;
        }
        let group = &self.groups[one.disk].name;
        let rename = |from: &str, to: &str| sh(&format!("lvrename -qq {group} {from} {to}"));
        let [there, here] = [slot, with].map(|slot| self.slots[slot].is_some());
        there.then(|| rename(one.lv, "between"));
        here.then(|| rename(other.lv, one.lv));
        there.then(|| rename("between", other.lv));
        self.slots.swap(slot, with);
    }

    fn extend(&mut self, slot: usize) {
        if self.slots[slot].is_some() && self.is_well(slot) && !self.pool_full {
            self.groups[PLACES[slot].disk].lv("lvextend", &["-L", "+8m"], PLACES[slot].lv);
        }
    }

    fn snapshot(&mut self, slot: usize, to: usize) {
        let (from, at) = (&PLACES[slot], &PLACES[to]);
        let Some(lv) =
            self.slots[slot].filter(|_| from.thin && at.thin && self.slots[to].is_none())
        else {
            return;
        };
        if !self.is_well(slot) || self.pool_full || self.lvs[lv].scarred {
            return;
        }
        self.groups[0].lv("lvcreate", &["-s", "-kn", "-n", at.lv], from.lv);
        let origin = self.lvs[lv].clone();
        let copy = self.take_in(to);
        *copy = Lv {
            uuid: copy.uuid.clone(),
            record: Record::None,
            permitted: false,
            ..origin
        };
    }

    fn spoil(&mut self, slot: usize) {
        if PLACES[slot].fs != "btrfs"
            && let Some((lv, device)) = self.free_device(slot)
            && self.lvs[lv].holds != Holds::Perhaps
        {
            put(&device, 0, &b"raw!".repeat(1024));
            self.lvs[lv].now_holds(Holds::Raw);
        }
    }

    fn format(&mut self, slot: usize, ext4: bool) {
        if let Some((lv, device)) = self.free_device(slot)
            && !self.pool_full
        {
            let fs = if ext4 { "ext4" } else { "ext2" };
            run("wipefs", &["-qa", &device]);
            run(&format!("mkfs.{fs}"), &["-q", "-F", &device]);
            self.lvs[lv].now_holds(Holds::Fs(fs));
        }
    }

    /// Somebody takes the record off.
    fn forget(&mut self, slot: usize) {
        if let Some(lv) = self.free(slot) {
            let group = &self.groups[PLACES[slot].disk];
            let tags = group.tags(PLACES[slot].lv);
            for tag in tags
                .split(',')
                .filter(|tag| tag.starts_with("flexvolume.fs="))
            {
                group.lv("lvchange", &["--deltag", tag], PLACES[slot].lv);
            }
            self.lvs[lv].record = Record::None;
        }
    }

    fn adopt(&mut self, slot: usize) {
        let Some((lv, _)) = self.free_device(slot) else {
            return;
        };
        let is_fs = matches!(self.lvs[lv].holds, Holds::Fs(_));
        let (said, code) = self.node.says(&[
            "adopt",
            &self.groups[PLACES[slot].disk].path(PLACES[slot].lv),
        ]);
        if self.lvs[lv].holds != Holds::Perhaps {
            assert_eq!(code == 0, is_fs, "{said}");
        }
        if code == 0 {
            self.lvs[lv].record = Record::Right;
        }
    }

    fn allow_format(&mut self, slot: usize) {
        let Some((lv, _)) = self.free_device(slot) else {
            return;
        };
        let id = self.groups[PLACES[slot].disk].path(PLACES[slot].lv);
        let (said, code) = self.node.says(&["allow-format", &id, "--yes"]);
        match self.lvs[lv].holds {
            Holds::Raw => self.lvs[lv].permitted = code == 0,
            Holds::Fs(_) => assert_eq!(code, 1, "{said}"),
            _ => {}
        }
    }

    fn replace(&self) {
        let exe = self.node.exe();
        let next = exe.with_file_name(".lvm");
        fs::copy(&exe, &next).unwrap();
        fs::rename(&next, &exe).unwrap();
    }

    fn deactivate(&mut self, disk: usize) {
        let group = &self.groups[disk].name;
        let used = mounts().iter().any(|mount| {
            device_at(Path::new(&mount.point))
                .is_some_and(|_| mount.source.contains(group.as_str()))
        });
        if !used && self.ill[disk] == Ill::No {
            run("vgchange", &["-qq", "-an", group]);
            if disk == 0 {
                run("vgchange", &["-qq", "-ay", group]);
                self.pool_scarred = false;
            }
        }
    }

    fn fall_ill(&mut self, disk: usize, how: Ill) {
        self.heal(disk);
        self.ill[disk] = how;
        match how {
            Ill::No => {}
            Ill::Slow => self.disks[disk].slow(std::time::Duration::from_millis(10)),
            Ill::ReadOnly => {
                run("blockdev", &["--setro", &self.disks[disk].below]);
            }
            Ill::Gone => {
                self.disks[disk].fail_wholly();
                self.pool_scarred |= disk == 0;
                for slot in (0..SLOTS).filter(|slot| PLACES[*slot].disk == disk) {
                    if let Some(lv) = self.slots[slot] {
                        self.lvs[lv].scarred |= !Self::mounts_of(&self.lvs[lv]).is_empty();
                    }
                }
            }
        }
    }

    fn heal(&mut self, disk: usize) {
        run("blockdev", &["--setrw", &self.disks[disk].below]);
        self.disks[disk].heal();
        self.ill[disk] = Ill::No;
    }

    /// Little of the thin pool is left.
    fn fill(&mut self) {
        if self.pool_full || self.pool_scarred || self.ill[0] != Ill::No {
            return;
        }
        let filler = self.groups[0].thin("filler", "196m");
        let percent: f64 = run(
            "lvs",
            &[
                "--noheadings",
                "-o",
                "data_percent",
                &self.groups[0].path("pool"),
            ],
        )
        .parse()
        .unwrap();
        let count = format!("count={:.0}", ((96.5 - percent) * 2.0).max(1.0));
        let to = format!("of={}", filler.device());
        run(
            "dd",
            &[
                "if=/dev/zero",
                &to,
                "bs=1M",
                "oflag=direct",
                "status=none",
                &count,
            ],
        );
        self.pool_full = true;
    }

    fn drain(&mut self) {
        if self.pool_full && self.ill[0] == Ill::No && !self.pool_scarred {
            self.groups[0].lv("lvremove", &[], "filler");
            self.pool_full = false;
        }
    }

    /// All that is not on the disks is gone, and what was on its way to them. A write that was handed
    /// to the disk counts as written: no cache of the disk's own is lost here, see `cache` and
    /// `kills::power`.
    fn cut_power(&mut self) {
        self.tally.cuts += 1;
        self.open = None;
        self.pull_the_plug();
        for disk in 0..2 {
            self.heal(disk);
        }
        run("udevadm", &["settle"]);
        let _ = fs::remove_dir_all("/run/flexvolume-lvm");
        self.pool_scarred = false;
        for lv in &mut self.lvs {
            lv.scarred = false;
        }
        for pod in &mut self.pods {
            if let Pod::Up { read_only, .. } = *pod {
                *pod = Pod::Wanted { read_only };
            }
        }
    }

    fn pull_the_plug(&self) {
        self.disks.iter().for_each(Disk::fail_wholly);
        for mount in mounts()
            .iter()
            .rev()
            .filter(|mount| mount.point.starts_with(text(self.node.kubelet_dir())))
        {
            lenient("umount", &["--lazy", &mount.point]);
        }
        let prefix = format!("life{}g", self.number);
        eventually("all volumes are inactive", || {
            let all = run("dmsetup", &["info", "-c", "--noheadings", "-o", "name"]);
            let ours: Vec<_> = all
                .lines()
                .filter(|name| name.starts_with(&prefix))
                .collect();
            for name in &ours {
                let mut remove = assert_cmd::Command::new("dmsetup");
                let _ = remove.args(["remove", name]).output();
            }
            ours.is_empty()
        });
    }

    /// What a pod sees: its own volume, all that was synced, and nothing else.
    fn look_into(&self, pod: usize) {
        let Pod::Up { read_only, lv } = self.pods[pod] else {
            return;
        };
        let (dir, lv, slot) = (self.dir(pod), &self.lvs[lv], pod / 2);
        let uuid = device_at(&dir).unwrap_or_else(|| panic!("pod{pod} has lost its mount"));
        assert!(
            uuid.ends_with(&lv.uuid),
            "pod{pod} has the volume {uuid}, not {lv:?}"
        );
        let mount = mount_at(&dir).unwrap();
        assert_eq!(mount.options.starts_with("ro"), read_only, "{mount:?}");
        let sound = self.is_well(slot) && !lv.scarred;
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                assert!(!sound, "{error}");
                return;
            }
        };
        for name in entries.map_while(|entry| entry.ok()?.file_name().into_string().ok()) {
            let known = name == "lost+found"
                || lv.files.contains_key(&name)
                || lv.unsure.contains_key(&name);
            assert!(known, "pod{pod} sees {name}, which is not its own");
        }
        for (name, page) in &lv.files {
            match fs::read_to_string(dir.join(name)) {
                Ok(text) => assert!(text == *page, "{name} in pod{pod} has changed"),
                Err(error) => assert!(!sound, "{name} in pod{pod} is lost: {error}"),
            }
        }
    }
}

impl Drop for World {
    /// What failed is in no other life's way.
    fn drop(&mut self) {
        self.open = None;
        self.tools.kill_all();
        self.pull_the_plug();
        (0..2).for_each(|disk| self.heal(disk));
    }
}

/// What device-mapper calls the device that is mounted at exactly this directory: its UUID.
fn device_at(dir: &Path) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table
        .lines()
        .rfind(|line| line.split(' ').nth(4) == dir.to_str())?;
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut words = filesystem.split(' ');
    let (fs_type, source) = (words.next()?, words.next()?);
    let uuid = if fs_type == "btrfs" {
        let node = fs::canonicalize(source).ok()?;
        format!("/sys/class/block/{}/dm/uuid", node.file_name()?.to_str()?)
    } else {
        format!("/sys/dev/block/{}/dm/uuid", mount.split(' ').nth(2)?)
    };
    Some(fs::read_to_string(uuid).ok()?.trim().to_owned())
}
