//! Checks of the kubelets that run on this node.

use super::facts::Facts;
use super::findings::Finding;

pub fn plugin_directory(facts: &Facts) -> Vec<Finding> {
    let problem = facts.plugin_dir_problem.iter().map(|problem| {
        Finding::warning(problem)
            .why("who may write there can put another program in the driver's place")
    });
    problem.collect()
}

/// Where the settings of kubelet and driver differ.
pub fn kubelets(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for kubelet in &facts.kubelets {
        let plugin_dir = facts.plugin_dir.as_deref();
        let problems = kubelet.problems(&facts.host_name, plugin_dir, &facts.config);
        if problems.is_empty() {
            found.push(Finding::ok(kubelet.in_short()));
        }
        found.extend(problems.into_iter().map(Finding::failed));
    }
    found
}
