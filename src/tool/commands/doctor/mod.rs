//! `flexvolume-lvm doctor`: what is wrong with this node, and what to do about it.

mod autoextend;
mod faults;
mod findings;
mod groups;
mod kubelet;
mod leftovers;
mod shared_disks;
mod storage;
mod trial;
mod volumes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::files;
use crate::output::{self, Printed};
use driver::config::{Config, Loaded, LogTarget};
use driver::host::holders::{self, Process};
use driver::host::trust::require_roots;
use driver::host::{Command, Host};
use driver::names::Shown;
use driver::volume::lock::LOCK_DIR;
use findings::{Checks, Level};
use volumes::look_at_lvm;

/// The tools without which nothing works, and those that only some filesystems need.
const NEEDED: [&str; 10] = [
    "lvs", "vgs", "lvchange", "lvcreate", "lvextend", "dmsetup", "blkid", "wipefs", "mount",
    "e2fsck",
];
const FOR_SOME: [(&str, &str, &str); 8] = [
    ("mkfs.ext2", "ext2", "e2fsprogs"),
    ("mkfs.ext3", "ext3", "e2fsprogs"),
    ("mkfs.ext4", "ext4", "e2fsprogs"),
    ("resize2fs", "growing ext", "e2fsprogs"),
    ("mkfs.xfs", "xfs", "xfsprogs"),
    ("xfs_growfs", "growing xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs", "btrfs-progs"),
    ("btrfs", "growing btrfs", "btrfs-progs"),
];

pub fn run(host: &Host, config: &Loaded, json: bool) -> Result<Printed> {
    let mut checks = Checks::default();
    let settings = config.or_default();
    if let Some(problem) = &config.problem {
        checks.failed("config", problem);
    } else {
        checks.ok("config", settings_in_short(settings));
    }
    let can_lock = look_at_host(&mut checks, host);
    kubelet::look_at(&mut checks, host, settings);
    look_at_log(&mut checks, host, settings);
    look_for_tools(&mut checks, host, settings);
    if host.tools.has("lvs") {
        look_at_lvm(&mut checks, host, config, can_lock);
        shared_disks::look_at(&mut checks, host);
    }
    if can_lock {
        trial::look_at(&mut checks, host, settings);
    }
    leftovers::look_at(&mut checks, host, settings)?;
    checks.printed(json, output::width())
}

fn settings_in_short(config: &Config) -> String {
    let file = &config.file;
    let there = if files::identity(Path::new(file)).is_some() {
        ""
    } else {
        " (not there)"
    };
    format!(
        "{file}{there}: attach = {}, default_fs = {}, deactivate = {}",
        config.attach, config.default_fs, config.deactivate
    )
}

/// Whether volumes can be locked.
fn look_at_host(checks: &mut Checks, host: &Host) -> bool {
    // Its node may be there without it: udev or an LVM tool makes that.
    let version = Command::reads("dmsetup", Duration::from_secs(10)).args(["version"]);
    match host.run(&version) {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines: Vec<&str> = said
                .lines()
                .filter_map(|l| l.split_once(':'))
                .map(|(_, version)| version.trim())
                .collect();
            let versions = format!("library and kernel: {}", lines.join(", "));
            checks.ok("device-mapper", versions);
        }
        Err(error) => {
            let finding = checks.failed("device-mapper", format!("{error:#}"));
            let finding = finding.why("without it there are no logical volumes");
            finding.run("modprobe dm_mod");
        }
    }
    if host.kernel.exists(Path::new("/run/udev/control")) {
        checks.ok("udev", "udevd's socket is there");
    } else {
        checks
            .warning("udev", "no /run/udev/control")
            .why("without udevd, LVM makes its device nodes itself or waits for ever")
            .run("systemctl start systemd-udevd");
    }
    look_at_lvms_lock(checks, host);
    let Some(problem) = problem_of_locks(host) else {
        checks.ok("locks", LOCK_DIR);
        return true;
    };
    checks
        .failed("locks", problem)
        .why("every call locks its volume there, so none can be mounted")
        .run(format!("df /run; df -i /run; ls -ld {LOCK_DIR}"));
    false
}

