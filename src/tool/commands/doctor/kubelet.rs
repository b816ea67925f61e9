//! Checks of the kubelets that run on this node.

use super::facts::Facts;
use super::findings::{Finding, Severity};

pub fn plugin_directory(facts: &Facts) -> Vec<Finding> {
    let problem = facts.plugin_dir_problem.iter().map(|problem| {
        Finding::warning(problem)
            .why("who may write there can put another program in the driver's place")
    });
    problem.collect()
}

/// Where the settings of kubelet and driver differ, and bugs of kubelet's version.
pub fn kubelets(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for kubelet in &facts.kubelets {
        let plugin_dir = facts.plugin_dir.as_deref();
        let problems = kubelet.problems(&facts.host_name, plugin_dir, &facts.config);
        if problems.is_empty() {
            found.push(Finding::ok(kubelet.in_short()));
        }
        found.extend(problems.into_iter().map(Finding::failed));
        let faults = kubelet.faults(&facts.config).into_iter();
        found.extend(faults.map(|fault| Finding::new(Severity::Note, fault)));
    }
    found
}

pub fn control_plane(facts: &Facts) -> Vec<Finding> {
    let Some(plugin_dir) = facts.plugin_dir.as_deref().filter(|_| facts.config.attach) else {
        return Vec::new();
    };
    let kubelets = facts.kubelets.iter();
    let faults = kubelets.filter_map(|kubelet| kubelet.fault_of_controller(plugin_dir));
    faults.map(Finding::failed).collect()
}

pub fn other_drivers(facts: &Facts) -> Vec<Finding> {
    let broken = facts.broken_drivers.iter();
    broken.map(Finding::warning).collect()
}
