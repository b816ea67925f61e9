//! An operator who runs doctor and follows its advice as it is printed. What doctor says must be true, no advice throws
//! away what a pod has synced, and what was followed has helped.

use std::collections::BTreeSet;
use std::process::Command;

use super::{PLACES, Pod, World};
use crate::life::oracle::{Holds, Lv};
use crate::life::player::{Ill, SLOTS};
use crate::prelude::*;
use crate::refusals::commands::{commands_in, only_looks};

/// A finding of doctor that is not `ok`.
#[derive(Debug)]
struct Finding {
    check: String,
    about: String,
    words: String,
    /// The commands in the words, and the one that doctor says to run.
    commands: Vec<String>,
}

impl Finding {
    /// The reason of a refusal, in the brackets at its end.
    fn reason(&self) -> Option<&str> {
        self.words.rfind('[').map(|at| &self.words[at..])
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.check, &self.about, self.reason()) == (&other.check, &other.about, other.reason())
    }
}

/// Parts of commands that destroy what a volume holds.
const DESTROYS: [&str; 8] = [
    "lvremove ",
    "allow-format ",
    "wipefs --all ",
    "blkdiscard ",
    "mkfs",
    "vgcfgrestore --file ",
    "vgreduce ",
    "dd if=/dev/zero ",
];

/// The beginnings of commands that an operator runs without looking further, where nothing uses the volume.
const MENDS: [&str; 10] = [
    "(lvchange -ay ",
    "blockdev --setrw ",
    "dmsetup clear ",
    "dmsetup remove ",
    "dmsetup resume ",
    "lvchange --refresh ",
    "lvchange -an ",
    "lvchange -ay ",
    "lvm unmountdevice ",
    "vgmknodes ",
];

impl World {
    pub(super) fn consult(&mut self) {
        self.count("consults");
        let found = self.findings();
        for one in &found {
            println!("    doctor: {one:?}");
            self.is_true(one);
        }
        let mut ran = BTreeSet::new();
        let followed: Vec<_> = found
            .iter()
            .filter(|one| self.follow(one, &mut ran))
            .collect();
        if followed.is_empty() {
            return;
        }
        for one in &followed {
            self.count("advice followed");
            self.mounts_again(one);
        }
        let after = self.findings();
        for one in followed {
            let still = after.iter().find(|other| other.is_same(one));
            let may_stay = match self.slot_of(&one.about) {
                // The next mount mends some faults, and it may be refused for another reason.
                Some(slot) => {
                    let lv = self.slots[slot].filter(|_| self.is_well(slot));
                    lv.is_none_or(|lv| !self.is_alive(lv))
                }
                None => self.ill != [Ill::No; 2],
            };
            assert!(still.is_none() || may_stay, "no help: {one:?}");
        }
    }

    /// The next mount after advice was followed is not refused for the same reason.
    fn mounts_again(&mut self, one: &Finding) {
        let Some(slot) = self.slot_of(&one.about) else {
            return;
        };
        let mut pods = [2 * slot, 2 * slot + 1].into_iter();
        let Some(pod) = pods.find(|pod| !matches!(self.pods[*pod], Pod::Up { .. })) else {
            return;
        };
        self.refused.clear();
        self.up(pod, false, None);
        let is_same = |reason: &str| self.refused.ends_with(reason);
        let is_refused = one.reason().is_some_and(is_same) && self.is_well(slot);
        assert!(!is_refused, "no help: {one:?}");
    }

    fn findings(&self) -> Vec<Finding> {
        let (report, _) = self.node.json(&["doctor"]);
        let all = report.as_array().unwrap().iter();
        let unwell = all.filter(|one| one["severity"] != "ok");
        let findings = unwell.map(|one| {
            let field = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let (words, command) = (field("finding"), field("command"));
            let commands = commands_in(&words).map(str::to_owned);
            let command = Some(command).filter(|command| !command.is_empty());
            Finding {
                check: field("check"),
                about: field("about"),
                commands: commands.chain(command).collect(),
                words,
            }
        });
        findings.collect()
    }

    /// The slot whose volume has this name.
    fn slot_of(&self, id: &str) -> Option<usize> {
        (0..SLOTS).find(|slot| self.groups[PLACES[*slot].disk].path(PLACES[*slot].lv) == id)
    }