/// A command that asks a question keeps LVM's lock until it is answered.
fn look_at_lvms_lock(checks: &mut Checks, host: &Host) {
    const LONG: Duration = Duration::from_secs(10);
    let mut holders = holders::of_lvm_lock(host.kernel, None);
    holders.retain(|holder| holder.age >= LONG);
    if let Some(Process { age, pid, .. }) = holders.first() {
        let (who, age) = (holders::name_them(&holders), age.as_secs());
        checks
            .warning(
                "lvm-lock",
                format!("LVM is locked by {who}, which has run for {age} s"),
            )
            .why("every other LVM command waits for that, the driver's too")
            .run(format!("ps -fp {pid}, and answer or end it"));
    }
}

/// Why the driver cannot lock a volume, if so.
fn problem_of_locks(host: &Host) -> Option<String> {
    let dir = Path::new(LOCK_DIR);
    let file = dir.join("doctor.lock");
    let tried = host.kernel.try_lock(&file);
    match tried.map(|_| files::remove(&file)) {
        Ok(_) => require_roots(host.kernel, dir).err(),
        Err(e) => Some(format!("no lock file can be made in {LOCK_DIR}: {e}")),
    }
}

/// Checks that the log can be written: no call fails if not, so nobody would notice.
fn look_at_log(checks: &mut Checks, host: &Host, config: &Config) {
    const LOGS: [&str; 2] = ["/run/systemd/journal/socket", "/dev/log"];
    let file = match &config.log {
        LogTarget::None => return,
        LogTarget::Syslog if LOGS.iter().any(|at| host.kernel.exists(Path::new(at))) => return,
        LogTarget::Syslog => {
            checks
                .warning("log", "no /dev/log, so nothing is logged")
                .run(format!(
                    "systemctl start systemd-journald.socket, or set `log` in {} to a file",
                    config.file
                ));
            return;
        }
        LogTarget::File(file) => file,
    };
    let dir = file.parent().unwrap_or(file);
    if !host.kernel.is_dir(dir) {
        let finding = format!(
            "{} is not a directory, so nothing is logged; make it, or correct `log` in {}",
            dir.shown(),
            config.file
        );
        checks.warning("log", finding);
    }
}

/// Names what is not run since somebody else than root can change it. Returns whether another tool is run
/// in the place of each.
fn look_for_distrust(checks: &mut Checks, host: &Host, config: &Config) -> bool {
    let mut said = BTreeSet::new();
    let mut all_run = true;
    let some = FOR_SOME.iter().map(|(tool, ..)| *tool);
    for tool in NEEDED.into_iter().chain(some) {
        let Some((problem, has_other)) = host.tools.distrust(tool) else {
            continue;
        };
        all_run &= has_other;
        if !has_other {
            checks.failed("tools", format!("{tool} is not run: {problem}"));
        } else if said.insert(problem.clone()) {
            let finding = checks.warning("tools", problem);
            finding.why("a tool there is not run, but that of the next directory in tool_dirs");
        }
    }
    let is_dir = |dir: &&PathBuf| host.kernel.is_dir(dir);
    for dir in config.tool_dirs.iter().filter(is_dir) {
        if let Err(problem) = require_roots(host.kernel, dir)
            && said.insert(problem.clone())
        {
            let note = checks.add("tools", Level::Note, problem);
            note.why("no tool that is put there is run");
        }
    }
    all_run
}

fn look_for_tools(checks: &mut Checks, host: &Host, config: &Config) {
    let missing: Vec<&str> = NEEDED.into_iter().filter(|t| !host.tools.has(t)).collect();
    let all_run = look_for_distrust(checks, host, config);
    if missing.is_empty() && all_run {
        checks.ok("tools", NEEDED.join(", "));
    } else if !missing.is_empty() {
        let finding = format!(
            "{} not found in tool_dirs: install lvm2, util-linux and e2fsprogs",
            missing.join(", ")
        );
        checks.failed("tools", finding);
    }
    for (tool, what, package) in FOR_SOME {
        if host.tools.has(tool) {
            continue;
        }
        let (level, default) = if what == config.default_fs.as_str() {
            (Level::Failed, ", and it is this node's default_fs")
        } else {
            (Level::Warning, "")
        };
        let finding = format!("no {tool}, which {what} needs{default}: install {package}");
        checks.add("tools", level, finding);
    }
}
