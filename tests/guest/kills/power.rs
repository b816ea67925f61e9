//! The power goes while calls are under way, each of them stopped at another step. This takes two
//! boots on the same disk: the first ends by cutting the power, the second repeats the calls, as
//! kubelet would.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::scenes::{Call, SCENES, Scene, Stage};
use super::steps::{Cut, Step, Steps, Victim, wait_until};
use super::{Sample, name_of, say};
use crate::group::Group;
use crate::run;

/// How many different calls are under way in a sample, and how many of each.
const SAMPLE: (usize, usize) = (2, 3);
/// Of the disk each volume group gets its own part: a stopped LVM command holds the group's lock.
const PART: usize = 520 << 20;

/// The disk that outlives the power-off, and the file that tells the second boot what to look for.
fn disk() -> String {
    std::env::var("FLEXVOLUME_LVM_POWER_DISK").unwrap()
}

fn manifest() -> PathBuf {
    PathBuf::from(std::env::var_os("FLEXVOLUME_LVM_BOOT_AGAIN").unwrap()).with_extension("cut")
}

/// The device of the part of the disk with this number.
fn part(number: usize) -> String {
    let name = format!("part{number}");
    let (start, sectors) = ((number * PART + (1 << 20)) / 512, PART / 512);
    let table = format!("0 {sectors} linear {} {start}", disk());
    run("dmsetup", &["create", &name, "--table", &table]);
    format!("/dev/mapper/{name}")
}

/// kubelet does not make the unmounts again after a reboot; and a part of the disk has no room for
/// a thin pool, or for RAID.
fn is_repeated(scene: &Scene) -> bool {
    !matches!(
        scene.call,
        Call::Unmount | Call::UnmountDevice | Call::MountCreatingThin | Call::MountCreatingRaid
    )
}

/// The one volume of a group. kubelet's directories are named after it.
fn lv_of(group: &Group) -> String {
    format!("of-{}", group.name)
}

#[test]
fn when_the_power_goes_calls_are_under_way() {
    let mut sample = Sample::new();
    let scenes: Vec<Scene> = SCENES.into_iter().filter(is_repeated).collect();
    let scenes = sample.of(scenes, SAMPLE.0);
    // All groups first: a stopped LVM command does not let new ones be made.
    let groups = 0..scenes.len() * SAMPLE.1;
    let groups: Vec<Group> = groups
        .map(|number| Group::on(&format!("cut{number}"), &[&part(number)]))
        .collect();
    let mut groups = groups.into_iter();
    let mut lines = String::new();
    for scene in scenes {
        let name = name_of(scene);
        let steps = Steps::new(&name);
        let all = find(scene, &steps);
        for _ in 0..SAMPLE.1 {
            let step = sample.one_of(&all);
            let group = groups.next().unwrap();
            let node = scene.node(&Steps::dir_of(&name), &group.name);
            let mut stage = scene.stage(&node, &group.name, &lv_of(&group));
            scene.prepare(&node, &group, &stage);
            let cut = steps.cut(&node, &stage.args, &step, Victim::Nobody);
            let reached = matches!(cut, Cut::Killed);
            println!("{name}: {step}, {}, reached: {reached}", group.name);
            steps.plan("none");
            let uuid = stage.write_if_mounted().unwrap_or_default();
            writeln!(lines, "{} {name} {} {uuid}", group.name, stage.has_page).unwrap();
            // It stays as it is until the power goes.
            std::mem::forget(group);
        }
    }
    fs::write(manifest(), lines).unwrap();
}

/// The steps of a call, found on another group: each of the disk's is for one volume.
fn find(scene: Scene, steps: &Steps) -> Vec<Step> {
    let name = name_of(scene);
    let scratch = Group::new(&format!("of{name}"));
    let node = scene.node(&Steps::dir_of(&name), &scratch.name);
    let mut found = 0;
    let mut all = steps.find(&node, true, || {
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
        let done = std::panic::catch_unwind(|| repeat(line));
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
    let scene = SCENES.into_iter().find(|scene| name_of(*scene) == words[1]);
    let scene = scene.unwrap();
    part(number);
    let group = Group::found(words[0]);
    wait_until("LVM sees the group", || {
        run("vgs", &["--noheadings", "-o", "vg_name"]).contains(&group.name)
    });
    let lv = lv_of(&group);
    Steps::new(words[1]);
    let node = scene.node(&Steps::dir_of(words[1]), &group.name);
    let stage = Stage {
        has_page: words[2] == "true",
        ..scene.stage(&node, &group.name, &lv)
    };
    if !scene.is_creating() && !group.is_active(&lv) {
        group.lv("lvchange", &["-ay"], &lv);
    }
    scene.prepare_again(&node, &stage);
    let reply = node.call(&super::steps::words(&stage.args));
    assert_eq!(reply.status, "Success", "{reply:?}");
    let uuid = Some(words[3]).filter(|uuid| !uuid.is_empty());
    scene.check(&node, &group, &stage, uuid);
}
