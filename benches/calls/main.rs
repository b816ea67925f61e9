//! Measures whole processes: the driver against the floor, the bare commands and the bash script
//! that it takes the place of. Started by benches/run.sh, which also knows what it needs.
//!
//! `calls --driver FILE --floor FILE [--peer FILE] --json FILE [--rounds N] [--lives N]
//! [--crowd N] PART…`, with the parts `calls` (on any machine), `parts` (root and loop devices),
//! `lvm`, `lives`, `crowd` and `making` (root and device-mapper: in the guest).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

mod calls;
mod contest;
mod crowd;
mod lives;
mod lvm;
mod making;
mod parts;
mod race;
mod report;

use std::path::PathBuf;

use contest::Contest;
use report::Report;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut contest = Contest {
        driver: PathBuf::new(),
        floor: PathBuf::new(),
        script: None,
        rounds: 201,
        lives: 3,
        crowd: 100,
    };
    let (mut json, mut parts) = (None, Vec::new());
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .unwrap_or_else(|| panic!("{word} needs a value"))
        };
        match word.as_str() {
            "--driver" => contest.driver = value().into(),
            "--floor" => contest.floor = value().into(),
            "--peer" => contest.script = Some(value().into()),
            "--json" => json = Some(value()),
            "--rounds" => contest.rounds = value().parse().unwrap(),
            "--lives" => contest.lives = value().parse().unwrap(),
            "--crowd" => contest.crowd = value().parse().unwrap(),
            // cargo bench says so to every harness.
            "--bench" => {}
            _ => parts.push(word),
        }
    }
    let mut report = Report::default();
    for part in &parts {
        match part.as_str() {
            "calls" => calls::without_lvm(&contest, &mut report),
            "parts" => parts::parts(&contest, &mut report),
            "lvm" => calls::on_lvm(&contest, &mut report),
            "lives" => lives::lives(&contest, &mut report),
            "crowd" => crowd::crowd(&contest, &mut report),
            "making" => making::making(&mut report),
            _ => panic!("no part is called {part}"),
        }
    }
    if let Some(file) = json {
        std::fs::write(file, report.json()).unwrap();
    }
}
