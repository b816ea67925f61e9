//! `flexvolume-lvm doctor` on the kubelet that runs on this node.

use std::path::{Path, PathBuf};

use super::findings::{Checks, Level};
use crate::kubelet;
use driver::config::Config;
use driver::host::Host;
use driver::host::trust::require_roots;

/// Compares the settings of kubelet and driver, and names bugs of this version of kubelet and of its
/// control plane.
pub(super) fn look_at(checks: &mut Checks, host: &Host, config: &Config) {
    let own = own_dir();
    let plugin_dir = own.as_deref().and_then(Path::parent);
    if let Some(problem) = plugin_dir.and_then(|dir| require_roots(host.kernel, dir).err()) {
        checks
            .warning("plugin-directory", problem)
            .why("who may write there can put another program in the driver's place");
    }
    for kubelet in kubelet::running(host) {
        let problems = kubelet.problems(host.kernel, plugin_dir, config);
        if problems.is_empty() {
            checks.ok("kubelet", kubelet.in_short());
        }
        for problem in problems {
            checks.failed("kubelet", problem);
        }
        for fault in kubelet.faults(config) {
            checks.add("kubelet", Level::Note, fault);
        }
        let seen = plugin_dir.filter(|_| config.attach);
        let fault = seen.and_then(|dir| kubelet.fault_of_controller(host.kernel, dir));
        if let Some(fault) = fault {
            checks.failed("control-plane", fault);
        }
    }
    for problem in plugin_dir.map(kubelet::broken_drivers).unwrap_or_default() {
        checks.warning("other-drivers", problem);
    }
}

/// The driver's own directory, if a kubelet looks for this executable there.
pub(super) fn own_dir() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let dir = exe.parent()?;
    let is_drivers = dir.file_name()?.to_str()?.contains('~');
    is_drivers.then(|| dir.to_owned())
}
