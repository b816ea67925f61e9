//! kubelet's calls, and the answers to them.

use std::fs;
use std::path::{Path, PathBuf};

use super::{PLACES, Pod, World, device_at};
use crate::kills::steps::{Cut, Step as Place, Steps, Victim};
use crate::life::oracle::{Asked, Expected, Holds, Record};
use crate::prelude::*;

/// The result of kubelet's calls.
enum Came {
    Done,
    Refused(Reply),
    Cut,
}

/// The answer of `check --json` for a volume.
#[derive(Debug)]
struct Checked {
    verdict: String,
    reason: String,
}

/// A call of kubelet's, which it makes if nothing is mounted there.
struct Call {
    unless: Option<PathBuf>,
    args: Vec<String>,
}

fn call(words: &[&str], unless: Option<&Path>) -> Call {
    let args = words.iter().map(|word| (*word).to_owned()).collect();
    let unless = unless.map(Path::to_owned);
    Call { unless, args }
}

impl World {
    fn volume_of(&self, pod: usize, read_only: bool) -> Volume {
        let volume = self.volume(pod / 2);
        if read_only {
            volume.read_only()
        } else {
            volume
        }
    }

    pub(super) fn dir(&self, pod: usize) -> PathBuf {
        self.node
            .pod_dir(&format!("pod{pod}"), &self.volume(pod / 2))
    }

