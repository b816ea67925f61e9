//! Checks of the host: its tools, device-mapper, udev, locks and log.

use std::time::Duration;

use super::facts::Facts;
use super::findings::{Finding, Severity};
use driver::config::LogTarget;
use driver::host::holders;
use driver::lvm::Udev;
use driver::names::Shown;
use driver::volume::lock::LOCK_DIR;

/// The tools without which nothing works.
const NEEDED: [&str; 10] = [
    "lvs", "vgs", "lvchange", "lvcreate", "lvextend", "dmsetup", "blkid", "wipefs", "mount",
    "e2fsck",
];

/// The tool of encrypted volumes. Without those it is not missed.
const ENCRYPTS: &str = "cryptsetup";

/// A tool that only some filesystems need.
struct ForSome {
    tool: &'static str,
    needed_for: &'static str,
    package: &'static str,
}

#[rustfmt::skip] // a row is a line
const FOR_SOME: [ForSome; 8] = [
    ForSome { tool: "mkfs.ext2", needed_for: "ext2", package: "e2fsprogs" },
    ForSome { tool: "mkfs.ext3", needed_for: "ext3", package: "e2fsprogs" },
    ForSome { tool: "mkfs.ext4", needed_for: "ext4", package: "e2fsprogs" },
    ForSome { tool: "resize2fs", needed_for: "growing ext", package: "e2fsprogs" },
    ForSome { tool: "mkfs.xfs", needed_for: "xfs", package: "xfsprogs" },
    ForSome { tool: "xfs_growfs", needed_for: "growing xfs", package: "xfsprogs" },
    ForSome { tool: "mkfs.btrfs", needed_for: "btrfs", package: "btrfs-progs" },
    ForSome { tool: "btrfs", needed_for: "growing btrfs", package: "btrfs-progs" },
];

/// Each tool that the driver ever runs.
pub fn all_tools() -> impl Iterator<Item = &'static str> {
    let some = FOR_SOME.iter().map(|one| one.tool);
    NEEDED.into_iter().chain(some).chain([ENCRYPTS])
}

pub fn config(facts: &Facts) -> Vec<Finding> {
    if let Some(problem) = &facts.config_problem {
        return vec![Finding::failed(problem)];
    }
    let config = &facts.config;
    let there = if facts.has_config_file {
        ""
    } else {
        " (not there)"
    };
    vec![Finding::ok(format!(
        "{}{there}: attach = {}, default_fs = {}, deactivate = {}",
        config.file, config.attach, config.default_fs, config.deactivate
    ))]
}

pub fn device_mapper(facts: &Facts) -> Vec<Finding> {
    let said = match &facts.device_mapper {
        Ok(said) => said,
        Err(problem) => {
            let finding = Finding::failed(problem);
            let finding = finding.why("without it there are no logical volumes");
            return vec![finding.run("modprobe dm_mod")];
        }
    };
    let versions = said.lines().filter_map(|line| line.split_once(':'));
    let versions: Vec<&str> = versions.map(|(_, version)| version.trim()).collect();
    let versions = versions.join(", ");
    vec![Finding::ok(format!("library and kernel: {versions}"))]
}

pub fn udev(facts: &Facts) -> Vec<Finding> {
    let problem = match facts.udev {
        Udev::Listens => return vec![Finding::ok("udevd listens on its socket")],
        Udev::Killed => "udevd's socket is there, but no process listens on it: udevd was killed",
        Udev::NoSocket => "no /run/udev/control",
        Udev::CannotBeHeard => {
            return vec![
                Finding::failed("this process runs in an IPC namespace of its own, where udevd's answer does not come")
                    .why("if kubelet runs here, each call that activates or grows a volume waits until its limit")
                    .run("readlink /proc/1/ns/ipc /proc/self/ns/ipc, and run kubelet in the host's (hostIPC: true)"),
            ];
        }
    };
    vec![
        Finding::warning(problem)
            .why("without udevd, LVM makes its device nodes itself or waits for ever")
            .run("systemctl restart systemd-udevd"),
    ]
}

pub fn selinux(facts: &Facts) -> Vec<Finding> {
    let Some(selinux) = &facts.selinux else {
        return Vec::new();
    };
    let exe = selinux.exe.shown();
    let (domain, label) = (selinux.domain.shown(), selinux.label.shown());
    vec![if selinux.is_mislabelled {
        Finding::warning(format!("{exe} has the SELinux label {label}"))
            .why("the policy has another label for it, and kubelet may not be allowed to run it")
            .run(format!("restorecon -v {exe}"))
    } else {
        Finding::ok(format!(
            "SELinux is enforcing; this runs in {domain}, {exe} is labelled {label}"
        ))
    }]
}

pub fn lvm_lock(facts: &Facts) -> Vec<Finding> {
    const LONG: Duration = Duration::from_secs(10);
    let lockers = facts.lvm_lockers.iter();
    let lockers: Vec<_> = lockers.filter(|one| one.age >= LONG).collect();
    let Some(first) = lockers.first() else {
        return Vec::new();
    };
    let (who, age) = (holders::name_them(&lockers), first.age.as_secs());
    let finding = format!("LVM was locked by {who}, which has run for {age} s");
    vec![
        Finding::warning(finding)
            .why("every other LVM command waits for that, the driver's too")
            .run(format!("ps -fp {}, and answer or end it", first.pid)),
    ]
}

