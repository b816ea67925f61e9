//! `flexvolume-lvm doctor` on what pods left behind in kubelet's directories.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::findings::Checks;
use super::kubelet;
use crate::commands::survey::{Pods, uid_of};
use driver::config::Config;
use driver::host::{Host, own_name};
use driver::mount::{KubeletPath, Table, is_kubelets, mounted_at};
use driver::names::Shown;

/// Younger leftovers may belong to a pod that begins or ends just now.
const YOUNGEST: Duration = Duration::from_secs(600);

pub fn look_at(checks: &mut Checks, host: &Host, config: &Config) -> Result<()> {
    let own = kubelet::own_dir();
    let plugin = own.as_deref().and_then(Path::file_name);
    let plugin = plugin.unwrap_or("kubernetes.io~lvm".as_ref());
    let table = Table::read(host.kernel)?;
    let pods = Pods::read(host.kernel);
    let mut count: usize = 0;
    for row in table.rows() {
        let at = &row.mount_point;
        if !row.source.starts_with("/dev/mapper")
            || !is_kubelets(host.kernel, &table, row, &config.kubelet_dirs)
        {
            continue;
        }
        count = count.saturating_add(1);
        let shown = at.shown();
        if !matches!(host.kernel.device_number(&row.source), Ok(Some(_))) {
            let finding = format!("is mounted from {}, which has gone", row.source.shown());
            checks
                .failed("mounts", finding)
                .on(&shown)
                .why("every access to it fails")
                .run(format!("end its pod, or: umount {shown}"));
        } else if let Some(uid) = uid_of(at)
            && pods.ended(uid)
            && is_old(host, at)
        {
            let finding = format!("is mounted for pod {uid}, which has no logs here");
            checks
                .warning("mounts", finding)
                .on(&shown)
                .why("no other node gets the volume, and nothing checks it, while it is mounted")
                .run(format!("if kubelet knows no such pod: umount {shown}"));
        } else if KubeletPath::of(at) == KubeletPath::Global
            && is_old(host, at)
            && !table
                .rows()
                .iter()
                .any(|other| other.device == row.device && uid_of(&other.mount_point).is_some())
        {
            checks
                .warning("mounts", "is mounted for the whole node, and for no pod")
                .on(&shown)
                .why("no other node gets the volume while it is mounted")
                .run(format!("if kubelet starts no pod with it: umount {shown}"));
        }
    }
    checks.ok("mounts", format!("{count} in kubelet's directories"));
    for dir in &config.kubelet_dirs {
        look_at_pods(checks, host, &dir.join("pods"), plugin);
    }
    Ok(())
}

/// Directories in which a volume of this driver should be mounted.
fn look_at_pods(checks: &mut Checks, host: &Host, pods: &Path, plugin: &OsStr) {
    let list = |dir: &Path| host.kernel.list(dir).unwrap_or_default();
    for uid in list(pods) {
        let volumes = pods.join(uid).join("volumes").join(plugin);
        for name in list(&volumes) {
            let at = volumes.join(name);
            let is_mounted = !matches!(mounted_at(host.kernel, &at), Ok(None));
            if is_mounted || !is_old(host, &at) {
                continue;
            }
            let shown = at.shown();
            if list(&at).is_empty() {
                let me = own_name();
                checks
                    .warning("pod-directories", "nothing is mounted there")
                    .on(&shown)
                    .why("its pod waits for the volume, or has ended and kubelet cannot clear it away")
                    .run(format!("{me} log, and if kubelet knows no such pod: rmdir {shown}"));
            } else {
                let finding = "nothing is mounted there, but files are in it";
                checks
                    .warning("pod-directories", finding)
                    .on(&shown)
                    .why("a pod wrote them to the host's own disk, or kubelet cannot clear them away")
                    .run(format!("ls -la {shown}"));
            }
        }
    }
}

fn is_old(host: &Host, path: &Path) -> bool {
    // A directory that is mounted on hides its own: that of the volumes tells as well.
    let dir = path.parent().unwrap_or(path);
    host.kernel.age(dir).is_some_and(|age| age >= YOUNGEST)
}
