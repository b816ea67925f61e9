//! The power fails at any write of a volume's life. Data that a pod has synced is still there, and is never formatted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use super::{Sample, say};
use crate::crypt::with_key;
use crate::lab::recorder::{Cut, Record, Recorder};
use crate::prelude::*;
use crate::refusals::agreed::agreed;

/// Power cuts of each life in a sample.
const MOST: usize = 12;

/// What is synced at the mark `synced`.
const PAGE: &str = "a page that was synced";

/// How many cuts ended in which way: mounted, or refused with this word.
type Ends = BTreeMap<String, usize>;

/// A pod's volume, blank or encrypted, on a disk that records.
struct Life<'a> {
    name: &'a str,
    node: Node,
    volume: Volume,
    /// As lvcreate takes it.
    size: &'a str,
    made: Made,
    /// Which of the group's two disks records, if it has two.
    recorded: Option<Holds>,
}

/// What is there before the life begins.
#[derive(Clone, Copy, PartialEq)]
enum Made {
    Volume,
    /// The driver creates the volume.
    Nothing,
    /// The driver creates the volume in this pool.
    Pool,
}

/// What a disk of two holds. The other one has all that was written to it, whatever this one lacks.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Data,
    Metadata,
}

impl Life<'_> {
    /// Records what `lives` does, and cuts the power at its writes.
    fn at_every_cut(&self, lives: impl Fn(&Node, &Volume, &Recorder)) {
        let name = self.name;
        let mut sample = Sample::new();
        let other =
            (self.recorded.is_some()).then(|| Disk::new(&format!("{name}-other"), 256 << 20));
        let record = self.record(other.as_ref(), lives);
        let kept = format!("/run/{name}.kept");
        let backup = format!("/etc/lvm/backup/{name}");
        let of_this_life = fs::read(&backup).unwrap();
        if let Some(other) = &other {
            run("cp", &["--sparse=always", &other.path(), &kept]);
        }
        let ends = RefCell::new(Ends::new());
        let most = if sample.full { usize::MAX } else { MOST };
        let count = record.each_cut("made", most, &mut sample, |cut| {
            if let Some(other) = &other {
                sh(&format!(
                    "dd if={kept} of={} bs=1M oflag=direct status=none",
                    other.path()
                ));
            }
            // After an earlier cut, a mount may have put other tags there: those of a life that went on otherwise.
            fs::write(&backup, &of_this_life).unwrap();
            let end = after(self, cut);
            *ends.borrow_mut().entry(end).or_default() += 1;
        });
        let (writes, ends) = (record.len(), ends.borrow());
        say(&format!(
            "{name}: {count} power cuts at {writes} writes: {ends:?}"
        ));
        let _ = fs::remove_file(kept);
    }

    fn record(&self, other: Option<&Disk>, lives: impl Fn(&Node, &Volume, &Recorder)) -> Record {
        let (name, size) = (self.name, self.size);
        let megabytes: u64 = size.trim_end_matches('m').parse().unwrap();
        let recorder = Recorder::new(name, (megabytes * 2 + 64) << 20);
        let path = recorder.path();
        let mut data = path.clone();
        let group = match (self.recorded, other) {
            (Some(holds), Some(other)) => {
                let other = other.path();
                let mut metadata = other.clone();
                if holds == Holds::Metadata {
                    (data, metadata) = (other, path.clone());
                }
                run("pvcreate", &["-qq", "--metadatacopies", "0", &data]);
                Group::on(name, &[&data, &metadata])
            }
            _ => Group::on(name, &[&path]),
        };
        match self.made {
            Made::Volume => sh(&format!(
                "lvcreate -qq -y -W y -n data -L {size} {name} {data}"
            )),
            Made::Pool => sh(&format!(
                "lvcreate -qq -y --type thin-pool -Z n -n pool -L {size} {name}"
            )),
            Made::Nothing => String::new(),
        };
        // LVM has the disk keep nothing.
        run("sync", &[&path]);
        recorder.mark("made");
        lives(&self.node, &self.volume, &recorder);
        group.deactivate();
        recorder.end()
    }
}

/// A pod comes after the power cut. Returns "mounted", or the word of the refusal.
fn after(life: &Life, cut: &Cut) -> String {
    let Life { node, volume, .. } = life;
    let group = Group::found(volume.vg());
    // The other disk has what was synced, however early this one's power was cut.
    let is_synced =
        cut.marks.iter().any(|mark| mark == "synced") || life.recorded == Some(Holds::Metadata);
    let reply = node.mount("pod", volume);
    let mut end = "mounted".to_owned();
    if reply.status != "Success" {
        say(&format!("{}: {}", cut.name, reply.message));
        end = word_of(&reply);
        let again = node.mount("pod", volume);
        assert_eq!(word_of(&again), end, "{}: the same call again", cut.name);
        // No look has the words of a step. What a pod asks for, `check` does not know.
        let of_steps = [
            "mount",
            "fsck",
            "activation",
            "unlock",
            "luks-format",
            "mkfs",
        ];
        let asks = volume.json().contains("encryption");
        if !of_steps.contains(&&*end) && end != "no-group" && !asks {
            let words = again.message.trim_end_matches(&format!(" [{end}]"));
            agreed(node, volume, &group, &end, words);
        }
        if !is_synced {
            // Nothing was lost: the message has the words by which it is made anew.
            group.deactivate();
            return end;
        }
        assert_eq!(end, "no-group", "{}", cut.name);
        restore_metadata(volume.vg(), &cut.disk);
        let revived = node.mount("pod", volume);
        assert_eq!(revived.status, "Success", "{}: {revived:?}", cut.name);
    }
    if is_synced {
        let page = fs::read_to_string(node.pod_dir("pod", volume).join("page"));
        assert_eq!(page.ok().as_deref(), Some(PAGE), "{}", cut.name);
    }
    node.down("pod", volume);
    group.deactivate();
    end
}

