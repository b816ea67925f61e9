//! The random life of two nodes that share a group: pods come, write, go and come on the other node, calls are killed,
//! lvmlockd dies, the power fails, operators make, remove and rename. After each step no volume is on both nodes, a pod
//! sees all that was synced and nothing else, and nothing is refused without a reason.
//!
//! It lasts as many seconds as `FLEXVOLUME_LVM_LIFE` says. `FLEXVOLUME_LVM_SEED` gives the same steps again.

mod deeds;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::pair::pair;
use crate::support::sample::{Sample, say};
use world::World;

/// How many steps a life has, behind its beginning.
const LENGTH: usize = 50;
/// How many volumes there are. A life has some of them.
const SLOTS: usize = 4;
const OF_A_LIFE: usize = 3;

/// How often something was played.
type Tally = BTreeMap<String, usize>;

/// A slot, which is the name of a volume and of its pod, and the node on which something is done to it.
type Place = (usize, usize);

/// A step that does not fit at its turn does nothing.
#[derive(Debug)]
enum Step {
    Up(Place),
    /// Both nodes bring up this slot at once.
    Both(usize),
    /// The slot's pod writes where it is.
    Write(usize),
    Down(Place),
    /// The pod goes where it is, and comes on the other node.
    Move(usize),
    /// A process is killed at this call of those that bring the pod up or down: stand-in.sh has the plans.
    Kill(Place, Calls, usize, String),
    Grow(Place),
    Make(Place),
    Remove(Place),
    /// The volumes of two slots get each other's names, on this node.
    Swap([usize; 2], usize),
    LocksDie(usize),
    LocksStart(usize),
    CutPower(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Calls {
    Up,
    Down,
}

/// The life that this seed gives.
fn steps(seed: u64) -> Vec<Step> {
    let (full, only) = (false, None);
    let mut dice = Sample { seed, full, only };
    let slots = dice.of((0..SLOTS).collect(), OF_A_LIFE);
    let up = |slot: &usize| [Step::Up((*slot, slot % 2)), Step::Write(*slot)];
    let mut steps: Vec<_> = slots.iter().flat_map(up).collect();
    steps.extend((0..LENGTH).map(|_| step(&mut dice, &slots)));
    // A boot takes longer than ten other steps.
    if seed % 4 == 2 {
        steps.insert(LENGTH / 2, Step::CutPower(dice.below(2)));
    }
    steps
}

fn step(dice: &mut Sample, slots: &[usize]) -> Step {
    let two = dice.of(slots.to_vec(), 2);
    let (slot, node) = (two[0], dice.below(2));
    let place = (slot, node);
    match dice.below(100) {
        0..18 => Step::Up(place),
        18..32 => Step::Write(slot),
        32..40 => Step::Down(place),
        40..50 => Step::Move(slot),
        50..57 => Step::Both(slot),
        57..83 => {
            let calls = dice.one_of(&[Calls::Up, Calls::Up, Calls::Down]);
            Step::Kill(place, calls, dice.one_of(&[0, 1, 1, 2]), plan(dice))
        }
        83..87 => Step::Grow(place),
        87..89 => Step::Make(place),
        89..92 => Step::Remove(place),
        92..95 => Step::Swap([slot, two[1]], node),
        95 => Step::LocksDie(node),
        _ => Step::LocksStart(node),
    }
}

/// A call does not reach some of these places, and then is not killed.
fn plan(dice: &mut Sample) -> String {
    let inside = ["pwrite64", "ioctl", "write", "io_submit", "sendto"];
    let inside = format!("{} {}", dice.one_of(&inside), 1 + dice.below(4));
    let how = match dice.below(8) {
        0..2 => "before".to_owned(),
        2..4 => "after".to_owned(),
        4 => "driver".to_owned(),
        5 => format!("tool {inside}"),
        _ => format!("both {inside}"),
    };
    format!("{} {how}", 1 + dice.below(4))
}

#[test]
fn a_life_of_two_nodes_at_random() {
    let pair = pair();
    let seconds = std::env::var("FLEXVOLUME_LVM_LIFE").unwrap().parse();
    let end = Instant::now() + Duration::from_secs(seconds.unwrap());
    let first = Sample::new().seed;
    let mut tally = Tally::new();
    for seed in first.. {
        let mut world = World::new(&pair, seed, &mut tally);
        for (number, step) in steps(seed).iter().enumerate() {
            // A whole life may take much longer than asked for.
            if Instant::now() > end {
                break;
            }
            println!("FLEXVOLUME_LVM_SEED={seed}, step {number}: {step:?}");
            world.play(number, step);
        }
        println!("FLEXVOLUME_LVM_SEED={seed}, the end");
        world.end();
        say(&format!("life {seed}: {tally:?}"));
        if Instant::now() > end {
            break;
        }
    }
    assert!(tally["mounts"] > 0, "nothing was mounted");
}
