//! mkfs on thin volumes of several sizes: the driver's options against the tools' own.

use std::fs;
use std::time::Instant;

use crate::lives::mkfs;
use crate::lvm::Group;
use crate::race::{output, run};
use crate::report::Report;
use crate::words;

pub fn making(report: &mut Report) {
    let group = Group::new("making", 2200 << 20);
    for size in ["1g", "100g", "1t"] {
        for fs in ["ext4", "xfs", "btrfs"] {
            let own = words![format!("mkfs.{fs}"), "-q"];
            for (whose, command) in [("driver's", mkfs(fs)), ("the tool's", own)] {
                group.thin("data", size);
                let device = group.device("data");
                let name = format!("mkfs {fs} {size}, {whose} options");
                let before = written(&device);
                let started = Instant::now();
                run(&[command, words![device]].concat());
                let took = started.elapsed().as_secs_f64() * 1e3;
                let after = written(&device);
                let mib =
                    |sectors: u64| f64::from(u32::try_from(sectors).unwrap_or(u32::MAX)) / 2048.0;
                report.numbers(
                    &name,
                    &[
                        ("ms", took),
                        ("written_mib", mib(after.0 - before.0)),
                        ("discarded_mib", mib(after.1 - before.1)),
                    ],
                );
                run(&words!["lvremove", "-qq", "-f", group.path("data")]);
            }
        }
    }
}

/// Sectors written to a device, and discarded. Source: the kernel's
/// Documentation/block/stat.rst.
fn written(device: &str) -> (u64, u64) {
    let link = output(&words!["readlink", "-f", device]);
    let name = link.rsplit('/').next().unwrap();
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let fields: Vec<u64> = stat
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    (fields[6], fields[13])
}
