//! `flexvolume-lvm doctor` on LVM's own setup: groups that LVM does not see, and volumes that the kernel cannot
//! activate or mount.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::autoextend;
use super::findings::Checks;
use crate::commands::survey::Walk;
use crate::host::Command;
use crate::lvm::{self, Sight, Volume};
use crate::names::Shown;

pub fn look_at(checks: &mut Checks, walk: &Walk) {
    look_for_twins(checks, walk);
    look_for_hidden_groups(checks, walk);
    look_at_kernel(checks, walk);
    look_for_thin_check(checks, walk);
    autoextend::look_at(checks, walk);
}

fn look_for_twins(checks: &mut Checks, walk: &Walk) {
    let mut numbers: BTreeMap<_, usize> = BTreeMap::new();
    for group in &walk.groups {
        let number = numbers.entry(&group.name).or_default();
        *number = number.saturating_add(1);
    }
    for (vg, number) in numbers.into_iter().filter(|(_, number)| *number > 1) {
        checks
            .failed("duplicate-groups", lvm::twins(vg, number))
            .on(vg)
            .run(format!("vgrename UUID {vg}-2"));
    }
}

/// Groups on disks that lvm.conf or the devices file leaves out.
fn look_for_hidden_groups(checks: &mut Checks, walk: &Walk) {
    let hidden = groups_beyond(walk, Sight::All);
    if hidden.is_empty() {
        return;
    }
    let unlisted = groups_beyond(walk, Sight::Unlisted);
    for (vg, disks) in hidden {
        let (where_told, command) = if unlisted.contains_key(&vg) {
            let add = |disk: &String| format!("lvmdevices --adddev {disk}");
            let commands: Vec<String> = disks.iter().map(add).collect();
            ("LVM's devices file does not list it", commands.join(" && "))
        } else {
            (
                "a filter in lvm.conf leaves it out",
                "lvmconfig devices/filter devices/global_filter, and correct what that prints"
                    .to_owned(),
            )
        };
        let finding = format!("is on {}, and {where_told}", disks.join(", "));
        checks
            .warning("hidden-groups", finding)
            .on(&vg)
            .why("a pod that names the group waits with `this node has no volume group`")
            .run(command);
    }
}

/// The groups that LVM would see and does not, with their disks.
fn groups_beyond(walk: &Walk, sight: Sight) -> BTreeMap<String, Vec<String>> {
    let named = &walk.config.volume_groups;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let all = lvm::disks(walk.host, sight);
    for lvm::Disk { vg, path, .. } in all.unwrap_or_default() {
        let is_ours = named.is_empty() || named.keys().any(|name| name.as_str() == vg);
        if is_ours && !walk.has_group(&vg) {
            groups.entry(vg).or_default().push(path.shown().to_string());
        }
    }
    groups
}

/// LVM checks the metadata of a thin pool before it activates it, and goes on without if it cannot.
fn look_for_thin_check(checks: &mut Checks, walk: &Walk) {
    if !walk.volumes.iter().any(autoextend::is_thin_pool) {
        return;
    }
    let command = Command::reads("lvmconfig", walk.config.limits.query);
    let command = command.args(["--typeconfig", "full", "global/thin_check_executable"]);
    let said = walk.host.run(&command).map(|output| output.stdout);
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    let path = said
        .trim()
        .split_once('=')
        .map(|(_, path)| path.trim_matches('"'));
    // Empty: an administrator wants none.
    if let Some(path) = path.filter(|path| !path.is_empty())
        && !walk.host.kernel.exists(Path::new(path))
    {
        checks
            .warning("thin-check", format!("no {path}"))
            .why("LVM activates thin pools without a check of their metadata")
            .run("install thin-provisioning-tools (elsewhere than on Debian, device-mapper-persistent-data)");
    }
}

/// Targets and filesystems that the kernel lacks for the volumes that are here.
fn look_at_kernel(checks: &mut Checks, walk: &Walk) {
    const TARGETS: [(&str, &str, &str); 4] = [
        ("thin", "thin-pool", "dm-thin-pool"),
        ("raid", "raid", "dm-raid"),
        ("cache", "cache", "dm-cache"),
        ("writecache", "writecache", "dm-writecache"),
    ];
    let install = |module: &str| {
        format!("modprobe {module}, and install the package of the kernel that has it")
    };
    let (host, limit) = (walk.host, walk.config.limits.query);
    let can_load = |module: &str| {
        let dry = Command::reads("modprobe", limit).args(["--dry-run", "--quiet", module]);
        host.run(&dry).is_ok()
    };
    let targets = host.run(&Command::reads("dmsetup", limit).args(["targets"]));
    let Ok(targets) = targets.map(|output| output.stdout) else {
        return; // Said already.
    };
    let targets = String::from_utf8_lossy(&targets).into_owned();
    let has = |target: &str| {
        targets
            .lines()
            .any(|line| line.split_whitespace().next() == Some(target))
    };
    for (layout, target, module) in TARGETS {
        let is_one = |volume: &&Volume| volume.layout.split(',').any(|part| part == layout);
        let used = walk.volumes.iter().find(is_one);
        if let Some(volume) = used.filter(|_| !has(target) && !can_load(module)) {
            let finding = format!("this kernel has no {target}, and no module {module}");
            checks
                .failed("kernel-modules", finding)
                .on(&volume.id)
                .why("the volume cannot be activated")
                .run(install(module));
        }
    }
    let known = host
        .kernel
        .read(Path::new("/proc/filesystems"))
        .unwrap_or_default();
    let made = walk
        .volumes
        .iter()
        .filter_map(|volume| volume.record.made.as_ref());
    let mut wanted: BTreeSet<&str> = made.map(|made| &*made.fs).collect();
    wanted.insert(walk.config.default_fs.as_str());
    for fs in wanted {
        let is_known = known
            .lines()
            .any(|line| line.trim_start_matches("nodev").trim() == fs);
        // The kernel itself asks for it by this name.
        if !is_known && !can_load(&format!("fs-{fs}")) {
            let finding = format!("this kernel has no {fs}, and no module for it");
            checks
                .failed("kernel-filesystems", finding)
                .why("a volume with that filesystem cannot be mounted")
                .run(install(fs));
        }
    }
}
