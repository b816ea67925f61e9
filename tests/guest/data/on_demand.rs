//! Volumes that the driver creates in the places of removed ones, at random: no such volume waits for an operator, and
//! no volume of a person that holds data is formatted.

use std::fs;
use std::path::PathBuf;

use super::contents::{CONTENTS, Content};
use crate::prelude::*;
use crate::support::sample::{Sample, say};

/// How many steps, and how many if the run is full.
const STEPS: [usize; 2] = [16, 100];

/// A type of volume: its name, what `lvcreate_options` of the config say, and lvcreate's own options of a person.
type Kind = (&'static str, &'static str, &'static str);

#[rustfmt::skip] // a row is a line
const KINDS: [Kind; 4] = [
    ("linear", "lvcreate_options = []", "-L SIZE demand"),
    ("striped", "lvcreate_options = ['--type', 'striped', '-i', '2']", "--type striped -i 2 -L SIZE demand"),
    ("raid1", "lvcreate_options = ['--type', 'raid1', '-m', '1']", "--type raid1 -m 1 -L SIZE demand"),
    ("thin", "thin_pool = 'pool'", "-V SIZE --thinpool demand/pool"),
];

/// Kills the driver once, before or after the tool that the plan names. `unwiped` is lvcreate that is killed before it
/// has wiped the new volume.
const KILLS: &str = r#"tool=${0##*/}
read -r victim when 2> /dev/null < $HERE/plan
[ "$victim" = $tool ] || exec $REAL "$@"
rm $HERE/plan
case $when in
after) $REAL "$@" ;;
unwiped) $REAL $(echo "$*" | sed "s/--wipesignatures y --zero y/--wipesignatures n --zero n/") ;;
esac
kill -KILL $PPID"#;

struct World {
    node: Node,
    tools: Tools,
    group: Group,
    sample: Sample,
    _disks: Vec<Disk>,
}

#[test]
fn volumes_made_filled_killed_and_removed_at_random_wait_for_nobody() {
    let (disks, group) = Disk::several("demand", 2, 1 << 30);
    sh("lvcreate -qq -y --type thin-pool -Zn -n pool -L 400m demand");
    let tools = [
        "lvcreate",
        "lvchange",
        "mkfs.ext4",
        "mkfs.xfs",
        "mkfs.btrfs",
        "mount",
    ];
    let tools = tools
        .iter()
        .fold(Tools::new(), |all, tool| all.put(tool, KILLS));
    let mut world = World {
        node: Node::new(Mode::MountOnly),
        tools,
        group,
        sample: Sample::new(),
        _disks: disks,
    };
    fs::create_dir_all("/run/demand").unwrap();
    let steps = STEPS[usize::from(world.sample.full)];
    for number in 0..steps {
        world.step(number);
        Group::wait_for_the_next_second();
    }
}

impl World {
    /// Makes one volume, uses and removes it.
    fn step(&mut self, number: usize) {
        let (kind, lines, options) = self.sample.one_of(&KINDS);
        let (fs, size) = self.sample.one_of(&FILESYSTEMS_OF_A_STEP);
        let mode = self.sample.one_of(&BOTH_MODES);
        let lines = format!(
            "{}[volume_group.demand]\ncreate = true\n{lines}",
            self.tools.config()
        );
        self.node.configure(mode, &lines);
        let volume = Volume::of("demand", "data").fs(fs).with("size", size);
        // The first steps have one volume of each.
        let what = if number < 4 {
            number
        } else {
            self.sample.below(4)
        };
        let names = [
            "the driver's",
            "killed",
            "a person's",
            "a person's blank one",
        ];
        say(&format!(
            "{number}: {}, {kind}, {fs}, {mode:?}",
            names[what]
        ));
        match what {
            0 => self.is_made(&volume, fs),
            1 => self.is_killed(&volume, fs),
            _ => {
                let options = options.replace("SIZE", size);
                sh(&format!("lvcreate -qq -y -Wy -n data {options}"));
                if what == 2 {
                    self.is_kept(&volume, size);
                } else {
                    self.is_allowed(&volume);
                }
            }
        }
        self.is_wrecked(size);
        self.group.lv("lvremove", &[], "data");
    }

    /// The driver makes the volume and its filesystem, and finds both again.
    fn is_made(&self, volume: &Volume, fs: &str) {
        let dir = self.node.up("first", volume);
        self.group.assert_recorded("data", fs);
        write_synced(&dir.join("page"), "kept");
        self.node.all_down(&["first"], volume);
        let dir = self.node.up("second", volume);
        assert_eq!(read(&dir.join("page")), "kept");
        self.node.all_down(&["second"], volume);
    }

