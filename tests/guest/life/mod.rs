//! A node's life at random: pods come and go, calls are killed, disks fail, the power goes, operators
//! rename and repair, tenants ask for what they must not have, for as long as `FLEXVOLUME_LVM_LIFE` says, in seconds. After each step nothing
//! that was synced is lost, no pod has another one's volume, and what is refused is refused for a
//! reason that is true. `tests/run.sh life [SECONDS [SEED]]` plays it; a life that fails is made
//! shorter, and the seed that is printed gives the same again.

mod oracle;
mod player;
mod shrink;
mod tally;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::kills::{Sample, say};
use player::Step;
use tally::Tally;
use world::World;

#[test]
#[ignore = "tests/run.sh life plays it"]
fn life() {
    let seconds = std::env::var("FLEXVOLUME_LVM_LIFE").map_or(60, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = Sample::new().seed;
    std::fs::write(
        "/etc/lvm/lvmlocal.conf",
        "activation {\n monitoring = 0\n}\n",
    )
    .unwrap();
    let (mut lives, mut all) = (0, Tally::default());
    while lives == 0 || Instant::now() < end {
        let seed = first + lives;
        let mut steps = player::life(seed);
        match live(&steps) {
            Ok(tally) => all.add(tally),
            Err((number, why)) => {
                say(&format!(
                    "life {seed}, step {number}, {:?}: {why}",
                    steps[number]
                ));
                steps.truncate(number + 1);
                let shortest = shrink::shortest(steps, |steps| live(steps).is_err());
                for step in &shortest {
                    say(&format!("    {step:?}"));
                }
                let again = live(&shortest);
                panic!(
                    "FLEXVOLUME_LVM_SEED={seed}: {} steps: {again:?}",
                    shortest.len()
                );
            }
        }
        lives += 1;
        say(&format!("life {seed}: {all}"));
    }
    say(&format!(
        "{lives} lives: {all}; FLEXVOLUME_LVM_SEED={first}"
    ));
    assert!(all.mounts > 0, "nothing was mounted");
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
    played.map(|()| world.tally).map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| {
            panic
                .downcast_ref::<&str>()
                .map(|words| (*words).to_owned())
        });
        (last, words.unwrap_or_default())
    })
}
