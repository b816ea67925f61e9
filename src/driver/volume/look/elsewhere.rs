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
        let of_hosts = if is_hosts {
            not_for_pods(kernel, config, &table, &mounts).pop()
        } else {
            None
        };
        if let Some(named) = of_hosts.or(mounts.pop()) {
            found.push(Elsewhere {
                pid,
                command: command(kernel, pid),
                at: named.mount_point.clone(),
                hosts: of_hosts.is_some(),
            });
        }
    }
    found
}

/// Those of the mounts that neither kubelet nor a container runtime has made for pods.
fn not_for_pods<'a>(
    kernel: &Kernel,
    config: &Config,
    table: &Table,
    mounts: &[&'a Row],
) -> Vec<&'a Row> {
    let (kubelets, mut others): (Vec<&Row>, Vec<&Row>) = mounts
        .iter()
        .partition(|row| is_kubelets(kernel, table, row, &config.kubelet_dirs));
    others.retain(|row| !is_runtimes(kernel, row, &kubelets, &config.runtime_dirs));
    others
}
