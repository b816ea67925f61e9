//! What a test does at random, by a seed.

use std::io::Write;
use std::time::SystemTime;

/// Chooses by the seed in the environment, or by the time.
pub struct Sample {
    pub seed: u64,
    pub full: bool,
    /// The calls by name.
    pub only: Option<String>,
}

impl Sample {
    pub fn new() -> Self {
        let given = std::env::var("FLEXVOLUME_LVM_SEED");
        let seed = given.map_or_else(
            |_| SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs(),
            |seed| seed.parse().unwrap(),
        );
        let full = std::env::var_os("FLEXVOLUME_LVM_FULL").is_some();
        let only = std::env::var("FLEXVOLUME_LVM_CALLS").ok();
        say(&format!("FLEXVOLUME_LVM_SEED={seed}"));
        Self { seed, full, only }
    }

    /// `most` of these, in random order, or all of them if the run is full.
    pub fn of<T>(&mut self, mut all: Vec<T>, most: usize) -> Vec<T> {
        if self.full {
            return all;
        }
        for n in (1..all.len()).rev() {
            all.swap(n, self.below(n + 1));
        }
        all.truncate(most);
        all
    }

    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// A number from 0 to less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // The constants of Knuth's MMIX: good enough to shuffle a hundred things.
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.seed >> 33).unwrap() % end
    }
}

/// Prints a line even if the run succeeds. libtest would hide it.
pub fn say(line: &str) {
    let mut stdout = std::io::stdout();
    stdout.write_all(line.as_bytes()).unwrap();
    stdout.write_all(b"\n").unwrap();
}
