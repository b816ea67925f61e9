//! The power goes while pods write, and calls are under way, each of them stopped at another step. This takes two
//! boots on the same disk: the first ends by cutting the power, the second repeats the calls, as
//! kubelet would. What comes first by its name runs first: a stopped LVM command would keep it waiting.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::scenes::{Scene, Stage, assert_clean, scenes};
use super::steps::{Cut, Step, Steps, Victim};
use super::{Sample, name_of, say};
use crate::prelude::*;

/// How many different calls are under way, if not all, and at how many steps each.
const SAMPLE: (usize, usize) = (2, 3);
/// Each volume group has a part of the disk for itself, since a stopped LVM command holds its group's lock.
const PART: usize = 768 << 20;

/// The first part has the group of the pods that write.
const PODS: &str = "writing";

/// The disk that outlives the power-off.
fn disk() -> String {
    std::env::var("FLEXVOLUME_LVM_POWER_DISK").unwrap()
}

/// A file that tells the second boot what to look for.
fn kept(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("FLEXVOLUME_LVM_BOOT_AGAIN").unwrap()).with_extension(name)
}

fn manifest() -> PathBuf {
    kept("cut")
}

/// The device of the part of the disk with this number.
fn part(number: usize) -> String {
    let name = format!("part{number}");
    let (start, sectors) = ((number * PART + (1 << 20)) / 512, PART / 512);
    let table = format!("0 {sectors} linear {} {start}", disk());
    run("dmsetup", &["create", &name, "--table", &table]);
    format!("/dev/mapper/{name}")
}

/// Ten pods, each with its filesystem and its mode.
fn pods() -> impl Iterator<Item = (String, &'static (&'static str, &'static str), Mode)> {
    // The disk is too small for two of the others.
    let [ext4, others @ ..] = &FILESYSTEMS;
    let all = others.iter().chain([ext4; 8]).enumerate();
    all.map(|(n, fs)| (format!("pod{n}"), fs, BOTH_MODES[n % 2]))
}

/// Appends numbers to a file in the volume for ever, and notes each in another file once it is on the disk.
fn writer(dir: &Path, noted: &Path) -> Process {
    let noted = text(noted);
    let line = format!(
        "n=0; while n=$((n + 1)); do echo $n >> numbers; sync numbers; echo $n >> {noted}
        echo unsynced > file$n; rm -f file$((n - 9)); sleep 1; done"
    );
    Process::new(&line, dir)
}

#[test]
fn when_the_power_goes_all_pods_write() {
    let group = Group::on(PODS, &[&part(0)]);
    for (pod, (fs, size), mode) in pods() {
        let volume = group.linear(&pod, size).fs(fs);
        let dir = Node::new(mode).up(&pod, &volume);
        std::mem::forget(writer(&dir, &kept(&pod)));
    }
    std::mem::forget(group);
    for (pod, ..) in pods() {
        eventually("what is synced", || {
            fs::read_to_string(kept(&pod)).is_ok_and(|noted| noted.contains('\n'))
        });
    }
}

#[test]
fn after_the_reboot_all_pods_come_up_at_once_with_what_was_synced() {
    part(0);
    let group = found(PODS);
    let nodes = BOTH_MODES.map(Node::new);
    std::thread::scope(|scope| {
        for (pod, (fs, _), mode) in pods() {
            let node = nodes.iter().find(|node| node.mode == mode).unwrap();
            let volume = Volume::new(&group, &pod).fs(fs);
            scope.spawn(move || {
                let numbers = read(&node.up(&pod, &volume).join("numbers"));
                // The last line may be cut off.
                let noted = read(&kept(&pod));
                let synced = &noted[..=noted.rfind('\n').unwrap()];
                assert!(numbers.starts_with(synced), "{pod}: {numbers:?} {synced:?}");
                node.down(&pod, &volume);
                node.down_globally(&volume);
                assert_clean(fs, &volume.device());
            });
        }
    });
}

/// The group of the boot before.
fn found(name: &str) -> Group {
    let group = Group::found(name);
    eventually("LVM sees the group", || {
        run("vgs", &["--noheadings", "-o", "vg_name"]).contains(&group.name)
    });
    group
}

/// The one volume of a group. kubelet's directories are named after it.
fn lv_of(group: &Group) -> String {
    format!("of-{}", group.name)
}

