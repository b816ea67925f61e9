//! Finds the mounts of a device in other mount namespaces.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::config::Config;
use crate::host::Kernel;
use crate::host::holders::{Search, command, mount_namespace};
use crate::mount::{Row, Table, is_kubelets, is_runtimes};
use crate::volume::decide::Elsewhere;
use crate::volume::device::Device;

/// The mounts of a device in other mount namespaces, one for each namespace. [`Search`] may stop early. A mount that it
/// did not reach still counts as an unseen opener. Leaves out the copies that end with a mount of this namespace.
/// `mounted`: this namespace has mounts of the device.
pub fn elsewhere(
    kernel: &Kernel,
    config: &Config,
    device: &Device,
    mounted: bool,
) -> Vec<Elsewhere> {
    let read = OnceCell::new();
    let own = || read.get_or_init(|| Table::read(kernel).unwrap_or_default());
    let mut seen: BTreeSet<PathBuf> = mount_namespace(kernel, "self").into_iter().collect();
    let of_host = mount_namespace(kernel, 1);
    let mut found = Vec::new();
    for pid in Search::new(kernel).processes() {
        // A process that has just ended has no mount namespace.
        let Some(its) = mount_namespace(kernel, pid).filter(|its| !seen.contains(its)) else {
            continue;
        };
        let is_hosts = of_host.as_ref() == Some(&its);
        seen.insert(its);
        let table = Table::of(kernel, &kernel.read_of(pid, "mountinfo"));
        let mut mounts = table.of_device(device.number);
        if mounted && !mounts.is_empty() {
            let here = own().of_device(device.number);
            mounts.retain(|row| !here.iter().any(|one| own().takes_along(one, (&table, row))));
        }
        let is_kubelets = |row: &Row| is_kubelets(kernel, &table, row, &config.kubelet_dirs);
        let mut kubelets = mounts.clone();
        kubelets.retain(|row| is_kubelets(row));
        let is_runtimes = |row: &Row| is_runtimes(kernel, row, &kubelets, &config.runtime_dirs);
        let hosts = |row: &Row| is_hosts && !is_kubelets(row) && !is_runtimes(row);
        let Some(first) = mounts.iter().max_by_key(|row| hosts(row)) else {
            continue;
        };
        found.push(Elsewhere {
            pid,
            command: command(kernel, pid),
            at: first.mount_point.clone(),
            hosts: hosts(first),
        });
    }
    found
}
