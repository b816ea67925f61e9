//! What pods, kubelet, operators and bad luck do.

use super::world::{At, Lv, MIB, World, equip, mode, word};
use super::{Calls, Place, SLOTS};
use crate::pair::{at_once, down_calls, line, pod_dir, up_calls};
use crate::support::reply::Reply;

impl World<'_> {
    pub fn both(&mut self, slot: usize) {
        let (mode, volume, [a, b]) = (mode(slot), self.volume(slot), self.nodes);
        let replies = at_once(|| a.up(mode, &volume), || b.up(mode, &volume));
        self.count("both at once");
        let was_idle = self.is_idle(slot) && self.locks == [true; 2];
        let mut order = [0, 1];
        order.sort_by_key(|node| replies[*node].status != "Success");
        for node in order {
            self.came((slot, node), &replies[node], &["held-elsewhere"]);
        }
        if was_idle && self.is_idle(slot) {
            // kubelet calls again.
            self.count("neither of both");
            self.up((slot, 0));
        }
    }

    pub fn write(&mut self, slot: usize, number: usize) {
        let Some(node) = self.home(slot) else {
            return;
        };
        self.count("writes");
        let words = format!("of life {} in {slot} on {node}", self.seed);
        let (page, dir) = (
            format!("page{number}"),
            pod_dir(mode(slot), &self.volume(slot)),
        );
        self.nodes[node].sh(&format!(
            "cd {dir} && echo '{words}' > {page} && sync {page} ."
        ));
        let lv = self.volumes[slot].as_mut().unwrap();
        lv.pages.insert(page, words);
    }

    pub fn down(&mut self, place @ (slot, node): Place) {
        for call in down_calls(mode(slot), &self.volume(slot)) {
            loop {
                let reply = self.nodes[node].call(mode(slot), &call);
                if reply.status == "Success" {
                    break;
                }
                if !self.locks[node] {
                    reply.is_failure(&["lvmlockd does not run"]);
                    self.count("unmounts without lvmlockd");
                    if self.at[slot][node] == At::Up {
                        self.at[slot][node] = At::Perhaps;
                    }
                    return;
                }
                assert!(self.is_mended(place, &reply), "{reply:?}");
            }
        }
        self.at[slot][node] = At::Gone;
    }

    pub fn kill(&mut self, (slot, node): Place, way: Calls, call: usize, plan: &str) {
        let home = self.home(slot);
        let node = match way {
            Calls::Down => home.unwrap_or(node),
            Calls::Up => node,
        };
        if let (Calls::Up, Some(home)) = (way, home) {
            // Another pod comes.
            self.down((slot, home));
        }
        let place = (slot, node);
        if !self.locks[node] || way == Calls::Down && self.at[slot][node] == At::Gone {
            return;
        }
        let (guest, mode, volume) = (self.nodes[node], mode(slot), self.volume(slot));
        let calls = match way {
            Calls::Up => up_calls(mode, &volume),
            Calls::Down => down_calls(mode, &volume),
        };
        let mut failed = None;
        for (number, args) in calls.iter().enumerate() {
            let line = line(mode, args);
            let output = if number == call % calls.len() {
                let cut = line.replace("/exec/", "/cut/");
                guest.run(&format!(
                    "(cd /run/stand-ins; rm -f killed; echo 0 > count; echo {plan} > plan)\n{cut}"
                ))
            } else {
                guest.run(&line)
            };
            let killed = guest.sh("cd /run/stand-ins; cat killed 2> /dev/null; rm -f killed");
            if output.status.code() == Some(137) {
                self.count(&format!("killed with {killed}"));
                return self.is_cut(place, way);
            }
            let reply = Reply::of(&line, &output);
            if !killed.is_empty() {
                self.count(&format!("only {killed} killed"));
                if reply.status != "Success" {
                    return self.is_cut(place, way);
                }
            }
            if reply.status != "Success" {
                failed = Some(reply);
                break;
            }
        }
        match (way, failed) {
            // kubelet calls again.
            (Calls::Down, _) => self.down(place),
            (Calls::Up, None) => self.is_up(place),
            (Calls::Up, Some(reply)) => {
                if self.came(place, &reply, &[]) {
                    self.up(place);
                }
            }
        }
    }

    fn is_cut(&mut self, (slot, node): Place, way: Calls) {
        let at = &mut self.at[slot][node];
        if way == Calls::Up {
            if *at == At::Up {
                return;
            }
            self.volumes[slot].get_or_insert_with(Lv::new).killed = true;
        }
        *at = At::Perhaps;
    }

    pub fn grow(&mut self, (slot, node): Place) {
        let (mode, volume, home) = (mode(slot), self.volume(slot), self.home(slot));
        let is_small = |lv: &&mut Lv| lv.size < 160 * MIB;
        let Some(lv) = self.volumes[slot].as_mut().filter(is_small) else {
            return;
        };
        if home.is_none() || !self.locks[node] {
            return;
        }
        let size = lv.size + 32 * MIB;
        let (json, dir, bytes) = (volume.json(), pod_dir(mode, &volume), size.to_string());
        let reply = self.nodes[node].call(mode, &["expandfs", &json, "", &dir, &bytes, "0"]);
        if home == Some(node) {
            reply.is_success();
            // A LUKS2 header takes 16 MiB.
            (lv.least, lv.size) = (lv.size - 16 * MIB, size);
            self.count("growths");
        } else {
            assert_eq!(word(&reply), "held-elsewhere", "{reply:?}");
            self.count("growths refused");
        }
    }

    pub fn make(&mut self, (slot, node): Place) {
        if self.locks[node] && self.is_idle(slot) && self.volumes[slot].is_none() {
            let make = "lvcreate --yes --zero y --wipesignatures y --size 64m --name";
            self.nodes[node].sh(&format!(
                "{make} life{slot} vg && blkdiscard --force --zeroout /dev/vg/life{slot} && lvchange -an vg/life{slot}"
            ));
            self.volumes[slot] = Some(Lv::new());
            self.count("volumes made by hand");
        }
    }

    pub fn remove(&mut self, (slot, node): Place) {
        let Some(lv) = self.volumes[slot].as_ref().filter(|_| self.locks[node]) else {
            return;
        };
        let may_fail = lv.killed || !self.is_idle(slot);
        let removed = self.nodes[node].run(&format!("lvremove --yes vg/life{slot}"));
        if self.home(slot).is_some() {
            assert!(!removed.status.success(), "removed while it was mounted");
            self.count("removals refused");
        } else if removed.status.success() {
            self.volumes[slot] = None;
            self.count("volumes removed");
        } else {
            assert!(may_fail, "{removed:?}");
        }
    }

    /// An operator ends the pods of two slots, and gives their volumes each other's names.
    pub fn swap(&mut self, [one, other]: [usize; 2], node: usize) {
        for slot in [one, other] {
            if let Some(home) = self.home(slot) {
                self.down((slot, home));
            }
        }
        let can = |slot: usize| {
            self.is_idle(slot) && self.volumes[slot].as_ref().is_none_or(|lv| !lv.killed)
        };
        if one == other || !self.locks[node] || !can(one) || !can(other) {
            return;
        }
        let names = [
            format!("life{one}"),
            "life".to_owned(),
            format!("life{other}"),
        ];
        let [first, second] = [one, other].map(|slot| self.volumes[slot].is_some());
        for (is_there, from, to) in [(first, 0, 1), (second, 2, 0), (first, 1, 2)] {
            if is_there {
                self.nodes[node].sh(&format!("lvrename vg {} {}", names[from], names[to]));
                self.count("renames");
            }
        }
        self.volumes.swap(one, other);
    }

    pub fn locks_die(&mut self, node: usize) {
        if self.locks[node] {
            let kill = "kill -9 $(pidof lvmlockd); while pidof lvmlockd; do sleep 0.1; done";
            self.nodes[node].sh(kill);
            self.locks[node] = false;
            self.count("deaths of lvmlockd");
        }
    }

    pub fn locks_start(&mut self, node: usize) {
        if !self.locks[node] {
            self.nodes[node].sh("start_lvmlockd");
            self.nodes[node].join();
            self.locks[node] = true;
        }
    }

    pub fn cut_power(&mut self, node: usize) {
        self.count("power cuts");
        let (guest, other) = (self.nodes[node], 1 - node);
        let had = |slot: &usize| self.at[*slot][node] == At::Up;
        let had: Vec<_> = (0..SLOTS).filter(had).collect();
        guest.cut_power();
        // Each is refused there, since the node's lease has not run out.
        for slot in &had {
            self.up((*slot, other));
        }
        guest.boot();
        guest.join();
        equip(guest);
        self.locks[node] = true;
        self.at.iter_mut().for_each(|at| at[node] = At::Gone);
        // The old locks of this node are void now.
        for slot in &had {
            self.up((*slot, other));
        }
    }
}