    /// What doctor says is true as far as the oracle knows, and its advice destroys nothing that a pod has synced.
    fn is_true(&self, one: &Finding) {
        let is_named = |disk: usize| {
            let name = &self.groups[disk].name;
            one.about.starts_with(name) || one.words.contains(name)
        };
        let slot = self.slot_of(&one.about);
        let (is_true, slots) = if let Some(slot) = slot {
            let all = self.lv(slot).map_or_else(Vec::new, Self::mounts_of);
            let is_read_only = |mount: &Mount| mount.options.starts_with("ro");
            let read_only = !all.is_empty() && all.iter().all(is_read_only);
            let asked = self.asked(2 * slot, read_only);
            (asked.may_be_found(&one.check), slot..slot + 1)
        } else {
            let is_ill = |disk: usize| matches!(self.ill[disk], Ill::Gone | Ill::ReadOnly);
            let is_hurt = |disk| is_ill(disk) || disk == 0 && self.pool_scarred;
            let is_true = (0..2).any(|disk| is_named(disk) && is_hurt(disk));
            // A busy machine has no time to read all volumes.
            (is_true || one.check == "volumes", 0..SLOTS)
        };
        let lv = slot.and_then(|slot| self.lv(slot));
        let lv = lv.map(|lv| (lv.holds, lv.record, lv.permitted));
        assert!(is_true, "a false alarm: {one:?}, {lv:?}");
        let destroys = |command: &String| DESTROYS.iter().any(|part| command.contains(part));
        if one.commands.iter().any(destroys) {
            let mut its = slots.filter(|slot| is_named(PLACES[*slot].disk));
            let has_data = |lv: &Lv| !lv.files.is_empty() && !lv.lost;
            let destroyed = its.find(|slot| self.lv(*slot).is_some_and(has_data));
            assert!(
                destroyed.is_none(),
                "{one:?} destroys what pods have synced"
            );
        }
    }

    /// Runs what is printed, as far as an operator does so without being asked. Returns whether that is to help.
    fn follow(&mut self, one: &Finding, ran: &mut BTreeSet<String>) -> bool {
        let slot = self.slot_of(&one.about);
        let lv = slot.and_then(|slot| self.slots[slot]);
        if let (Some(slot), Some(lv)) = (slot, lv)
            && !self.is_used(lv)
            && self.lvs[lv].killed
            && self.works(slot)
            && self.operator(slot, &one.words)
        {
            return true;
        }
        let mut helps = false;
        let ends_pods = one
            .words
            .contains("When the disk works again, end all pods");
        if let (Some(slot), Some(lv), true) = (slot, lv, ends_pods)
            && self.works(slot)
        {
            self.end_pods(|other| other == lv);
            helps = true;
        }
        let exe = self.node.exe();
        for printed in &one.commands {
            let command = &printed.replace(text(&exe), "lvm");
            if ran.contains(command) {
                helps |= mends(command);
            } else if looks(command) {
                runs_as_printed(printed);
            } else if command.starts_with("lvm adopt ") {
                // "If this is the right content": what an operator has made is.
                if let (Some(slot), Some(lv)) = (slot, lv)
                    && matches!(self.lvs[lv].holds, Holds::Fs(_))
                    && self.free(slot).is_some()
                {
                    self.adopt(slot);
                    helps = true;
                }
            } else if mends(command) && self.is_ready_for(command, lv) {
                runs_as_printed(printed);
                self.has_mended(command);
                helps = true;
            } else {
                continue;
            }
            ran.insert(command.clone());
        }
        helps
    }

    fn is_used(&self, lv: usize) -> bool {
        self.is_alive(lv) || self.is_open(lv)
    }

    /// Ends the pods of these volumes, as a message says before its command.
    fn end_pods(&mut self, is_its: impl Fn(usize) -> bool) {
        for pod in 0..self.pods.len() {
            let lv = match self.pods[pod] {
                Pod::Up { lv, .. } => Some(lv),
                Pod::Gone | Pod::Wanted { .. } => self.slots[pod / 2],
            };
            if lv.is_some_and(&is_its) {
                if matches!(self.open, Some((holder, _)) if holder == pod) {
                    self.open = None;
                }
                self.down(pod, None);
            }
        }
    }

    /// Ends all that uses the volumes that a command deactivates. Returns false if that is not possible.
    fn is_ready_for(&mut self, command: &str, lv: Option<usize>) -> bool {
        if !command.contains("lvchange -an ") {
            return true;
        }
        let thin = (0..SLOTS).filter(|slot| PLACES[*slot].thin);
        let its: Vec<usize> = if command.contains("pool_lv=") {
            thin.filter_map(|slot| self.slots[slot]).collect()
        } else {
            lv.into_iter().collect()
        };
        let is_well = self.ill == [Ill::No; 2];
        if is_well {
            self.end_pods(|lv| its.contains(&lv));
        }
        is_well && !its.iter().any(|lv| self.is_used(*lv))
    }

    /// Takes in what this command has changed for other volumes, too.
    fn has_mended(&mut self, command: &str) {
        if command.contains("pool_lv=") {
            self.pool_scarred = false;
        }
        for disk in 0..2 {
            let below = run("blockdev", &["--getro", &self.disks[disk].below]);
            if self.ill[disk] == Ill::ReadOnly && below == "0" {
                self.heal(disk);
            }
        }
    }
}

/// The commands of this line. `lvm` in it is the driver.
fn parts(command: &str) -> impl Iterator<Item = &str> {
    command.split(" && ").flat_map(|part| part.split("; "))
}

fn looks(command: &str) -> bool {
    parts(command).all(|part| only_looks(&part) || part.starts_with("lvm check "))
}

fn mends(command: &str) -> bool {
    parts(command).all(|part| MENDS.iter().any(|begins| part.starts_with(begins)))
}

fn runs_as_printed(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    println!("    ran `{command}`: {} {said}", output.status);
}
