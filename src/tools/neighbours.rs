//! Other drivers in kubelet's plugin directory, as far as they concern this one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::host::files::{self, Kind};

/// What is wrong with drivers that kubelet could not start, a line each.
///
/// One of them is enough to keep an older kubelet from loading any driver when it starts: it throws
/// away what it found with the first error (1.20's pkg/volume/plugins.go, refreshProbedPlugins).
pub fn problems(plugin_dir: &Path) -> Vec<String> {
    let names = files::list(plugin_dir).unwrap_or_default();
    let dirs = names.iter().map(|name| plugin_dir.join(name));
    dirs.filter_map(|dir| problem(&dir)).collect()
}

/// As kubelet's pkg/volume/flexvolume/probe.go takes the names: `<vendor>~<driver>/<driver>`.
fn problem(dir: &Path) -> Option<String> {
    let name = dir.file_name()?.to_string_lossy();
    if name.starts_with('.') || !matches!(files::kind(dir), Ok(Kind::Dir)) {
        return None;
    }
    let exe = dir.join(name.rsplit('~').next()?);
    let starts = match exe.symlink_metadata() {
        // It may lead to where only the host can look, and this may run in a container.
        Ok(it) if it.is_symlink() => true,
        Ok(it) => it.is_file() && it.permissions().mode() & 0o111 != 0,
        Err(_) => false,
    };
    (!starts).then(|| {
        format!(
            "{} is no executable: an older kubelet (1.20, for one) that starts loads no driver \
             then, this one neither, and pods wait with \"no volume plugin matched\"; complete \
             that driver, or remove its directory",
            exe.display()
        )
    })
}
