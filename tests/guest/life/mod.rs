//! The random life of a node, for as many seconds as `FLEXVOLUME_LVM_LIFE` says: pods come and go, calls are killed,
//! disks fail, the power fails, operators rename and repair, and follow what doctor advises. After each step nothing
//! that was synced is lost, no pod has another pod's volume, and nothing is refused without a reason. `tests/run.sh
//! life [SECONDS [SEED]]` plays it. A life that fails is made shorter. The printed seed gives the same life again.

mod oracle;
mod player;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::kills::{Sample, say};
use player::Step;
use world::World;

/// How long to make a life shorter that failed.
const SHORTENING: Duration = Duration::from_secs(600);

/// How much was played, by what it was.
type Tally = BTreeMap<&'static str, usize>;

#[test]
#[ignore = "tests/run.sh life plays it"]
fn life() {
    let seconds = std::env::var("FLEXVOLUME_LVM_LIFE").map_or(60, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = Sample::new().seed;
    let local = "activation {\n monitoring = 0\n}\n";
    std::fs::write("/etc/lvm/lvmlocal.conf", local).unwrap();
    let (mut lives, mut all) = (0, Tally::new());
    while lives == 0 || Instant::now() < end {
        let seed = first + lives;
        let mut steps = player::life(seed);
        match live(&steps) {
            Ok(tally) => {
                for (what, count) in tally {
                    *all.entry(what).or_default() += count;
                }
            }
            Err((number, why)) => {
                let step = &steps[number];
                say(&format!("life {seed}, step {number}, {step:?}: {why}"));
                steps.truncate(number + 1);
                let shortest = shortest(steps);
                for step in &shortest {
                    say(&format!("    {step:?}"));
                }
                let count = shortest.len();
                let again = live(&shortest);
                panic!("FLEXVOLUME_LVM_SEED={seed}: {count} steps: {again:?}");
            }
        }
        lives += 1;
        say(&format!("life {seed}: {all:?}"));
    }
    say(&format!(
        "{lives} lives: {all:?}; FLEXVOLUME_LVM_SEED={first}"
    ));
    assert!(all["mounts"] > 0, "nothing was mounted");
}

/// Plays these steps on a node of their own. An error says which was the last, and what was wrong.
fn live(steps: &[Step]) -> Result<Tally, (usize, String)> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static LIVES: AtomicUsize = AtomicUsize::new(0);
    let mut world = World::new(LIVES.fetch_add(1, Ordering::Relaxed));
    let mut last = 0;
    let played = catch_unwind(AssertUnwindSafe(|| {
        for (number, step) in steps.iter().enumerate() {
            last = number;
            println!("step {number}: {step:?}");
            world.play(number, step);
        }
        println!("the end");
        world.end();
    }));
    played.map(|()| world.tally.clone()).map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let fixed = || panic.downcast_ref::<&str>().map(|words| (*words).into());
        (last, words.or_else(fixed).unwrap_or_default())
    })
}

/// Leaves out ever smaller parts, without which the life fails too.
fn shortest(mut steps: Vec<Step>) -> Vec<Step> {
    let end = Instant::now() + SHORTENING;
    let mut size = steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            if live(&fewer).is_err() {
                steps = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    steps
}
