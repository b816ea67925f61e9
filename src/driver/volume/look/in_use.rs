//! Names the users of a volume for messages, and finds mounts in other mount namespaces.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::device::volume_of;
use crate::config::Config;
use crate::host::holders::{Search, command, mount_namespace};
use crate::host::{Host, Kernel};
use crate::mount::{KubeletPath, Row, Table, is_kubelets, mounted_at};
use crate::names::{Foreign, LvId, ObjectName, Shown};
use crate::volume::decide::{Elsewhere, Occupied, There, Uses, same_name_advice};
use crate::volume::device::Device;
use crate::volume::job::{Job, Subject};

/// Looks what is mounted at the directory of the call; and in attach mode in the global directory of this pod's volume,
/// which belongs to it alone. `top`: the device that is to be mounted.
pub fn see_places(job: &Job, table: &Table, top: &Device, uses: &mut Uses) -> Result<()> {
    let Subject { host, config, .. } = job.subject;
    let Some(dir) = job.dir else {
        return Ok(());
    };
    let place = KubeletPath::of(dir);
    // The name matters only if kubelet keeps one mount per name.
    let name = job.options.volume_name.as_ref();
    let name = name.filter(|_| config.attach && place != KubeletPath::Other);
    let at = |dir: &Path| -> Result<Option<There>> {
        let id = mounted_at(host.kernel, dir)?;
        Ok(id.and_then(|id| table.by_id(id)).map(|row| {
            if row.is_of(top.number) {
                return There::This(row.clone());
            }
            There::Another(Occupied {
                dir: dir.to_owned(),
                by: name_of(host, row),
                name: name.map(ToString::to_string),
            })
        }))
    };
    uses.there = at(dir)?;
    if uses.there.is_none()
        && let KubeletPath::Pod { global } = place
        && config.attach
    {
        uses.there = at(&global)?.filter(|there| matches!(there, There::Another(_)));
    }
    Ok(())
}

/// Names the volume or the source of a mount.
fn name_of(host: &Host, row: &Row) -> Foreign {
    match volume_of(host.kernel, row.block_device()) {
        Some(volume) => volume.id.to_string().shown(),
        None => format!("{} ({})", row.source.shown(), row.fs_type).shown(),
    }
}

/// Fails if kubelet passes another device than this one, as it does if two volumes share a name.
pub fn require_same(job: &Job, device: &Device) -> Result<()> {
    let (host, word) = (job.subject.host, job.handed);
    if word.is_empty() {
        return Ok(());
    }
    let number = host.kernel.device_number(Path::new(word))?;
    let is_same = match number {
        Some(number) => number == device.number,
        None => LvId::from_device(word).as_ref() == Some(&device.id),
    };
    if is_same {
        return Ok(());
    }
    let other = number.and_then(|number| volume_of(host.kernel, number));
    let other = other.map(|other| other.id).or(LvId::from_device(word));
    let other = other.map_or_else(|| word.to_owned(), |id| format!("{word} ({id})"));
    bail!(
        "kubelet hands on the device {other}, but the options name {}. {}",
        device.id,
        same_name_advice(job.options.volume_name.as_ref().map(ObjectName::as_str))
    )
}

/// The mounts of a device in other mount namespaces, one for each namespace. [`Search`] may stop early; a mount
/// that it did not reach still counts as an unseen opener.
pub fn elsewhere(kernel: &Kernel, config: &Config, device: &Device) -> Vec<Elsewhere> {
    let mut seen: BTreeSet<PathBuf> = mount_namespace(kernel, "self").into_iter().collect();
    let of_host = mount_namespace(kernel, 1);
    let mut found = Vec::new();
    for pid in Search::new(kernel).processes() {
        // A process that has just ended has none.
        let Some(its) = mount_namespace(kernel, pid).filter(|its| !seen.contains(its)) else {
            continue;
        };
        let is_hosts = of_host.as_ref() == Some(&its);
        seen.insert(its);
        let table = Table::of(kernel, &kernel.read_of(pid, "mountinfo"));
        let mounts = table.of_device(device.number);
        let hosts = |row: &Row| is_hosts && !is_kubelets(kernel, &table, row, &config.kubelet_dirs);
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
