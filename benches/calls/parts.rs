//! The commands of a cold life, bare, on this machine. It needs root and loop devices, but no
//! device-mapper: LVM keeps its metadata without it, and mkfs and mount take another loop device.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;

use crate::contest::Contest;
use crate::lives::mkfs;
use crate::race::{Runner, Times, command, output, race, run};
use crate::report::Report;
use crate::words;

const GROUP: &str = "flexvolume-lvm-bench";
/// kubelet's calls from `attach` to `detach`.
const CALLS: usize = 7;

/// What the driver starts in a cold life, one after another, against what could not be left out.
pub fn parts(contest: &Contest, report: &mut Report) {
    let disks = Disks::new();
    let volume = &disks.volume;
    for (fs, size) in [("ext4", 64 << 20), ("xfs", 300 << 20), ("btrfs", 128 << 20)] {
        volume.resize(size);
        let examine = || examine(contest, volume, size);
        let blkid = || {
            // 2: it finds nothing.
            let status = command(&words!["blkid", "-p", volume.device])
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(2));
        };
        let tag = |change: &str| disks.lvm(&["lvchange", change, "flexvolume.making=x"]);
        let make = || run(&[mkfs(fs), words![volume.device]].concat());
        let mount = || {
            run(&words![
                "mount",
                "-t",
                fs,
                volume.device,
                disks.dir.display()
            ])
        };
        let umount = || run(&words!["umount", disks.dir.display()]);
        let needed = || {
            disks.lvm(&["lvs"]);
            tag("--addtag");
            make();
            tag("--deltag");
            mount();
            umount();
        };
        let all = || {
            for _ in 0..CALLS {
                run(&contest.argv_of_driver(&words!["init"]));
            }
            disks.lvm(&["lvs"]);
            blkid();
            examine();
            blkid();
            tag("--addtag");
            make();
            tag("--deltag");
            mount();
            umount();
        };
        let blank = || volume.blank(size);
        let runners = [
            Runner::of("driver", all).after(blank),
            Runner::of("needed", needed).after(blank),
        ];
        report.row(
            &format!("commands of a cold life, {fs}"),
            &race(&runners, contest.rounds),
        );
        blank();
        let single = [
            Runner::of("lvs", || disks.lvm(&["lvs"])),
            Runner::of("blkid", blkid),
            Runner::of("examine", examine),
            Runner::of("start", || run(&contest.argv_of_driver(&words!["init"]))),
        ];
        let times = race(&single, contest.rounds);
        let millis = |one: &Times| (one.name, one.median().as_secs_f64() * 1e3);
        let numbers: Vec<_> = times.iter().map(millis).collect();
        report.numbers(&format!("  some of them in ms, {fs}"), &numbers);
    }
}

/// The driver's own reading of a blank device, as it starts it.
fn examine(contest: &Contest, volume: &Loop, size: u64) {
    let driver = contest.argv_of_driver(&words!["examine-stdin", size, 1]);
    let status = command(&driver)
        .stdin(File::open(&volume.device).unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

/// A loop device over a sparse file.
struct Loop {
    file: PathBuf,
    device: String,
}

impl Loop {
    fn new(name: &str, bytes: u64) -> Self {
        let file = std::env::temp_dir().join(format!("{GROUP}-{name}"));
        File::create(&file).unwrap().set_len(bytes).unwrap();
        let device = output(&words!["losetup", "--find", "--show", file.display()]);
        Self { file, device }
    }

    fn resize(&self, bytes: u64) {
        File::options()
            .write(true)
            .open(&self.file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        run(&words!["losetup", "--set-capacity", self.device]);
    }

    fn blank(&self, bytes: u64) {
        run(&words![
            "blkdiscard",
            "--zeroout",
            "--length",
            bytes,
            self.device
        ]);
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run(&words!["losetup", "--detach", self.device]);
        let _ = fs::remove_file(&self.file);
    }
}

struct Disks {
    group: Loop,
    volume: Loop,
    dir: PathBuf,
}

impl Disks {
    fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("{GROUP}-mount"));
        fs::create_dir_all(&dir).unwrap();
        let disks = Self {
            group: Loop::new("group", 1 << 30),
            volume: Loop::new("volume", 64 << 20),
            dir,
        };
        let device = disks.group.device.clone();
        run(&disks.argv(&words!["vgcreate", "-q"], &words![GROUP, device]));
        let create = words![
            "lvcreate", "-qq", "-an", "-Zn", "-Wn", "-L", "64m", "-n", "data"
        ];
        run(&disks.argv(&create, &words![GROUP]));
        disks
    }

    /// Looks at this one disk only, and leaves nothing in the machine's /etc.
    fn argv(&self, tool: &[String], operands: &[String]) -> Vec<String> {
        let config = format!(
            "devices {{ use_devicesfile=0 filter=[\"a|^{}$|\",\"r|.*|\"] }} \
             backup {{ backup=0 archive=0 }}",
            self.group.device
        );
        [
            tool,
            &words!["--driverloaded", "n", "--config", config],
            operands,
        ]
        .concat()
    }

    fn lvm(&self, tool: &[&str]) {
        let tool: Vec<String> = tool.iter().map(ToString::to_string).collect();
        run(&self.argv(&tool, &words![format!("{GROUP}/data")]));
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        run(&self.argv(&words!["vgremove", "-qq", "-f"], &words![GROUP]));
        let _ = fs::remove_dir(&self.dir);
    }
}
