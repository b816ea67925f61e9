//! Activates a volume, or creates it, and finds its device.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::create::create;
use super::job::Job;
use crate::host::Lock;
use crate::lvm::{self, Found, Tags, Volume};
use crate::names::Shown;
use crate::volume::decide::{Decision, Level, Refusal};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::look::{Look, Made, is_in_kernel};
use crate::volume::subject::Subject;

impl Job<'_> {
    /// The device of the volume. Activates the volume if needed; creates it if it is missing and the config
    /// allows that.
    ///
    /// An active volume is found in the kernel's own tables, without a process.
    pub fn ensure_active(&self) -> Result<Device> {
        Ok(self.activate(None)?.0)
    }

    /// As [`Self::ensure_active`]; also returns the volume as lvcreate left it, if this call created it.
    pub(super) fn activate(&self, held: Option<&Lock>) -> Result<(Device, Option<Made>)> {
        const TRIES: usize = 5;
        let Subject { host, config, id } = self.subject;
        let wish = self.wish(None);
        let (mut made, mut group) = (None, None::<Lock>);
        for _ in 0..TRIES {
            let mut seen = Look::at(self.subject, self.asker(None));
            let most = group.as_ref().map_or(Level::Content, |_| Level::Room);
            let decision = seen.settle_up_to(most, &wish)?;
            // The group's lock is only for Create; every other decision drops it.
            if let (Decision::Create(size), Some(lock)) = (&decision, group.take()) {
                // lvcreate activates it.
                made = create(self, *size, &lock)?;
                continue;
            }
            let (device, volume) = (seen.facts.device.clone(), seen.facts.volume().cloned());
            match (decision, device, volume) {
                (Decision::Ready, Some(device), _) => return Ok((device, made)),
                (Decision::Activate, _, Some(volume)) => {
                    let volume = &volume;
                    // Without this lock, the last unmount of another pod could deactivate the volume before
                    // this call finds its device.
                    let shared = volume.lock.is_some();
                    let own = ((config.deactivate || shared) && held.is_none())
                        .then(|| lock::hold_inactive(host.kernel, volume, config.limits.lock))
                        .transpose()?;
                    let lock = held.or(own.as_ref());
                    if shared {
                        // If this call is killed, another must know which volume to give back.
                        self.note(volume, lock)?;
                    }
                    let activated = lvm::activate(host, volume.target(), lock);
                    if shared && activated.is_err() {
                        seen.note_holder(config.limits.query);
                        if let Decision::Refuse(reason) = seen.settle(&wish)? {
                            return Err(Refusal::of(id, reason).into());
                        }
                    }
                    activated.map_err(|error| {
                        // A killed lvcreate may leave a thin volume that is in LVM's metadata but not in its
                        // pool, or a RAID volume that is not ready.
                        if volume.record.new {
                            return error.context(format!(
                                "{id} is new and nobody has used it; if lvcreate was cut short, \
                                 run `lvremove {id}`, and it is made again"
                            ));
                        }
                        error
                    })?;
                    let device = self.find_soon()?;
                    if let Some(device) = device.filter(|device| device.lv_uuid == volume.uuid) {
                        return Ok((device, None));
                    }
                }
                (Decision::Refuse(reason), ..) => return Err(Refusal::of(id, reason).into()),
                (Decision::Look(_), ..) => {
                    group = Some(lock::hold_group(host.kernel, id.vg(), config.limits.lock)?);
                }
                _ => {}
            }
        }
        if !is_in_kernel(host.kernel, id) {
            bail!(
                "LVM did not activate {id}: see whether `volume_list` of lvm.conf \
                 leaves it out (`lvmconfig activation/volume_list`)"
            );
        }
        bail!(
            "LVM activated {id}, but {} is missing; make it with `vgmknodes {}`, and see that \
             udevd runs and that the driver sees the host's /dev",
            id.device().shown(),
            id.vg()
        )
    }

    /// The device of a volume that LVM says is active. LVM waits for udev to make the node; a killed command
    /// that activated the volume did not.
    fn find_soon(&self) -> Result<Option<Device>> {
        let Subject { host, config, id } = self.subject;
        let kernel = host.kernel;
        let most = config.limits.activate.min(Duration::from_secs(10));
        let started = Instant::now();
        loop {
            let found = Device::find(kernel, id)?;
            if found.is_some() || started.elapsed() >= most || !is_in_kernel(kernel, id) {
                return Ok(found);
            }
            if kernel.pause(Duration::from_millis(20)) {
                bail!("the driver was told to stop while it waited for udev to show {id}");
            }
        }
    }

    /// Locks the volume, and activates it again if it was deactivated before the lock was held.
    ///
    /// With `deactivate`, the last unmount of another pod may have taken the device away since it
    /// was found. Nobody deactivates it while this lock is held.
    pub fn hold_active(&self, device: Device) -> Result<(Device, Lock)> {
        let Subject { host, config, .. } = self.subject;
        let kernel = host.kernel;
        let lock = lock::hold(kernel, &device, config.limits.lock)?;
        if device.is_still_there(kernel) {
            return Ok((device, lock));
        }
        let (again, _) = self.activate(Some(&lock))?;
        if again.lv_uuid != device.lv_uuid {
            bail!("{} was replaced by another volume just now", device.id);
        }
        Ok((again, lock))
    }

    /// Writes kubelet's name of the volume into a tag of the volume, before the mount. `detach` and a repeated
    /// `unmount` are told only this name. They need it only to deactivate: if the config says so, or nodes
    /// share the group. A failure is only logged.
    pub fn note_name(&self, device: &Device) {
        let Subject { host, config, .. } = self.subject;
        let may_be = config.deactivate || lvm::has_lvmlockd(host);
        if self.options.volume_name.is_none() || !may_be {
            return;
        }
        let noted = match lvm::find(host, &device.id) {
            Ok(Found::Volume(volume)) if config.deactivate || volume.lock.is_some() => {
                self.note(&volume, None)
            }
            found => found.map(drop),
        };
        if let Err(error) = noted {
            host.log.about("unnoted", &format!("{error:#}"));
        }
    }

    fn note(&self, volume: &Volume, lock: Option<&Lock>) -> Result<()> {
        let host = self.subject.host;
        let name = self.options.volume_name.as_ref();
        let tag = name.map(lvm::volume_tag);
        let Some(tag) = tag.filter(|tag| !volume.record.tags.contains(tag)) else {
            return Ok(());
        };
        let tags = Tags {
            add: vec![tag],
            ..Tags::default()
        };
        lvm::retag(host, volume.target(), &tags, lock)
    }
}