    pub(super) fn up(&mut self, pod: usize, read_only: bool, cut: Option<(usize, &Place, Victim)>) {
        let slot = pod / 2;
        let read_only = match self.pods[pod] {
            Pod::Up { .. } => return,
            Pod::Wanted { read_only } => read_only,
            Pod::Gone => read_only,
        };
        let volume = self.volume_of(pod, read_only);
        let expected = self.asked(pod, read_only).expected();
        let before = self.check(slot, read_only);
        if let Some(lv) = self.lv(slot) {
            let formats = before.verdict == "format" && !lv.files.is_empty();
            assert!(!formats, "{before:?}, but it holds {:?}", lv.files.keys());
        }
        self.pods[pod] = Pod::Wanted { read_only };
        let is_first = self.slots[slot].is_none_or(|lv| !self.is_alive(lv));
        if let Some(lv) = self.slots[slot].filter(|_| is_first && self.works(slot)) {
            self.lvs[lv].scarred = false; // It is mounted anew.
        }
        let (json, device) = (volume.json(), volume.device());
        let (global, dir) = (self.node.global_dir(&volume), self.dir(pod));
        let json_for = volume.json_for(&format!("pod{pod}"));
        let there = device_at(&dir);
        let there = there.and_then(|uuid| self.lvs.iter().position(|lv| uuid.ends_with(&lv.uuid)));
        let mut calls = Vec::new();
        if self.config.attach {
            calls.push(call(&["attach", &json, &host_name()], None));
            calls.push(call(&["waitforattach", &device, &json], None));
            let mount = ["mountdevice", text(&global), &device, &json];
            calls.push(call(&mount, Some(&global)));
        }
        calls.push(call(&["mount", text(&dir), &json_for], Some(&dir)));
        let came = self.make_calls(calls, cut);
        self.find_created(slot);
        match came {
            // A call that was cut had mounted it, and kubelet makes no other, whoever has its name now.
            Came::Done if there.is_some_and(|lv| self.slots[slot] != Some(lv)) => {
                let lv = there.unwrap();
                self.pods[pod] = Pod::Up { read_only, lv };
            }
            Came::Done => {
                if let Some(lv) = self.slots[slot].filter(|_| is_first && !read_only) {
                    self.lvs[lv].unchecked = false; // The mount has checked it.
                }
                self.is_up(pod, read_only, &before, &expected);
                let mount = mount_at(&self.dir(pod)).unwrap();
                // kubelet makes no call for what a call that was cut had mounted.
                let is_new = there.is_none();
                let is_restricted = mount.options.split(',').any(|one| one == "nosuid");
                assert!(!is_new || is_restricted || !self.config.nosuid, "{mount:?}");
            }
            Came::Refused(reply) => self.is_refused(slot, &before, &expected, &reply),
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
        let slot = pod / 2;
        self.count("mounts");
        let is_refused = *expected == Expected::Refused;
        assert!(!is_refused, "mounted, and not refused: {before:?}");
        let well = self.works(slot) && self.lv(slot).is_none_or(|lv| !lv.lost);
        assert!(
            before.reason.is_empty() || !well,
            "{before:?}, and it is mounted"
        );
        let lv = self.slots[slot].expect("a volume that was mounted");
        self.pods[pod] = Pod::Up { read_only, lv };
        let lv = &mut self.lvs[lv];
        lv.holds = Holds::Fs(PLACES[slot].fs);
        lv.permitted = false;
        lv.scarred |= !well;
        if well {
            lv.killed = false;
        }
        lv.record = match lv.record {
            Record::Right => Record::Right,
            _ if read_only || !well => Record::Perhaps,
            _ => Record::Right,
        };
    }

    fn is_refused(&mut self, slot: usize, before: &Checked, expected: &Expected, reply: &Reply) {
        self.count("refusals");
        println!("    refused: {}", reply.message);
        self.refused.clone_from(&reply.message);
        let killed = self.lv(slot).is_some_and(|lv| lv.killed);
        if killed && self.operator(slot, &reply.message) {
            return;
        }
        let lv = self.lv(slot);
        let is_right = *expected != Expected::Mounted;
        assert!(is_right, "{reply:?}, {before:?}, {lv:?}");
    }

    pub(super) fn down(&mut self, pod: usize, cut: Option<(usize, &Place, Victim)>) {
        if self.pods[pod] == Pod::Gone {
            return;
        }
        let (dir, volume) = (self.dir(pod), self.volume(pod / 2));
        let global = self.node.global_dir(&volume);
        let is_last = self.pods[pod ^ 1] == Pod::Gone;
        let mut calls = vec![call(&["unmount", text(&dir)], None)];
        if self.config.attach && is_last {
            calls.push(call(&["unmountdevice", text(&global)], None));
            calls.push(call(&["detach", &volume.name, &host_name()], None));
        }
        let held = matches!(self.open, Some((holder, _)) if holder == pod);
        match self.make_calls(calls, cut) {
            Came::Refused(reply) if held => {
                self.count("refusals");
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
        for dir in [Some(dir), (self.config.attach && is_last).then_some(global)]
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
                if mount_at(&dir).is_some() {
                    continue;
                }
                precreated(dir);
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
                        self.count("kills");
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
        let mut args = vec!["check", &id, "-o", &fs, "-o", &size];
        if place.encrypted {
            args.extend(["-o", "encryption=luks2"]);
        }
        if read_only {
            args.push("--ro");
        }
        let (report, _) = self.node.json(&args);
        let field = |name| {
            report["volumes"][0][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        Checked {
            verdict: field("verdict"),
            reason: field("reason"),
        }
    }

    pub(super) fn asked(&self, pod: usize, read_only: bool) -> Asked<'_> {
        let (slot, place) = (pod / 2, &PLACES[pod / 2]);
        let volume = self.volume(slot);
        let global = self.node.global_dir(&volume);
        let globals = global.parent().unwrap();
        let lv = self.lv(slot);
        let all = lv.map_or_else(Vec::new, Self::mounts_of);
        let is_other = |dir: &Path| {
            device_at(dir).is_some_and(|uuid| lv.is_none_or(|lv| !uuid.ends_with(&lv.uuid)))
        };
        let lv_here = self.slots[slot].filter(|_| mount_at(&self.dir(pod)).is_none());
        Asked {
            lv,
            fs: place.fs,
            read_only,
            creatable: place.disk == 1,
            reserve: self.config.reserve,
            disk: self.ill[place.disk],
            thin: place.thin,
            pool_scarred: self.pool_scarred,
            read_only_mount: all.iter().any(|mount| mount.options.starts_with("ro")),
            mounted: !all.is_empty(),
            // A mount that is already there is not a new pod's.
            failed: lv_here.is_some_and(|lv| Self::has_failed(&self.lvs[lv])),
            twin: self.slots[slot].is_some_and(|lv| {
                let mut there = self.slots.iter().flatten();
                there.any(|other| self.are_twins(*other, lv))
            }),
            renamed: [&global, &self.dir(pod)].iter().any(|dir| is_other(dir)),
            globals: all
                .iter()
                .filter(|mount| Path::new(&mount.point).starts_with(globals))
                .count(),
        }
    }
}
