//! The whole cold life of a volume: attached, formatted, mounted, unmounted, detached.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::calls::options;
use crate::contest::Contest;
use crate::lvm::Group;
use crate::race::{Runner, Times, insist, race, run};
use crate::report::Report;
use crate::words;

/// The commands that make a filesystem as the driver makes it.
pub fn mkfs(fs: &str) -> Vec<String> {
    match fs {
        "xfs" | "btrfs" => words![format!("mkfs.{fs}"), "-q", "-K"],
        _ => words![
            format!("mkfs.{fs}"),
            "-q",
            "-m",
            "0",
            "-O",
            "metadata_csum",
            "-E",
            "nodiscard,lazy_itable_init=1,lazy_journal_init=1"
        ],
    }
}

/// Each filesystem's life, against the bare commands and against the script.
pub fn lives(contest: &Contest, report: &mut Report) {
    let group = Group::new("lives", 2 << 30);
    for (fs, size) in [("ext4", "64m"), ("xfs", "300m"), ("btrfs", "128m")] {
        let name = |who: &str| format!("{fs}{who}");
        let (driver, bare, script) = (name("driver"), name("bare"), name("script"));
        for lv in [&driver, &bare, &script] {
            group.linear(lv, size);
        }
        let commands = Commands::new(&group, fs, &bare);
        let mut runners = vec![
            Runner::of("driver", || live(contest, &group, fs, &driver))
                .after(|| group.blank(&driver)),
            Runner::of("needed", || commands.run()).after(|| group.blank(&bare)),
        ];
        if contest.script.is_some() {
            runners.push(
                Runner::of("script", || live_by_script(contest, &group, fs, &script))
                    .after(|| group.blank(&script)),
            );
        }
        let times = race(&runners, contest.lives);
        report.row(&format!("cold life, {fs}"), &times);
        report.numbers(&format!("  each command, {fs}"), &commands.medians());
    }
}

/// Where kubelet has a volume.
fn dirs(lv: &str) -> (String, String) {
    let top = "/var/lib/kubelet";
    let global = format!("{top}/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/{lv}");
    let pod = format!("{top}/pods/1/volumes/kubernetes.io~lvm/{lv}");
    for dir in [&global, &pod] {
        fs::create_dir_all(dir).unwrap();
    }
    (global, pod)
}

/// What kubelet calls until the pod runs. Returns how many calls failed before they succeeded.
pub fn up(contest: &Contest, group: &Group, fs: &str, lv: &str) -> usize {
    let (json, device) = (options(&group.name, lv, fs), group.device(lv));
    let (global, pod) = dirs(lv);
    [
        words!["attach", json, host()],
        words!["waitforattach", device, json],
        words!["mountdevice", global, device, json],
        words!["mount", pod, json],
    ]
    .iter()
    .map(|args| insist(&contest.argv_of_driver(args)))
    .sum()
}

/// What it calls when the pod has gone.
pub fn down(contest: &Contest, lv: &str) -> usize {
    let (global, pod) = dirs(lv);
    [
        words!["unmount", pod],
        words!["unmountdevice", global],
        words!["detach", lv, host()],
    ]
    .iter()
    .map(|args| insist(&contest.argv_of_driver(args)))
    .sum()
}

fn live(contest: &Contest, group: &Group, fs: &str, lv: &str) {
    assert_eq!(up(contest, group, fs, lv), 0, "calls failed");
    assert_eq!(down(contest, lv), 0, "calls failed");
}

/// The same by the script, which answers `mount` with "Not supported": then kubelet itself binds,
/// with mount(8).
pub fn up_by_script(contest: &Contest, group: &Group, fs: &str, lv: &str) -> usize {
    let (json, device) = (options(&group.name, lv, fs), group.device(lv));
    let (global, pod) = dirs(lv);
    let failed = [
        words!["attach", json, host()],
        words!["waitforattach", device, json],
        words!["mountdevice", global, device, json],
        words!["mount", pod, json],
    ]
    .iter()
    .map(|args| insist(&contest.argv_of_script(args).unwrap()))
    .sum();
    run(&words!["mount", "--bind", global, pod]);
    failed
}

pub fn down_by_script(contest: &Contest, lv: &str) -> usize {
    let (global, pod) = dirs(lv);
    run(&contest.argv_of_script(&words!["unmount", pod]).unwrap());
    run(&words!["umount", pod]);
    [
        words!["unmountdevice", global],
        words!["detach", lv, host()],
    ]
    .iter()
    .map(|args| insist(&contest.argv_of_script(args).unwrap()))
    .sum()
}

fn live_by_script(contest: &Contest, group: &Group, fs: &str, lv: &str) {
    assert_eq!(up_by_script(contest, group, fs, lv), 0, "calls failed");
    assert_eq!(down_by_script(contest, lv), 0, "calls failed");
}

fn host() -> String {
    nix::unistd::gethostname().unwrap().into_string().unwrap()
}

/// The commands that the driver runs in a cold life, bare: the sum of what cannot be avoided.
struct Commands {
    commands: Vec<(&'static str, Vec<String>)>,
    took: RefCell<BTreeMap<&'static str, Vec<Duration>>>,
}

impl Commands {
    fn new(group: &Group, fs: &str, lv: &str) -> Self {
        let (path, device, (global, _)) = (group.path(lv), group.device(lv), dirs(lv));
        let mut make = mkfs(fs);
        make.push(device.clone());
        let fields = "vg_name,lv_name,lv_uuid,lv_size,lv_time,lv_tags,lv_active,lv_permissions,\
            lv_health_status,lv_snapshot_invalid,lv_layout,lv_role,pool_lv,data_percent,\
            metadata_percent,vg_extent_size,vg_free";
        let ask = words!["lvs", "--reportformat", "json", "-o", fields, path];
        let before = words!["lvchange", "--addtag", "flexvolume.making=x", path];
        let after = words![
            "lvchange",
            "--deltag",
            "flexvolume.making=x",
            "--addtag",
            "flexvolume.fs=x:y",
            path
        ];
        let mount = words!["mount", "-t", fs, "--rw", device, global];
        Self {
            commands: vec![
                ("lvs", ask),
                ("lvchange before", before),
                ("mkfs", make),
                ("lvchange after", after),
                ("mount", mount),
                ("umount", words!["umount", global]),
            ],
            took: RefCell::default(),
        }
    }

    fn run(&self) {
        for (name, argv) in &self.commands {
            let started = Instant::now();
            run(argv);
            let mut took = self.took.borrow_mut();
            took.entry(name).or_default().push(started.elapsed());
        }
    }

    /// In milliseconds.
    fn medians(&self) -> Vec<(&str, f64)> {
        let took = self.took.borrow();
        let medians = self.commands.iter().map(|(name, _)| {
            let times = Times {
                name,
                times: took.get(name).cloned().unwrap_or_default(),
            };
            (*name, times.median().as_secs_f64() * 1e3)
        });
        medians.collect()
    }
}
