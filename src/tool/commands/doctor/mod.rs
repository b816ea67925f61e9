//! `flexvolume-lvm doctor`: what is wrong with this node, and what to do about it.
//!
//! [`NodeFacts::ask`] asks the host. A check is a pure function of these facts, and a row in one of the tables here.
//! `survey` judges volumes and groups, as it does for `status` and `check`.

mod facts;
mod findings;
mod groups;
mod host;
#[cfg(test)]
mod tests;
mod tools;

use anyhow::Result;

use crate::commands::survey::{Finding, GroupHealth, Health};
use crate::output::{self, Printed};
use driver::config::Loaded;
use driver::host::Host;
pub use facts::{LvmFacts, NodeFacts};
pub use findings::Findings;

/// A check of the node.
type OfNode = fn(&NodeFacts) -> Vec<Finding>;
/// A check of LVM's answers. It runs only if LVM answers.
type OfLvm = fn(&NodeFacts, &LvmFacts) -> Vec<Finding>;

/// The checks, in the order in which their findings are printed.
const OF_NODE: [OfNode; 7] = [
    host::config,
    host::udev,
    host::locks,
    host::plugin_directory,
    host::kubelets,
    host::tools,
    host::lvm,
];

const OF_LVM: [OfLvm; 2] = [groups::config, groups::unread_volumes];

/// `quiet`: prints only warnings and failures.
pub fn run(host: &Host, config: &Loaded, json: bool, quiet: bool) -> Result<Printed> {
    let facts = NodeFacts::ask(host, config, |is_mountable| {
        LvmFacts::ask(host, config, is_mountable)
    });
    let mut found = findings(&facts);
    if quiet {
        found.keep_unwell();
    }
    found.printed(json, output::width())
}

/// All findings about a node.
pub fn findings(facts: &NodeFacts) -> Findings {
    let mut findings = Findings::default();
    for check in OF_NODE {
        findings.add(check(facts));
    }
    let Ok(lvm) = &facts.lvm else {
        return findings;
    };
    for check in OF_LVM {
        findings.add(check(facts, lvm));
    }
    findings.add(lvm.node.findings());
    findings.add(lvm.groups.iter().flat_map(GroupHealth::findings));
    // The driver's own volumes come first: if two findings have the same message, only the first is printed.
    let (ours, others): (Vec<_>, Vec<_>) = lvm.volumes.iter().partition(|one| one.is_ours);
    findings.add(ours.into_iter().chain(others).flat_map(Health::findings));
    findings
}
