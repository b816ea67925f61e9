//! `flexvolume-lvm doctor`: what is wrong with this node, and what to do about it.
//!
//! [`Facts::ask`] asks the host. A check is a pure function of these facts, and a row of one of the tables here.

mod disks;
mod facts;
mod findings;
mod groups;
mod host;
mod kubelet;
mod leftovers;
#[cfg(test)]
mod tests;
mod volumes;

use anyhow::Result;

use crate::output::{self, Printed};
use driver::config::Loaded;
use driver::host::Host;
use facts::{Facts, Lvm, VolumeFacts};
use findings::{Finding, Findings};

/// A check of the node. Its word is a stable identifier for programs.
type OfNode = (&'static str, fn(&Facts) -> Vec<Finding>);
/// A check of volumes, groups and disks, made if LVM answers.
type OfLvm = (&'static str, fn(&Facts, &Lvm) -> Vec<Finding>);
/// A check of one volume, made of each.
type OfVolume = (&'static str, fn(&Facts, &VolumeFacts) -> Option<Finding>);

/// In the order in which they are printed.
const OF_NODE: [OfNode; 15] = [
    ("config", host::config),
    ("device-mapper", host::device_mapper),
    ("udev", host::udev),
    ("selinux", host::selinux),
    ("lvm-lock", host::lvm_lock),
    ("locks", host::locks),
    ("plugin-directory", kubelet::plugin_directory),
    ("kubelet", kubelet::kubelets),
    ("log", host::log),
    ("tools", host::tools),
    ("encryption", host::encryption),
    ("mkfs-options", host::mkfs_options),
    ("mounts", leftovers::mounts),
    ("pod-directories", leftovers::pod_directories),
    ("lvm", host::lvm),
];

const OF_LVM: [OfLvm; 17] = [
    ("config", groups::config),
    ("duplicate-groups", groups::duplicate_groups),
    ("hidden-groups", groups::hidden_groups),
    ("groups", groups::kept_away),
    ("room", groups::room),
    ("room", groups::metadata),
    ("disks", disks::disks),
    ("duplicate-disks", disks::duplicate_disks),
    ("short-disks", disks::short_disks),
    ("missing-disks", disks::missing_disks),
    ("unused-disks", disks::unused_disks),
    ("shared-disks", disks::shared_disks),
    ("snapshot-full", volumes::snapshots_full),
    ("clock", volumes::clock),
    ("mounts", volumes::lost),
    ("next-mount", volumes::next_mount),
    ("volumes", volumes::left_out),
];

const OF_VOLUME: [OfVolume; 11] = [
    ("filesystem-errors", volumes::failed),
    ("filesystem-errors", volumes::filesystem_errors),
    ("filesystem-full", volumes::filesystem_full),
    ("volume-health", volumes::health),
    ("mkfs-unfinished", volumes::mkfs_unfinished),
    ("may-be-formatted", volumes::may_be_formatted),
    ("kept-from-others", volumes::kept_from_others),
    ("pool-full", volumes::pool_full),
    ("luks-header", volumes::luks_header),
    ("volume-lock", volumes::lock),
    ("device-node", volumes::device_node),
];

/// `quiet`: prints only what is not well.
pub fn run(host: &Host, config: &Loaded, json: bool, quiet: bool) -> Result<Printed> {
    let facts = Facts::ask(host, config)?;
    let mut findings = findings(&facts);
    if quiet {
        findings.keep_unwell();
    }
    findings.printed(json, output::width())
}

fn findings(facts: &Facts) -> Findings {
    let mut findings = Findings::default();
    for (name, check) in OF_NODE {
        findings.add(name, check(facts));
    }
    if let Ok(lvm) = &facts.lvm {
        for (name, check) in OF_LVM {
            findings.add(name, check(facts, lvm));
        }
        for volume in &lvm.volumes {
            for (name, check) in OF_VOLUME {
                let found = check(facts, volume).map(|one| one.on(&volume.volume.id));
                let found = found.map(|one| one.noted_unless(volume.is_ours));
                findings.add(name, found);
            }
        }
    }
    findings
}