    /// The driver is killed while it makes the volume. Then it makes the volume, or an operator removes what was begun.
    fn is_killed(&mut self, volume: &Volume, fs: &str) {
        let mkfs = format!("mkfs.{fs}");
        let victim = self
            .sample
            .one_of(&["lvcreate", "lvchange", &*mkfs, "mount"]);
        let moments: &[&str] = match victim {
            "lvcreate" => &["before", "after", "unwiped"],
            _ => &["before", "after"],
        };
        let when = self.sample.one_of(moments);
        say(&format!("killed {when} {victim}"));
        let global = precreated(self.node.global_dir(volume));
        let (json, device) = (volume.json(), volume.device());
        let plan = || fs::write(self.tools.file("plan"), format!("{victim} {when}\n")).unwrap();
        if self.node.mode == Mode::MountOnly {
            plan();
            self.node.start_mount("first", volume).dies();
        } else if victim == "lvcreate" {
            plan();
            self.node.start(&["attach", &json, &host_name()]).dies();
        } else {
            self.node.does(&["attach", &json, &host_name()]);
            plan();
            self.node
                .start(&["mountdevice", text(&global), &device, &json])
                .dies();
        }
        if self.waits_as_begun(volume) {
            self.group.lv("lvremove", &[], "data");
        }
        self.is_made(volume, fs);
    }

    /// Whether the volume waits for `lvremove`, since the call that made it was killed before the volume was clean.
    fn waits_as_begun(&self, volume: &Volume) -> bool {
        if !self.group.has("data") || self.group.tags("data") != "flexvolume.new" {
            return false;
        }
        self.group.lv("lvchange", &["-ay"], "data");
        let (verdicts, _) = self.node.json(&["check", "demand/data"]);
        let verdict = &verdicts["volumes"][0];
        if verdict["verdict"] == "format" {
            return false;
        }
        say(&format!("waits: {}", verdict["message"]));
        self.node.refuses_mount(volume, &["`lvremove demand/data`"]);
        true
    }

    /// What a person puts on a volume is mounted as it is, or refused and left alone.
    fn is_kept(&mut self, volume: &Volume, size: &str) {
        let (content, lost) = self.put(size);
        let before = (uuid(volume), sum(volume));
        let (reply, dir) = self.first_mount(volume);
        let what = format!("{content} without {lost} bytes: {reply:?}");
        say(&what);
        if reply.status == "Success" {
            assert!(mount_at(&dir).is_some(), "{what}");
            assert_eq!(uuid(volume), before.0, "{what}");
            assert!(!before.0.is_empty(), "{what}");
            self.node.visit(volume);
            self.node.down_globally(volume);
        } else {
            assert_eq!((uuid(volume), sum(volume)), before, "{reply:?}");
        }
    }

    /// The first call that reads the volume, and the directory where the call mounts it.
    fn first_mount(&self, volume: &Volume) -> (Reply, PathBuf) {
        let (json, device) = (volume.json(), volume.device());
        if self.node.mode == Mode::MountOnly {
            let dir = self.node.pod_dir("pod", volume);
            return (self.node.mount("pod", volume), dir);
        }
        self.node.does(&["attach", &json, &host_name()]);
        let dir = precreated(self.node.global_dir(volume));
        (
            self.node.call(&["mountdevice", text(&dir), &device, &json]),
            dir,
        )
    }

    /// Puts a content on the volume, or what is left of it without its first bytes. Returns its name, and how many
    /// bytes are lost.
    fn put(&mut self, size: &str) -> (&'static str, u64) {
        let fits = |one: &&Content| format!("{}m", one.size() / MIB) == size;
        let all: Vec<_> = CONTENTS.iter().filter(fits).collect();
        let content = self.sample.one_of(&all);
        let losses = [0, 512, 4 * KIB, 64 * KIB, MIB];
        let is_left = |lost: &u64| content.has_head_without(*lost);
        let losses: Vec<_> = losses.into_iter().filter(is_left).collect();
        let lost = self.sample.one_of(&losses);
        let file = "/run/demand/content";
        content.make(file);
        if lost > 0 {
            put(file, 0, &vec![0; usize::try_from(lost).unwrap()]);
        }
        let device = device("demand", "data");
        bash(&format!(
            "dd if={file} of={device} bs=64K conv=sparse,notrunc,fsync status=none"
        ));
        (content.name, lost)
    }

    /// A person's blank volume is formatted, at the latest after one word of the person's.
    fn is_allowed(&self, volume: &Volume) {
        let (reply, _) = self.first_mount(volume);
        if reply.status != "Success" {
            say(&format!("waits: {}", reply.message));
            reply.is_failure(&["allow-format demand/data"]);
            self.node
                .prints(&["allow-format", "demand/data", "--yes"], "", 0);
        }
        self.node.visit(volume);
        self.node.down_globally(volume);
    }

    /// Leaves signs of data in all of the places that the volume has.
    fn is_wrecked(&mut self, size: &str) {
        self.group.lv("lvchange", &["-ay"], "data");
        for _ in 0..self.sample.below(3) {
            self.put(size);
        }
    }
}

const FILESYSTEMS_OF_A_STEP: [(&str, &str); 4] = [
    ("ext4", "64m"),
    ("ext4", "64m"),
    ("xfs", "320m"),
    ("btrfs", "128m"),
];

/// The UUID of the filesystem that blkid sees on the volume; empty if it sees none.
fn uuid(volume: &Volume) -> String {
    bash(&format!(
        "blkid -p -o value -s UUID {} || [ $? = 2 ]",
        volume.device()
    ))
}

fn sum(volume: &Volume) -> String {
    sh(&format!("sha1sum {}", volume.device()))
}
