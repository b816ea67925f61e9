//! Finds a volume's users in the kernel's tables.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Look, MOMENT, Tables};
use crate::host::{Host, Kernel};
use crate::mount::{KubeletPath, Row, Table, is_kubelets, is_runtimes, mounted_at};
use crate::names::{Foreign, Shown};
use crate::volume::decide::{Mounted, Occupied, There, Uses};
use crate::volume::device::Device;
use crate::volume::job::Job;
use crate::volume::kernel_tables::{name_of, volume_of};
use crate::volume::subject::Subject;

impl Look<'_> {
    pub fn uses(&self) -> Result<Option<Uses>> {
        let Some(device) = &self.facts.device else {
            return Ok(None);
        };
        let kernel = self.subject.host.kernel;
        let own;
        let tables = if let Some(known) = self.asker.known() {
            known.tables
        } else {
            own = Tables::read(kernel)?;
            &own
        };
        let table = &tables.mounts;
        let looking = || format!("looking for devices on top of {}", device.id);
        let mut holders = device.holders(kernel).with_context(looking)?;
        let inside = device.opened(kernel, &mut holders);
        let unlocked = match inside {
            Some(_) => None,
            None => Device::unlocked(kernel, &holders),
        };
        for holder in &mut holders {
            *holder = name_of(kernel, holder);
        }
        // From here on, all is about the device with the filesystem.
        let top = inside.as_ref().map_or(device, |inside| &inside.device);
        let rows = table.of_device(top.number);
        let mut uses = Uses {
            mounts: self.mounts(table, &rows)?,
            swap: tables.swaps.contains(&top.number),
            holders,
            unlocked,
            // On a suspended device, a question to the mounted filesystem would hang. So the kernel is asked about the
            // device first.
            suspended: suspended(kernel, top),
            mounted_read_only_device: !rows.is_empty() && device.is_read_only(kernel),
            ..Uses::default()
        };
        if let Some(job) = self.asker.job() {
            see_places(job, table, top, &mut uses)?;
        }
        if uses.there.is_none() && uses.suspended.is_none() {
            uses.failure = top.failure(kernel, &rows);
        }
        uses.inside = inside;
        Ok(Some(uses))
    }

    /// The volume's mounts, each with its owner: kubelet, a container runtime or others.
    fn mounts(&self, table: &Table, rows: &[&Row]) -> Result<Vec<Mounted>> {
        let Subject { host, config, .. } = self.subject;
        let kernel = host.kernel;
        let dir = self.asker.job().and_then(|job| job.dir);
        let id = match dir.map(KubeletPath::of) {
            Some(KubeletPath::Pod { global }) => mounted_at(kernel, &global)?,
            Some(KubeletPath::Global | KubeletPath::Other) | None => None,
        };
        let own_global = id.and_then(|id| table.by_id(id));
        let mut kubelets = rows.to_vec();
        kubelets.retain(|row| is_kubelets(kernel, table, row, &config.kubelet_dirs));
        let mounts = rows.iter().map(|row| Mounted {
            row: (*row).clone(),
            hidden: !table.is_visible(row),
            kubelets: kubelets.contains(row),
            runtimes: is_runtimes(kernel, row, &kubelets, &config.runtime_dirs),
            global: kubelets.contains(row) && KubeletPath::of(&row.mount_point).is_global(),
            own_global: own_global.is_some_and(|global| table.are_at_one_place(global, row)),
        });
        Ok(mounts.collect())
    }

    /// Looks once more whether the mounted filesystem has failed.
    pub(super) fn see_failure(&mut self) {
        let top = self.facts.top().cloned();
        if let (Some(top), Some(uses)) = (top, &mut self.facts.uses)
            && uses.suspended.is_none()
        {
            let rows: Vec<&Row> = uses.mounts.iter().map(|mounted| &mounted.row).collect();
            uses.failure = top.failure(self.subject.host.kernel, &rows);
        }
    }
}

/// The device-mapper name of the suspended device: `top`, or a device below it. If that is the device inside an
/// encrypted volume, LVM cannot be asked, since it would wait for the volume. So an LVM command that is at work gets a
/// moment to resume the volume.
fn suspended(kernel: &Kernel, top: &Device) -> Option<String> {
    let name = top.suspended(kernel)?;
    if top.luks.is_none() {
        return Some(name);
    }
    kernel.pause(MOMENT);
    top.suspended(kernel)
}

/// Looks what is mounted at the directory of the call. In attach mode, also at the global directory of this pod's
/// volume, where no other volume may be. `top`: the device that is to be mounted.
fn see_places(job: &Job, table: &Table, top: &Device, uses: &mut Uses) -> Result<()> {
    let Subject { host, config, .. } = job.subject;
    let Some(dir) = job.dir else {
        return Ok(());
    };
    let place = KubeletPath::of(dir);
    // kubelet's name of the volume matters only in attach mode, in which kubelet keeps one mount for each name.
    let name = match &job.options.volume_name {
        Some(name) if config.attach && place != KubeletPath::Other => Some(name),
        Some(_) | None => None,
    };
    let at = |dir: &Path| -> Result<Option<There>> {
        let id = mounted_at(host.kernel, dir)?;
        Ok(id.and_then(|id| table.by_id(id)).map(|row| {
            if row.is_of(top.number) {
                return There::This(row.clone());
            }
            There::Another(Occupied {
                dir: dir.to_owned(),
                by: source_of(host, row),
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

/// Names the volume that is mounted there, or else the source of the mount.
fn source_of(host: &Host, row: &Row) -> Foreign {
    match volume_of(host.kernel, row.block_device()) {
        Some(volume) => volume.id.to_string().shown(),
        None => format!("{} ({})", row.source.shown(), row.fs_type).shown(),
    }
}