/// Brings a group back whose metadata a power cut left unfinished, as docs/on-call.md has an operator do.
fn restore_metadata(vg: &str, disk: &str) {
    let file = format!("/etc/lvm/backup/{vg}");
    let repair = ["--yes", "--repairtype", "metadata", "--file", &file, disk];
    run("pvck", &repair);
}

/// The word at the end of a refusal, or the beginning of another failure.
fn word_of(reply: &Reply) -> String {
    let message = &reply.message;
    let word = message
        .strip_suffix(']')
        .and_then(|message| message.rsplit_once('['));
    match word {
        Some((_, word)) => word.to_owned(),
        None => message.split(' ').next().unwrap_or_default().to_owned(),
    }
}

/// A pod writes a page, and goes.
fn writes(node: &Node, volume: &Volume, recorder: &Recorder) {
    write_synced(&node.up("pod", volume).join("page"), PAGE);
    recorder.mark("synced");
    node.down("pod", volume);
}

/// A pod writes a page, and another one when its volume has grown.
fn grows(node: &Node, volume: &Volume, recorder: &Recorder) {
    let dir = node.up("pod", volume);
    write_synced(&dir.join("page"), PAGE);
    recorder.mark("synced");
    let grown = node.grow("pod", volume, 64 * MIB);
    assert_eq!(grown.status, "Success", "{grown:?}");
    write_synced(&dir.join("later"), PAGE);
    node.down("pod", volume);
}

#[test]
fn at_any_write_of_a_first_mount_the_power_may_go() {
    for (fs, size) in FILESYSTEMS {
        let name = &format!("cut-{fs}");
        let life = Life {
            name,
            node: Node::new(Mode::MountOnly),
            volume: Volume::of(name, "data").fs(fs),
            size,
            made: Made::Volume,
            recorded: None,
        };
        life.at_every_cut(writes);
    }
}

#[test]
fn at_any_write_of_an_encrypted_volume_the_power_may_go() {
    let life = Life {
        name: "cut-luks",
        node: with_key(Mode::MountOnly, "cut-luks"),
        volume: Volume::of("cut-luks", "data").encrypted(),
        size: "64m",
        made: Made::Volume,
        recorded: None,
    };
    life.at_every_cut(writes);
}

#[test]
fn at_any_write_of_a_creation_the_power_may_go() {
    for (name, made) in [("cut-created", Made::Nothing), ("cut-thin", Made::Pool)] {
        let lines = format!("[volume_group.{name}]\ncreate = true\n");
        let mut volume = Volume::of(name, "data").with("size", "64m");
        if made == Made::Pool {
            volume = volume.with("thinpool", "pool");
        }
        let life = Life {
            name,
            node: Node::with_config(Mode::MountOnly, &lines),
            volume,
            size: "96m",
            made,
            recorded: None,
        };
        life.at_every_cut(writes);
    }
}

#[test]
fn at_any_write_of_a_volume_that_is_deactivated_the_power_may_go() {
    let life = Life {
        name: "cut-idle",
        node: Node::with_config(Mode::MountOnly, "deactivate = true"),
        volume: Volume::of("cut-idle", "data"),
        size: "32m",
        made: Made::Volume,
        recorded: None,
    };
    life.at_every_cut(|node, volume, recorder| {
        writes(node, volume, recorder);
        node.finds(volume, PAGE);
    });
}

/// LVM's metadata and the data have no common order then.
#[test]
fn of_two_disks_the_power_of_either_may_go() {
    for (name, holds) in [("cut-data", Holds::Data), ("cut-metadata", Holds::Metadata)] {
        let life = Life {
            name,
            node: Node::new(Mode::MountOnly),
            volume: Volume::of(name, "data"),
            size: "32m",
            made: Made::Volume,
            recorded: Some(holds),
        };
        life.at_every_cut(writes);
    }
}

#[test]
fn at_any_write_of_a_growth_the_power_may_go() {
    let life = Life {
        name: "cut-growth",
        node: Node::new(Mode::MountOnly),
        volume: Volume::of("cut-growth", "data"),
        size: "32m",
        made: Made::Volume,
        recorded: None,
    };
    life.at_every_cut(grows);
}

#[test]
fn metadata_of_lvm_that_a_power_cut_left_unfinished_comes_back_from_its_backup() {
    /// Where the header of the metadata has the place of the text, counted from the header. Source: lvm2
    /// `lib/format_text/layout.h`, `mda_header`.
    const HEADER: u64 = 4096;
    const PLACE: u64 = 40;
    let (disk, _group, volume) = Disk::with_data("unfinished-text", "ext4", 32);
    let node = Node::new(Mode::MountOnly);
    node.write("pod", &volume, PAGE);
    sh("lvchange -an unfinished-text/data");
    let file = File::options()
        .read(true)
        .write(true)
        .open(disk.path())
        .unwrap();
    let mut place = [0; 8];
    file.read_exact_at(&mut place, HEADER + PLACE).unwrap();
    file.write_all_at(&[0; 512], HEADER + u64::from_le_bytes(place))
        .unwrap();
    file.sync_all().unwrap();
    node.refuses_mount(&volume, &["[no-group]"]);
    restore_metadata(volume.vg(), &disk.path());
    node.finds(&volume, PAGE);
}
