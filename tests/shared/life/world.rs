//! Both nodes, what must be true of the volumes, and what a pod's calls may answer.

use std::collections::BTreeMap;

use super::{Place, SLOTS, Step, Tally};
use crate::pair::{Guest, Pair, pod_dir};
use crate::support::Mode;
use crate::support::reply::Reply;
use crate::support::volume::Volume;

pub const MIB: u64 = 1 << 20;
const TOOLS: &str =
    "lvs vgs lvchange lvcreate lvextend blkid mkfs.ext4 e2fsck mount resize2fs cryptsetup";
/// A first mount that was killed may leave these. The driver does not make such a volume anew by itself.
const UNFINISHED: [&str; 5] = [
    "signs-of-data",
    "new-not-blank",
    "other",
    "luks-header",
    "inside",
];
/// Prints the mounts, the active devices, and what the pods see.
const LOOK: &str = r#"while read -r _ dir _ options _; do
    case $dir in */life?-of-pod) echo "mount $dir $options" ;; esac
done < /proc/self/mounts
dmsetup info -c --noheadings -o name | sed 's/^/device /'
for dir in /run/*/kubelet/pods/pod/volumes/kubernetes.io~lvm/life?-of-pod; do
    mountpoint -q "$dir" || continue
    cd "$dir"
    for page in *; do [ "$page" = lost+found ] || echo "page $dir $page $(cat "$page")"; done
    echo "size $dir $(($(stat -fc '%b * %S' .)))"
done"#;

/// A logical volume, whatever its name is.
pub struct Lv {
    /// What pods have synced.
    pub pages: BTreeMap<String, String>,
    /// None: nothing was made on it yet, or nobody knows.
    pub encrypted: Option<bool>,
    /// A call was killed that made it or something on it. If it has no pages, it may be missing.
    pub killed: bool,
    pub size: u64,
    /// Its filesystem has at least as many bytes.
    pub least: u64,
}

/// Whether a node has a slot's pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    Gone,
    /// A call failed or was killed, and kubelet has not repeated it yet.
    Perhaps,
    Up,
}

pub struct World<'a> {
    pub nodes: [&'a Guest; 2],
    pub seed: u64,
    tally: &'a mut Tally,
    pub volumes: [Option<Lv>; SLOTS],
    /// As the pods' manifests have it.
    pub encrypted: [bool; SLOTS],
    pub at: [[At; 2]; SLOTS],
    /// Whether lvmlockd runs on the node.
    pub locks: [bool; 2],
}

pub fn mode(slot: usize) -> Mode {
    [Mode::Attach, Mode::MountOnly][slot % 2]
}

/// The word in brackets that ends a refusal.
pub fn word(reply: &Reply) -> &str {
    let inside = reply.message.strip_suffix(']');
    let word = inside.and_then(|text| Some(text.rsplit_once('[')?.1));
    match word {
        // The driver began to create a volume, and lvcreate failed.
        _ if reply.message.contains("lvmlockd does not run on this one") => "no-locks",
        word => word.unwrap_or_default(),
    }
}

impl Lv {
    pub fn new() -> Self {
        Self {
            pages: BTreeMap::new(),
            encrypted: None,
            killed: false,
            size: 64 * MIB,
            least: 0,
        }
    }
}

impl<'a> World<'a> {
    pub fn new(pair: &'a Pair, seed: u64, tally: &'a mut Tally) -> Self {
        let nodes = [&pair.a, &pair.b];
        for node in nodes {
            equip(node);
        }
        Self {
            nodes,
            seed,
            tally,
            volumes: Default::default(),
            encrypted: std::array::from_fn(|slot| slot >= SLOTS / 2),
            at: [[At::Gone; 2]; SLOTS],
            locks: [true; 2],
        }
    }

    pub fn count(&mut self, what: &str) {
        *self.tally.entry(what.trim().to_owned()).or_default() += 1;
    }

    pub fn volume(&self, slot: usize) -> Volume {
        let volume = Volume::named(&format!("life{slot}"));
        if self.encrypted[slot] {
            volume.encrypted()
        } else {
            volume
        }
    }

    pub fn is_idle(&self, slot: usize) -> bool {
        self.at[slot] == [At::Gone; 2]
    }

    /// The node that has the slot's pod.
    pub fn home(&self, slot: usize) -> Option<usize> {
        (0..2).find(|node| self.at[slot][*node] == At::Up)
    }

    /// Plays a step, and looks at all that must be true after it.
    pub fn play(&mut self, number: usize, step: &Step) {
        self.count("steps");
        match *step {
            Step::Up(place) => self.up(place),
            Step::Both(slot) => self.both(slot),
            Step::Write(slot) => self.write(slot, number),
            Step::Down(place) => self.down(place),
            Step::Move(slot) => {
                if let Some(node) = self.home(slot) {
                    self.down((slot, node));
                    self.up((slot, 1 - node));
                }
            }
            Step::Kill(place, calls, call, ref plan) => self.kill(place, calls, call, plan),
            Step::Grow(place) => self.grow(place),
            Step::Make(place) => self.make(place),
            Step::Remove(place) => self.remove(place),
            Step::Swap(slots, node) => self.swap(slots, node),
            Step::LocksDie(node) => self.locks_die(node),
            Step::LocksStart(node) => self.locks_start(node),
            Step::CutPower(node) => self.cut_power(node),
        }
        self.look();
    }

    /// Why the volume may be refused there, and whether it must be.
    fn reasons(&self, (slot, node): Place) -> (Vec<&'static str>, bool) {
        let (here, other) = (self.at[slot][node], self.at[slot][1 - node]);
        let (mut reasons, mut must) = (Vec::new(), other == At::Up);
        if other != At::Gone {
            reasons.push("held-elsewhere");
        }
        if !self.locks[node] {
            reasons.push("no-locks");
            must |= here == At::Gone;
        }
        if let Some(lv) = &self.volumes[slot] {
            let other_kind = lv.encrypted.filter(|is| *is != self.encrypted[slot]);
            reasons.extend(other_kind.map(|is| if is { "encrypted" } else { "not-encrypted" }));
            must |= other_kind.is_some();
            if lv.killed && lv.pages.is_empty() {
                reasons.extend(UNFINISHED);
            }
        }
        (reasons, must)
    }

    pub fn up(&mut self, place @ (slot, node): Place) {
        loop {
            let reply = self.nodes[node].up(mode(slot), &self.volume(slot));
            if !self.came(place, &reply, &[]) {
                break;
            }
        }
    }

    /// Checks the answer to a pod's calls. Returns true if somebody has taken the reason of a refusal away.
    pub fn came(&mut self, place @ (slot, node): Place, reply: &Reply, also: &[&str]) -> bool {
        let (reasons, must) = self.reasons(place);
        if reply.status == "Success" {
            assert!(!must, "mounted, and not refused as {reasons:?}");
            self.is_up(place);
            return false;
        }
        if self.is_mended(place, reply) {
            return true;
        }
        let word = word(reply);
        println!("    refused: {}", reply.message);
        self.count(&format!("[{word}]"));
        let is_right = reasons.contains(&word) || also.contains(&word);
        assert!(is_right, "{reply:?}, and not {reasons:?}");
        match word {
            "encrypted" | "not-encrypted" => self.encrypted[slot] = word == "encrypted",
            _ if UNFINISHED.contains(&word) => self.give_up(slot, node),
            _ => return false,
        }
        true
    }

    pub fn is_up(&mut self, (slot, node): Place) {
        self.count("mounts");
        self.at[slot][node] = At::Up;
        let lv = self.volumes[slot].get_or_insert_with(Lv::new);
        lv.encrypted = Some(self.encrypted[slot]);
        lv.killed = false;
    }

    /// Does what the message says about the remains of a killed call. Returns false if it says nothing of them.
    pub fn is_mended(&mut self, (slot, node): Place, reply: &Reply) -> bool {
        const COMMANDS: [&str; 4] = [
            "dmsetup resume ",
            "dmsetup clear ",
            "dmsetup remove ",
            "lvmlockctl --drop ",
        ];
        let guest = self.nodes[node];
        let message = &reply.message;
        if message.contains("; the oldest was started ") {
            return true;
        }
        if word(reply) == "held-elsewhere" || !self.locks[node] {
            return false;
        }
        let command = COMMANDS.iter().find_map(|begins| reply.command(begins));
        if message.contains("says that nobody has used it yet") {
            self.give_up(slot, node);
        } else if let Some((_, part)) = message.split_once("prohibited while logical volume ") {
            guest.sh(&format!("lvchange -an {}", part.split(' ').next().unwrap()));
        } else if let Some(command) = command {
            guest.sh(command);
            if command.starts_with("lvmlockctl") {
                guest.join();
            }
        } else {
            return false;
        }
        println!("    mended: {message}");
        self.count("mended");
        true
    }

    /// An operator removes what a killed first mount has left.
    fn give_up(&mut self, slot: usize, node: usize) {
        let lv = self.volumes[slot].take().unwrap();
        assert!(lv.killed && lv.pages.is_empty(), "it holds {:?}", lv.pages);
        self.count("given up");
        self.nodes[node].sh(&format!("lvremove --yes vg/life{slot}"));
    }

    fn look(&self) {
        let looks = self.nodes.map(|node| node.sh(LOOK));
        for slot in 0..SLOTS {
            let volume = self.volume(slot);
            let (device, name) = (
                format!("device vg-life{slot}"),
                format!("/{} ", volume.name),
            );
            let is =
                |line: &str| line == device || line.starts_with("mount ") && line.contains(&name);
            let has = looks.each_ref().map(|look| look.lines().any(is));
            assert_ne!(has, [true; 2], "both nodes have {slot}: {looks:#?}");
            for node in 0..2 {
                let look = &looks[node];
                let of = |what: &str| {
                    let begins = format!("{what} {} ", pod_dir(mode(slot), &volume));
                    let lines = look.lines().filter_map(|line| line.strip_prefix(&begins));
                    lines.map(str::to_owned).collect::<Vec<_>>()
                };
                let mounts = of("mount");
                match self.at[slot][node] {
                    At::Gone => assert!(!has[node], "node {node} keeps {slot}: {look}"),
                    At::Up => assert!(
                        mounts.iter().any(|options| options.starts_with("rw")),
                        "{slot}: {look}"
                    ),
                    At::Perhaps => {}
                }
                if mounts.is_empty() {
                    continue;
                }
                let lv = self.volumes[slot].as_ref().unwrap();
                let pages = lv
                    .pages
                    .iter()
                    .map(|(page, words)| format!("{page} {words}"));
                let mut shown = of("page");
                shown.sort();
                assert_eq!(
                    shown,
                    pages.collect::<Vec<_>>(),
                    "the pages of {slot} on node {node}"
                );
                let size: u64 = of("size")[0].parse().unwrap();
                assert!(size >= lv.least, "{slot} has {size}, not {}", lv.least);
            }
        }
    }

    /// Nothing is in the way any more, and each volume comes up on each node.
    pub fn end(&mut self) {
        (0..2).for_each(|node| self.locks_start(node));
        for slot in 0..SLOTS {
            (0..2).for_each(|node| self.down((slot, node)));
            if self.volumes[slot].is_none() {
                continue;
            }
            for node in 0..2 {
                self.up((slot, node));
                assert_eq!(self.home(slot), Some(node), "slot {slot}");
                self.look();
                self.down((slot, node));
            }
            self.remove((slot, 0));
            assert!(self.volumes[slot].is_none(), "slot {slot} stays");
        }
        self.look();
    }
}

/// A second copy of the driver, whose tools can be killed: see stand-in.sh.
pub fn equip(node: &Guest) {
    node.sh(&format!(
        "mkdir -p /run/stand-ins && cd /run/stand-ins
        cat > stand-in <<'END'\n{}END\n
        chmod 755 stand-in && for tool in {TOOLS}; do ln -sf stand-in $tool; done
        for mode in attach mount-only; do
            mkdir -p /run/$mode/cut && cp -r /run/$mode/exec/* /run/$mode/cut/
            sed -i \"1i tool_dirs = ['/run/stand-ins', '/usr/sbin', '/usr/bin']\" /run/$mode/cut/*/config.toml
        done",
        include_str!("stand-in.sh")
    ));
}
