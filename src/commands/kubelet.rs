//! What `lvm doctor` says of the kubelet that runs on this node.

use std::path::Path;

use super::doctor::{Checks, Verdict};
use crate::config::Config;
use crate::host::{Host, kubelet};

/// Compares what kubelet is told with what the driver is told, and names what a kubelet of this
/// version and its control plane do wrong.
pub(super) fn look_at(checks: &mut Checks, host: &Host, config: &Config) {
    let exe = std::env::current_exe().unwrap_or_default();
    // Only if this executable is where a kubelet looks for it.
    let plugin_dir = exe.parent().filter(|dir| is_drivers(dir));
    let plugin_dir = plugin_dir.and_then(Path::parent);
    for kubelet in kubelet::running(host) {
        let mut problems = kubelet.mismatches(host.kernel, plugin_dir, config);
        problems.extend(kubelet.faults(config));
        if problems.is_empty() {
            checks.add("kubelet", Verdict::Ok, kubelet.in_short());
        }
        for problem in problems {
            checks.add("kubelet", Verdict::Warning, problem);
        }
        let controller = plugin_dir.filter(|_| config.attach);
        if let Some(fault) =
            controller.and_then(|dir| kubelet.fault_of_controller(host.kernel, dir))
        {
            checks.add("control plane", Verdict::Warning, fault);
        }
    }
    for problem in plugin_dir.map(kubelet::broken_drivers).unwrap_or_default() {
        checks.add("other drivers", Verdict::Warning, problem);
    }
}

fn is_drivers(dir: &Path) -> bool {
    dir.file_name()
        .is_some_and(|name| name.to_string_lossy().contains('~'))
}
