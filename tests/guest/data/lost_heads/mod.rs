//! What is formatted of volumes whose first bytes are lost: a table, which docs/developers/lost-heads.md shows.

mod kinds;

use std::collections::BTreeMap;
use std::fmt::Write;

use self::kinds::{KINDS, Kind, fill};
use crate::data::contents::{CONTENTS, Content};
use crate::data::foreign::bytes;
use crate::prelude::*;
use crate::support::sample::{Sample, say};

/// The first bytes that are lost, one loss after the other.
const LOSSES: [(u64, &str); 4] = [
    (512, "512 bytes"),
    (4 * KIB, "4 KiB"),
    (64 * KIB, "64 KiB"),
    (MIB, "1 MiB"),
];

/// What is tried on each kind of volume: all have a copy of their head that the losses spare.
const ON_EACH_KIND: [&str; 5] = ["ext4", "xfs", "btrfs", "GPT and an ext4", "NTFS"];

/// How many contents are on volumes of one kind at the same time. The disks are in memory, and a volume that becomes a
/// raid1 is copied whole: all contents at once would fill the memory.
const AT_ONCE: usize = ON_EACH_KIND.len();

/// How many volumes of each kind are mounted, and not only checked.
const MOUNTED: usize = 1;

const PAGE: &str = include_str!("../../../../docs/developers/lost-heads.md");

/// A volume, its content, and what the next mount does after each loss.
struct Trial {
    lv: String,
    kind: &'static str,
    content: &'static Content,
    verdicts: Vec<String>,
}

