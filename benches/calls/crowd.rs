//! Many pods that start at once, each with a blank volume of its own.

use std::time::{Duration, Instant};

use crate::contest::Contest;
use crate::lives::{down, down_by_script, mkfs, up, up_by_script};
use crate::lvm::Group;
use crate::race::run;
use crate::report::Report;
use crate::words;

/// Starts all pods at once, by the script and by the driver, and the bare mkfs one after another.
pub fn crowd(contest: &Contest, report: &mut Report) {
    let group = Group::new("crowd", 100 << 30);
    let volumes: Vec<String> = (0..contest.crowd).map(|n| format!("lv{n}")).collect();
    for lv in &volumes {
        group.linear(lv, "64m");
    }
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let mut numbers = vec![("processors", precise(processors))];

    if contest.script.is_some() {
        let up = |lv: &str| up_by_script(contest, &group, "ext4", lv);
        let (took, failed) = at_once(&volumes, up);
        numbers.push(("script_s", took));
        numbers.push(("script_repeats", failed));
        at_once(&volumes, |lv| down_by_script(contest, lv));
        discard(&group, &volumes);
    }
    let started = Instant::now();
    for lv in &volumes {
        let mut make = mkfs("ext4");
        make.push(group.device(lv));
        run(&make);
    }
    numbers.push(("sum_of_mkfs_s", seconds(started.elapsed())));
    // What LVM's own lock makes go one after the other.
    let started = Instant::now();
    for lv in &volumes {
        run(&words!["lvchange", "--addtag", "x", group.path(lv)]);
        run(&words!["lvchange", "--deltag", "x", group.path(lv)]);
    }
    numbers.push(("sum_of_lvchange_s", seconds(started.elapsed())));
    discard(&group, &volumes);

    let (took, failed) = at_once(&volumes, |lv| up(contest, &group, "ext4", lv));
    numbers.push(("driver_s", took));
    numbers.push(("driver_repeats", failed));
    let (took, _) = at_once(&volumes, |lv| down(contest, lv));
    numbers.push(("driver_down_s", took));
    report.numbers(&format!("{} cold pods at once", volumes.len()), &numbers);
}

/// How many seconds it took, and how many calls had to be repeated.
fn at_once(volumes: &[String], work: impl Fn(&str) -> usize + Sync) -> (f64, f64) {
    let started = Instant::now();
    let failed = std::thread::scope(|scope| {
        let threads: Vec<_> = volumes.iter().map(|lv| scope.spawn(|| work(lv))).collect();
        threads.into_iter().map(|one| one.join().unwrap()).sum()
    });
    (seconds(started.elapsed()), precise(failed))
}

fn discard(group: &Group, volumes: &[String]) {
    for lv in volumes {
        run(&words!["blkdiscard", group.device(lv)]);
    }
}

fn seconds(took: Duration) -> f64 {
    took.as_secs_f64()
}

fn precise(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::NAN, f64::from)
}