/// Some steps of some calls; of all calls with `--full`, or of those that are named.
fn choose() -> Vec<(Scene, Step)> {
    let mut sample = Sample::new();
    let mut scenes = scenes();
    scenes.retain(|scene| !scene.unmounts());
    let scenes = sample.scenes(scenes, SAMPLE.0).into_iter();
    let mut steps_of = |scene| {
        let all = find(scene);
        [(); SAMPLE.1].map(|()| (scene, sample.one_of(&all)))
    };
    scenes.flat_map(&mut steps_of).collect()
}

#[test]
fn when_the_power_goes_calls_are_under_way() {
    let chosen = choose();
    // A stopped LVM command holds dmeventd's pipe, too.
    let local = "activation {\n monitoring = 0\n}\n";
    fs::write("/etc/lvm/lvmlocal.conf", local).unwrap();
    // All groups first: a stopped LVM command does not let new ones be made.
    let groups: Vec<Group> = (1..=chosen.len())
        .map(|number| Group::on(&format!("cut{number}"), &[&part(number)]))
        .collect();
    let mut lines = String::new();
    let mut failures = Vec::new();
    let mut reached = 0;
    for ((scene, step), group) in chosen.into_iter().zip(groups) {
        match catch_unwind(AssertUnwindSafe(|| cut(scene, &step, &group))) {
            Ok((line, stopped)) => {
                lines += &line;
                reached += usize::from(stopped);
            }
            Err(_) => failures.push(format!("{}: {step}", name_of(scene))),
        }
        // It stays as it is until the power goes.
        std::mem::forget(group);
    }
    fs::write(manifest(), lines).unwrap();
    say(&format!("{reached} calls are under way"));
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Begins a call and stops it at this step. Returns what the second boot must know of it, and
/// whether it came to the step.
fn cut(scene: Scene, step: &Step, group: &Group) -> (String, bool) {
    let name = name_of(scene);
    let steps = Steps::new(&name);
    let node = scene.node(&Steps::dir_of(&name), &group.name);
    let mut stage = scene.stage(&node, &group.name, &lv_of(group));
    scene.prepare(&node, group, &stage);
    let cut = steps.cut(&node, &stage.args, step, Victim::Nobody);
    if let Cut::Missed(reply) = &cut {
        reply.is_success();
    }
    let reached = matches!(cut, Cut::Killed);
    println!("{name}: {step}, {}, reached: {reached}", group.name);
    steps.plan("none");
    let uuid = stage.write_if_mounted().unwrap_or_default();
    let page = if stage.has_page { "page" } else { "none" };
    let line = format!("{} {name} {page} {uuid} {step}\n", group.name);
    (line, reached)
}

/// The steps of a call, found on another group: each of the disk's is for one volume.
fn find(scene: Scene) -> Vec<Step> {
    let name = name_of(scene);
    let steps = Steps::new(&name);
    let scratch = Group::new(&format!("of{name}"));
    let node = scene.node(&Steps::dir_of(&name), &scratch.name);
    let mut found = 0;
    // With the encrypted one open, a command of LVM that is stopped while it has a volume suspended would keep all
    // others waiting, the test's own too.
    let mut all = steps.find(&node, !scene.is_encrypted(), || {
        found += 1;
        let stage = scene.stage(&node, &scratch.name, &format!("lv{found}"));
        scene.prepare(&node, &scratch, &stage);
        stage.args
    });
    all.retain(|step| !matches!(step, Step::OwnBefore(..)));
    all
}

#[test]
fn after_the_reboot_calls_that_the_power_cut_short_succeed() {
    let text = fs::read_to_string(manifest()).unwrap();
    let mut failures = Vec::new();
    for line in text.lines() {
        let done = catch_unwind(|| repeat(line));
        if done.is_err() {
            failures.push(line);
        }
    }
    let count = text.lines().count();
    say(&format!("the power went at {count} steps of calls"));
    assert!(failures.is_empty(), "{failures:#?}");
    assert_ne!(text, "");
}

fn repeat(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let number = words[0].trim_start_matches("cut").parse().unwrap();
    let mut scenes = scenes().into_iter();
    let scene = scenes.find(|scene| name_of(*scene) == words[1]).unwrap();
    part(number);
    let group = found(words[0]);
    let lv = lv_of(&group);
    Steps::new(words[1]);
    let node = scene.node(&Steps::dir_of(words[1]), &group.name);
    let stage = Stage {
        has_page: words[2] == "page",
        ..scene.stage(&node, &group.name, &lv)
    };
    scene.prepare_again(&node, &stage);
    scene.repeat(&node, &group, &stage);
    let uuid = Some(words[3]).filter(|uuid| !uuid.is_empty());
    scene.check(&node, &group, &stage, uuid);
}
