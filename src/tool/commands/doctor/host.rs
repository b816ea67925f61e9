//! Checks of the host: its config, udev, locks, tools and kubelets.

use std::collections::BTreeSet;

use super::facts::NodeFacts;
use super::tools::{Need, TOOLS, Tool};
use crate::commands::survey::{Finding, Severity};
use crate::output::counted;
use driver::lvm::Udev;
use driver::volume::lock::LOCK_DIR;

pub fn config(facts: &NodeFacts) -> Vec<Finding> {
    if let Some(problem) = &facts.config_problem {
        return vec![Finding::failed("config", problem)];
    }
    let config = &facts.config;
    let there = if facts.has_config_file {
        ""
    } else {
        " (not there)"
    };
    vec![Finding::ok(
        "config",
        format!(
            "{}{there}: attach = {}, default_fs = {}, deactivate = {}",
            config.file, config.attach, config.default_fs, config.deactivate
        ),
    )]
}

pub fn udev(facts: &NodeFacts) -> Vec<Finding> {
    let problem = match facts.udev {
        Udev::Listens => return Vec::new(),
        Udev::Killed => "udevd's socket is there, but no process listens on it: udevd was killed",
        Udev::NoSocket => "no /run/udev/control",
        Udev::CannotBeHeard => {
            return vec![
                Finding::failed("udev", "this process runs in an IPC namespace of its own, where udevd's answer does not come")
                    .why("a kubelet that runs here needs the host's IPC namespace (hostIPC: true), or each call that activates or grows a volume waits until its limit")
                    .run("readlink /proc/1/ns/ipc /proc/self/ns/ipc"),
            ];
        }
    };
    vec![
        Finding::warning("udev", problem)
            .why("without udevd, LVM makes its device nodes itself or waits for ever")
            .run("systemctl restart systemd-udevd"),
    ]
}

pub fn locks(facts: &NodeFacts) -> Vec<Finding> {
    vec![match &facts.lock_problem {
        None => Finding::ok("locks", LOCK_DIR),
        Some(problem) => Finding::failed("locks", problem)
            .why("every call locks its volume there, so none can be mounted")
            .run(format!("df /run; df -i /run; ls -ld {LOCK_DIR}")),
    }]
}

pub fn tools(facts: &NodeFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts
        .distrusted_tools
        .iter()
        .map(|(name, problem)| {
            let its = TOOLS.iter().find(|tool| tool.name == *name);
            // Only a tool that something here needs keeps a pod from its volume.
            let severity = its.and_then(|tool| tool.need.severity(facts));
            Finding::new("tools", severity.unwrap_or(Severity::Note), problem)
        })
        .collect();
    let missing = TOOLS.iter().filter(|tool| !facts.has_tool(tool.name));
    let (needed, others): (Vec<&Tool>, Vec<&Tool>) =
        missing.partition(|tool| matches!(tool.need, Need::All));
    if !needed.is_empty() {
        found.push(all_missing(&needed));
    } else if found.is_empty() {
        let all = TOOLS.iter().filter(|tool| matches!(tool.need, Need::All));
        let names: Vec<&str> = all.map(|tool| tool.name).collect();
        found.push(Finding::ok("tools", names.join(", ")));
    }
    found.extend(others.into_iter().filter_map(|tool| {
        let severity = tool.need.severity(facts)?;
        let (name, package, words) = (tool.name, tool.package, tool.need.in_words(facts));
        let finding = format!("no {name}, which {words}: install {package}");
        Some(Finding::new("tools", severity, finding))
    }));
    found
}

/// One finding for all missing tools that every node needs.
fn all_missing(tools: &[&Tool]) -> Finding {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let sorted: BTreeSet<&str> = tools.iter().map(|tool| tool.package).collect();
    let packages = Vec::from_iter(sorted);
    let (names, packages) = (names.join(", "), packages.join(", "));
    let finding = format!("{names} not found in tool_dirs: install {packages}");
    Finding::failed("tools", finding)
}

pub fn lvm(facts: &NodeFacts) -> Vec<Finding> {
    match &facts.lvm {
        Ok(lvm) => vec![Finding::ok(
            "lvm",
            counted(lvm.volumes.len(), "logical volume"),
        )],
        // The check of tools reports a missing `lvs`.
        Err(_) if !facts.has_tool("lvs") => Vec::new(),
        Err(problem) => vec![Finding::failed("lvm", problem)],
    }
}

pub fn plugin_directory(facts: &NodeFacts) -> Vec<Finding> {
    let problem = facts.plugin_dir_problem.iter().map(|problem| {
        Finding::warning("plugin-directory", problem)
            .why("who may write there can put another program in the driver's place")
    });
    problem.collect()
}

/// Compares kubelet's settings with the driver's.
pub fn kubelets(facts: &NodeFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    for kubelet in &facts.kubelets {
        let plugin_dir = facts.plugin_dir.as_deref();
        let problems = kubelet.problems(&facts.host_name, plugin_dir, &facts.config);
        if problems.is_empty() {
            found.push(Finding::ok("kubelet", kubelet.in_short()));
        }
        found.extend(
            problems
                .into_iter()
                .map(|it| Finding::failed("kubelet", it)),
        );
    }
    found
}
