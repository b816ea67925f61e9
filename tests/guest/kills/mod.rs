//! The driver, its tools or both are killed, or told to stop, at every step of a call in turn. Then the call is
//! repeated, as kubelet would repeat it. It succeeds, and no data is lost.
//!
//! To do each of these at each step takes hours. A run takes a sample of the steps, and prints the seed that chose it.
//! `tests/run.sh --full guest kills` takes all steps.

mod power;
pub mod scenes;
pub mod steps;
mod stops;
pub mod trial;
mod writes;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::prelude::*;
pub use crate::support::sample::{Sample, say};
use scenes::{Scene, scenes};
use steps::{Step, Steps, Told, Victim, Way};

/// How many calls a sample looks at, and how many steps of each.
const SAMPLE: (usize, usize) = (2, 4);

const GROUP: &str = "kills";

impl Sample {
    /// The scenes that are named. If none is named, a sample as by [`Sample::of`].
    fn scenes(&mut self, all: Vec<Scene>, most: usize) -> Vec<Scene> {
        let Some(only) = &self.only else {
            return self.of(all, most);
        };
        let is_named = |scene: &Scene| only.contains(&name_of(*scene));
        all.into_iter().filter(is_named).collect()
    }
}

#[test]
fn a_call_killed_at_any_step_succeeds_when_it_is_repeated() {
    at_steps(kills);
}

#[test]
fn a_call_told_to_stop_at_any_step_takes_back_what_it_has_begun() {
    at_steps(stops);
}

/// Cuts calls short at their steps, in these ways. `ways` gets the number of the step, and whether all ways are wanted.
fn at_steps(ways: fn(usize, &Step, bool) -> Vec<Way>) {
    let mut sample = Sample::new();
    let scenes = sample.scenes(scenes(), SAMPLE.0);
    let mut cuts = 0;
    let mut failures = Vec::new();
    for scene in scenes {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            try_scene(scene, ways, &mut sample, &mut failures)
        }));
        match tried {
            Ok(done) => cuts += done,
            Err(_) => failures.push(name_of(scene)),
        }
    }
    say(&format!("{cuts} cuts in all"));
    let count = failures.len();
    assert!(failures.is_empty(), "{count} failed: {failures:#?}");
    let is_whole = sample.full && sample.only.is_none();
    let least = if is_whole { 100 } else { 1 };
    assert!(cuts >= least, "only {cuts} cuts");
}

/// Tries steps of one call, and returns how many times it was cut short there.
fn try_scene(
    scene: Scene,
    ways: fn(usize, &Step, bool) -> Vec<Way>,
    sample: &mut Sample,
    failures: &mut Vec<String>,
) -> usize {
    let name = name_of(scene);
    let steps = Steps::new(&name);
    let node = scene.node(&Steps::dir_of(&name), GROUP);
    let mut group = Group::of_size(GROUP, 4 << 30);
    let mut made = 0;
    let mut next = || {
        made += 1;
        format!("lv{made}")
    };
    let inside_lvm = scene.is_first_of_its_kind();
    let all = steps.find(&node, inside_lvm, || {
        let stage = scene.stage(&node, &group.name, &next());
        scene.prepare(&node, &group, &stage);
        stage.args
    });
    println!("{name}: {} steps: {all:?}", all.len());
    assert!(!all.is_empty(), "{name} has no steps");
    let all: Vec<(Step, Way)> = all
        .into_iter()
        .enumerate()
        .flat_map(|(n, step)| {
            let ways = ways(n, &step, sample.full);
            ways.into_iter().map(move |way| (step.clone(), way))
        })
        .collect();
    let (mut cuts, mut missed) = (0, 0);
    for (step, way) in sample.of(all, SAMPLE.1) {
        let lv = next();
        println!("{name}: {step:?}, {way:?}, {lv}");
        let tried = catch_unwind(AssertUnwindSafe(|| {
            scene.try_step((&node, &steps, &group), &lv, &step, way)
        }));
        match tried {
            Ok(true) => cuts += 1,
            Ok(false) => missed += 1,
            Err(_) => {
                failures.push(format!("{name}: {step:?}, {way:?}"));
                // The call's remains would be in the way of the others.
                steps.kill_all();
                drop(group);
                group = Group::of_size(GROUP, 4 << 30);
            }
        }
    }
    say(&format!("{name}: {cuts} cuts, {missed} steps not reached"));
    cuts
}

/// Which processes are told to stop at this step.
fn stops(_: usize, step: &Step, _: bool) -> Vec<Way> {
    match step {
        Step::OwnBefore(..) => vec![Way::Stop(Told::Driver)],
        // A signal at the same system call.
        Step::OwnAfter(..) => Vec::new(),
        Step::Before(..) | Step::After(..) | Step::Inside(..) => {
            vec![Way::Stop(Told::All), Way::Stop(Told::Driver)]
        }
    }
}

/// Which processes to kill at this step, one after the other: of a sample one of them, but all if the step changes the
/// kernel's state.
fn kills(n: usize, step: &Step, full: bool) -> Vec<Way> {
    const ALL: [Victim; 3] = [Victim::Both, Victim::Driver, Victim::Tool];
    let victims = match step {
        // No tool runs.
        Step::OwnBefore(..) | Step::OwnAfter(..) => &ALL[..1],
        Step::Inside(_, _, call, _) if call == "ioctl" || call == "mount" => &ALL,
        // The tool has ended, whether its stand-in is killed with the driver or not.
        Step::After(..) if full => &ALL[1..],
        _ if full => &ALL,
        _ => &ALL[n % 3..][..1],
    };
    victims.iter().copied().map(Way::Kill).collect()
}

fn name_of(scene: Scene) -> String {
    format!("{:?}-{}", scene.call, scene.fs)
}