#[test]
fn no_volume_that_lost_its_head_is_formatted_while_a_copy_of_it_is_left() {
    let node = Node::new(Mode::MountOnly);
    let (_disks, group) = Disk::several("heads", 2, 60 << 30);
    let mut sample = Sample::new();
    let mut plain = plain(&group);
    let mut wrong = lose(&node, &group, &mut plain, &mut sample);
    let table = table(&plain);
    println!("{table}");
    Group::wait_for_the_next_second();
    for kind in KINDS {
        for contents in contents(sample.full).chunks(AT_ONCE) {
            say(&format!("{} with {}", kind.name, contents[0].name));
            let mut trials = on(kind, &group, contents);
            wrong.extend(lose(&node, &group, &mut trials, &mut sample));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(PAGE.contains(&table), "the page has another table");
}

/// Takes the heads of these volumes away, one loss after the other. Returns what is formatted though a head is there.
/// No volume is left, nor its space.
fn lose(node: &Node, group: &Group, trials: &mut [Trial], sample: &mut Sample) -> Vec<String> {
    judge(node, group, trials);
    for (lost, _) in LOSSES {
        for trial in &*trials {
            let device = device(&group.name, &trial.lv);
            let length = usize::try_from(lost).unwrap();
            put(&device, 0, &vec![0; length]);
        }
        judge(node, group, trials);
    }
    let numbers: Vec<_> = (0..trials.len()).collect();
    for number in sample.of(numbers, MOUNTED) {
        is_mounted_as_checked(node, &trials[number]);
    }
    let away = "lvremove -qq -y --config devices/issue_discards=1";
    sh(&format!("{away} {}", group.name));
    trials.iter().flat_map(Trial::wrong).collect()
}

/// A volume for each content, on which the content is then made.
fn plain(group: &Group) -> Vec<Trial> {
    let trial = |(number, content): (usize, &'static Content)| {
        let lv = format!("plain{number}");
        let size = format!("{}b", content.size());
        group.linear(&lv, &size);
        Trial {
            lv,
            kind: "plain",
            content,
            verdicts: Vec::new(),
        }
    };
    let trials: Vec<_> = CONTENTS.iter().enumerate().map(trial).collect();
    Group::wait_for_the_next_second();
    std::fs::create_dir_all("/run/heads").unwrap();
    for trial in &trials {
        let file = file_of(trial.content);
        trial.content.make(&file);
        fill(group, &trial.lv, &file);
    }
    trials
}

fn file_of(content: &Content) -> String {
    format!("/run/heads/{}", content.name)
}

/// Some contents, or all.
fn contents(all: bool) -> Vec<&'static Content> {
    let is_tried = |one: &&Content| all || ON_EACH_KIND.contains(&one.name);
    CONTENTS.iter().filter(is_tried).collect()
}

/// Contents on volumes of this kind: all of them are older than their volume.
fn on(kind: &Kind, group: &Group, contents: &[&'static Content]) -> Vec<Trial> {
    sh(&format!(
        "lvcreate -qq -y --type thin-pool -Zn -n pool -L 8g {}",
        group.name
    ));
    let trial = |(number, &content): (usize, &&'static Content)| {
        let lv = format!("on-{}-{number}", kind.name);
        kind.make(group, &lv, content, &file_of(content));
        Trial {
            lv,
            kind: kind.name,
            content,
            verdicts: Vec::new(),
        }
    };
    contents.iter().enumerate().map(trial).collect()
}

/// Asks what the next mount of each volume does.
fn judge(node: &Node, group: &Group, trials: &mut [Trial]) {
    let names: Vec<_> = trials.iter().map(|trial| group.path(&trial.lv)).collect();
    let names = names.iter().map(String::as_str);
    let args: Vec<_> = ["check"].into_iter().chain(names).collect();
    let (said, _) = node.json(&args);
    let verdicts = said["volumes"].as_array().unwrap();
    let verdicts: BTreeMap<_, _> = verdicts
        .iter()
        .map(|one| {
            (
                one["volume"].as_str().unwrap(),
                one["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    for trial in trials {
        let verdict = verdicts[&*group.path(&trial.lv)].to_owned();
        trial.verdicts.push(verdict);
    }
}

impl Trial {
    /// What is formatted though a head is there.
    fn wrong(&self) -> Vec<String> {
        let losses = [(0, "nothing")].into_iter().chain(LOSSES);
        let wrong = self
            .verdicts
            .iter()
            .zip(losses)
            .filter(|(verdict, (lost, _))| match verdict.as_str() {
                "format" => {
                    self.content.has_head_without(*lost) || is_data_at_the_ends(self.content, *lost)
                }
                "mount" | "repair" | "refuse" => false,
                _ => true,
            });
        let words = |(verdict, (_, lost)): (&String, (u64, &str))| {
            format!(
                "{} on {} without {lost}: {verdict}",
                self.content.name, self.kind
            )
        };
        wrong.map(words).collect()
    }
}

/// Whether a byte is left in the first or the last 8 MiB of a content that lost its first bytes.
fn is_data_at_the_ends(content: &Content, lost: u64) -> bool {
    const END: u64 = 8 * MIB;
    let ends = [(lost, END - lost), (content.size() - END, END)];
    let file = file_of(content);
    let ends = ends.map(|(at, length)| bytes(&file, at, usize::try_from(length).unwrap()));
    ends.iter().flatten().any(|byte| *byte != 0)
}

/// The rows of the plain volumes, as the page has them.
fn table(trials: &[Trial]) -> String {
    let mut table = String::from("| content |");
    for (_, lost) in LOSSES {
        write!(table, " {lost} |").unwrap();
    }
    table.push_str(" copies of its head beyond 1 MiB |\n|---|---|---|---|---|---|\n");
    for trial in trials {
        write!(table, "| {} |", trial.content.name).unwrap();
        for verdict in &trial.verdicts[1..] {
            let word = if verdict == "format" {
                "**formatted**"
            } else {
                "kept"
            };
            write!(table, " {word} |").unwrap();
        }
        writeln!(table, " {} |", trial.content.copies()).unwrap();
    }
    table
}

/// `mount` does what `check` said last.
fn is_mounted_as_checked(node: &Node, trial: &Trial) {
    let volume = Volume::of("heads", &trial.lv);
    let last = trial.verdicts.last().unwrap();
    println!("{}: {last}", trial.lv);
    if last == "format" {
        node.visit(&volume);
    } else {
        node.refuses_mount(&volume, &[&*format!("heads/{}", trial.lv)]);
    }
}