pub fn locks(facts: &Facts) -> Vec<Finding> {
    vec![match &facts.lock_problem {
        None => Finding::ok(LOCK_DIR),
        Some(problem) => Finding::failed(problem)
            .why("every call locks its volume there, so none can be mounted")
            .run(format!("df /run; df -i /run; ls -ld {LOCK_DIR}")),
    }]
}

/// No call fails for a log that cannot be written, so nobody would notice.
pub fn log(facts: &Facts) -> Vec<Finding> {
    let file = &facts.config.file;
    match &facts.config.log {
        _ if facts.has_log => Vec::new(),
        LogTarget::None => Vec::new(),
        LogTarget::Syslog => {
            vec![
                Finding::warning("no /dev/log, so nothing is logged").run(format!(
                    "systemctl start systemd-journald.socket, or set `log` in {file} to a file"
                )),
            ]
        }
        LogTarget::File(log) => vec![Finding::warning(format!(
            "{} is not a directory, so nothing is logged; make it, or correct `log` in {file}",
            log.parent().unwrap_or(log).shown()
        ))],
    }
}

pub fn tools(facts: &Facts) -> Vec<Finding> {
    let problems = facts.tools.iter().filter_map(|tool| tool.problem.as_ref());
    let mut found: Vec<Finding> = problems.map(Finding::failed).collect();
    let all_run = found.is_empty();
    let problems = facts.tool_dir_problems.iter();
    found.extend(
        problems.map(|it| Finding::new(Severity::Note, it).why("no tool that is put there is run")),
    );
    let missing = NEEDED.into_iter().filter(|tool| !facts.has_tool(tool));
    let missing = missing.collect::<Vec<_>>().join(", ");
    if !missing.is_empty() {
        found.push(Finding::failed(format!(
            "{missing} not found in tool_dirs: install lvm2, util-linux and e2fsprogs"
        )));
    } else if all_run {
        found.push(Finding::ok(NEEDED.join(", ")));
    }
    let lacking = FOR_SOME.iter().filter(|one| !facts.has_tool(one.tool));
    found.extend(lacking.map(|one| {
        let (tool, needed_for, package) = (one.tool, one.needed_for, one.package);
        let (level, default) = if needed_for == facts.config.default_fs.as_str() {
            (Severity::Failed, ", and it is this node's default_fs")
        } else {
            (Severity::Warning, "")
        };
        let finding = format!("no {tool}, which {needed_for} needs{default}: install {package}");
        Finding::new(level, finding)
    }));
    found
}

/// What encrypted volumes need, where the config or a record has any.
pub fn encryption(facts: &Facts) -> Vec<Finding> {
    const WHY: &str = "no encrypted volume can be opened";
    let Some(crypto) = &facts.crypto else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if !facts.has_tool(ENCRYPTS) {
        let finding =
            format!("{ENCRYPTS} not found in tool_dirs: install cryptsetup-bin (cryptsetup)");
        found.push(Finding::failed(finding).why(WHY));
    }
    if !crypto.has_dm_crypt {
        let finding = "the kernel has no dm-crypt, and no module of that is installed";
        found.push(Finding::failed(finding).why(WHY).run("modprobe dm_crypt"));
    }
    if !crypto.has_cipher {
        let finding = "the kernel lists neither xts(aes) nor a module for xts";
        let finding = Finding::warning(finding).why("LUKS2 is aes-xts-plain64");
        found.push(finding.run("modprobe xts; grep xts /proc/crypto"));
    }
    let problems = crypto.key_problems.iter().map(|problem| {
        Finding::failed(problem).why("the volumes whose passphrase it has cannot be opened")
    });
    found.extend(problems);
    if found.is_empty() {
        found.push(Finding::ok("cryptsetup, dm-crypt, aes-xts"));
    }
    if facts.lvm.as_ref().is_ok_and(|lvm| lvm.reads_inside) {
        let finding = "LVM looks for disks inside open encrypted volumes";
        let finding = Finding::new(Severity::Note, finding).why(
            "if an LVM command is killed while such a volume is suspended, all LVM commands of this node wait, see \
             docs/encryption.md",
        );
        found.push(finding.run(
            "in the section devices of /etc/lvm/lvm.conf add \"r|^/dev/mapper/flexvolume[.]|\" to global_filter",
        ));
    }
    found
}

/// Options in the config that mkfs does not take.
pub fn mkfs_options(facts: &Facts) -> Vec<Finding> {
    let problems = facts.mkfs_problems.iter().map(|(fs, problem)| {
        let file = &facts.config.file;
        Finding::failed(problem)
            .on(fs)
            .why("no new volume can be formatted")
            .run(format!(
                "correct mkfs_options in [filesystem.{fs}] of {file}"
            ))
    });
    problems.collect()
}

pub fn lvm(facts: &Facts) -> Vec<Finding> {
    match &facts.lvm {
        Ok(lvm) => vec![Finding::ok(format!(
            "{} logical volumes",
            lvm.volumes.len()
        ))],
        // A tool that is missing is named as such.
        Err(_) if !facts.has_tool("lvs") => Vec::new(),
        Err(problem) => vec![Finding::failed(problem)],
    }
}
