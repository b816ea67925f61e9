//! `lvm doctor`: what is wrong with this node, and what to do about it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::kubelet;
use super::shared_disks;
use super::volumes::look_at_lvm;
use crate::config::{Config, Loaded, LogTarget};
use crate::host::trust::require_roots;
use crate::host::{Command, Host};
use crate::mount::{Table, is_kubelets};
use crate::output::{Printed, columns, printed};
use crate::volume::lock::LOCK_DIR;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warning,
    Failed,
}

#[derive(Serialize)]
struct Check {
    #[serde(rename = "check")]
    about: String,
    verdict: Verdict,
    finding: String,
}

#[derive(Default)]
pub(super) struct Checks(Vec<Check>);

impl Checks {
    pub(super) fn add(
        &mut self,
        about: impl Into<String>,
        verdict: Verdict,
        finding: impl Into<String>,
    ) {
        self.0.push(Check {
            about: about.into(),
            verdict,
            finding: finding.into(),
        });
    }
}

/// The tools without which nothing works, and those that only some filesystems need.
const NEEDED: [&str; 9] = [
    "lvs", "vgs", "lvchange", "lvcreate", "lvextend", "blkid", "wipefs", "mount", "e2fsck",
];
const FOR_SOME: [(&str, &str); 8] = [
    ("mkfs.ext2", "ext2"),
    ("mkfs.ext3", "ext3"),
    ("mkfs.ext4", "ext4"),
    ("resize2fs", "growing ext"),
    ("mkfs.xfs", "xfs"),
    ("xfs_growfs", "growing xfs"),
    ("mkfs.btrfs", "btrfs"),
    ("btrfs", "growing btrfs"),
];

/// Checks the node. The exit code is 1 if something would keep volumes from working.
pub fn run(host: &Host, config: &Loaded, json: bool) -> Result<Printed> {
    let mut checks = Checks::default();
    let settings = config.or_default();
    match &config.problem {
        None => checks.add("config", Verdict::Ok, settings_in_short(settings)),
        Some(problem) => checks.add("config", Verdict::Failed, problem),
    }
    look_at_host(&mut checks, host);
    kubelet::look_at(&mut checks, host, settings);
    look_at_log(&mut checks, host, settings);
    look_for_tools(&mut checks, host, settings);
    if host.tools.has("lvs") {
        look_at_lvm(&mut checks, host, config);
        shared_disks::look_at(&mut checks, host, settings);
    }
    look_at_mounts(&mut checks, host, settings)?;

    let rows: Vec<Vec<String>> = checks
        .0
        .iter()
        .map(|check| {
            let word = match check.verdict {
                Verdict::Ok => "ok",
                Verdict::Warning => "WARNING",
                Verdict::Failed => "FAILED",
            };
            vec![word.to_owned(), check.about.clone(), check.finding.clone()]
        })
        .collect();
    let failed = checks.0.iter().any(|c| c.verdict == Verdict::Failed);
    let mut report = printed(&checks.0, columns(&rows), json)?;
    report.code = u8::from(failed);
    Ok(report)
}

fn settings_in_short(config: &Config) -> String {
    let file = &config.file;
    let there = if Path::new(file).exists() {
        ""
    } else {
        " (not there)"
    };
    format!(
        "{file}{there}: attach = {}, default_fs = {}, deactivate = {}",
        config.attach, config.default_fs, config.deactivate
    )
}

fn look_at_host(checks: &mut Checks, host: &Host) {
    if nix::unistd::geteuid().is_root() {
        checks.add("user", Verdict::Ok, "root");
    } else {
        checks.add(
            "user",
            Verdict::Failed,
            "not root: LVM and mounting need it; use sudo",
        );
    }
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
            checks.add(
                "device-mapper",
                Verdict::Ok,
                format!("library and kernel: {}", lines.join(", ")),
            );
        }
        Err(error) => checks.add(
            "device-mapper",
            Verdict::Failed,
            format!("{error:#}: load the kernel module dm_mod (`modprobe dm_mod`)"),
        ),
    }
    if host.kernel.mount_id(Path::new("/run/udev/control")).is_ok() {
        checks.add("udev", Verdict::Ok, "udevd's socket is there");
    } else {
        checks.add(
            "udev",
            Verdict::Warning,
            "no /run/udev/control: without udevd, LVM makes its device nodes itself or waits for \
             ever; start systemd-udevd",
        );
    }
    match problem_of_locks(host) {
        Some(problem) => checks.add("locks", Verdict::Failed, problem),
        None => checks.add("locks", Verdict::Ok, LOCK_DIR),
    }
}

/// What keeps the driver from locking a volume. The directory is made by the first call.
fn problem_of_locks(host: &Host) -> Option<String> {
    let (kernel, dir) = (host.kernel, Path::new(LOCK_DIR));
    if kernel.mount_id(dir).is_ok() {
        return if kernel.is_dir(dir).unwrap_or(false) {
            require_roots(kernel, dir).err()
        } else {
            Some(format!("{LOCK_DIR} is no directory; remove it"))
        };
    }
    let above = dir.parent().unwrap_or(dir);
    kernel.is_read_only(above).unwrap_or(true).then(|| {
        format!(
            "{LOCK_DIR} cannot be made: {} is not writable",
            above.display()
        )
    })
}

/// A log that cannot be written holds up no call, and so is easily missed.
fn look_at_log(checks: &mut Checks, host: &Host, config: &Config) {
    let LogTarget::File(file) = &config.log else {
        return;
    };
    let dir = file.parent().unwrap_or(file);
    if !host.kernel.is_dir(dir).unwrap_or(false) {
        checks.add(
            "log",
            Verdict::Warning,
            format!(
                "{} is no directory, so nothing is logged; make it, or correct `log` in {}",
                dir.display(),
                config.file
            ),
        );
    }
}

fn look_for_tools(checks: &mut Checks, host: &Host, config: &Config) {
    let missing: Vec<&str> = NEEDED.into_iter().filter(|t| !host.tools.has(t)).collect();
    if missing.is_empty() {
        checks.add("tools", Verdict::Ok, NEEDED.join(", "));
    } else {
        checks.add(
            "tools",
            Verdict::Failed,
            format!(
                "{} not found in tool_dirs: install lvm2, util-linux and e2fsprogs",
                missing.join(", ")
            ),
        );
    }
    for (tool, what) in FOR_SOME {
        if host.tools.has(tool) {
            continue;
        }
        let (verdict, why) = if what == config.default_fs.as_str() {
            (Verdict::Failed, ", and it is this node's default_fs")
        } else {
            (Verdict::Warning, "")
        };
        checks.add(
            "tools",
            verdict,
            format!("no {tool}: {what} cannot be done{why}"),
        );
    }
}

/// Mounts in kubelet's directories whose device the kernel has no more.
fn look_at_mounts(checks: &mut Checks, host: &Host, config: &Config) -> Result<()> {
    let table = Table::read(host.kernel)?;
    let mut count: usize = 0;
    for row in table.rows() {
        let from_device = row.source.starts_with("/dev/mapper");
        if !from_device || !is_kubelets(&row.mount_point, &config.kubelet_dirs) {
            continue;
        }
        count = count.saturating_add(1);
        if !matches!(host.kernel.device_number(&row.source), Ok(Some(_))) {
            checks.add(
                "mounts",
                Verdict::Failed,
                format!(
                    "{} is mounted from {}, which has gone; end its pod, or unmount it",
                    row.mount_point.display(),
                    row.source.display()
                ),
            );
        }
    }
    checks.add(
        "mounts",
        Verdict::Ok,
        format!("{count} in kubelet's directories"),
    );
    Ok(())
}
