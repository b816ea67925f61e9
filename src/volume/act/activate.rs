//! From the options of a volume to its device.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::config::Config;
use crate::host::{Host, Kernel, Lock};
use crate::lvm::{self, Found, Tags, Volume};
use crate::names::Bytes;
use crate::options::Options;
use crate::volume::decide::{Decision, Reason, Refusal, Wish};
use crate::volume::device::Device;
use crate::volume::lock;
use crate::volume::look::{Look, is_in_kernel};

/// What a call that brings a volume up works with.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub host: &'a Host<'a>,
    pub config: &'a Config,
    pub options: &'a Options,
}

impl<'a> Job<'a> {
    pub fn new(host: &'a Host<'a>, config: &'a Config, options: &'a Options) -> Self {
        Self {
            host,
            config,
            options,
        }
    }

    pub fn wish(&self, dir: Option<&Path>) -> Wish {
        Wish::of_call(self.config, self.options, dir)
    }

    /// A look at the volume, for a call that names `dir`.
    pub fn look(&self, dir: Option<&'a Path>) -> Look<'a> {
        let Options {
            id, volume_name, ..
        } = self.options;
        let device = Device::find(self.host.kernel, id);
        let call = dir.map(|dir| (dir, volume_name.as_deref()));
        Look::at(self.host, self.config, id, device, call)
    }

    /// The device of the volume, made active if it is not, and created if the config allows that.
    ///
    /// An active volume is found in the kernel's own tables, without a process.
    pub fn ensure_active(&self) -> Result<Device> {
        self.activate(None)
    }

    fn activate(&self, held: Option<&Lock>) -> Result<Device> {
        const TRIES: usize = 4;
        let Self { host, config, .. } = *self;
        let id = &self.options.id;
        let wish = self.wish(None);
        for _ in 0..TRIES {
            let mut seen = self.look(None);
            let decision = seen.settle(&wish)?;
            let (device, volume) = (seen.facts.device.clone(), seen.facts.volume().cloned());
            match (decision, device, volume) {
                (Decision::Ready, Some(device), _) => return Ok(device),
                // lvcreate activates it.
                (Decision::Create(size), ..) => create(self, size)?,
                (Decision::Activate, _, Some(volume)) => {
                    let volume = &volume;
                    // Otherwise the last unmount of another pod could deactivate it before its
                    // device is found.
                    let shared = volume.lock.is_some();
                    let own = ((config.deactivate || shared) && held.is_none())
                        .then(|| lock::hold_inactive(host.kernel, volume, config.limits.lock))
                        .transpose()?;
                    let lock = held.or(own.as_ref());
                    if shared {
                        // If this call is killed, another has to know what to give back.
                        self.note(volume, lock)?;
                    }
                    let activated = lvm::activate(host, volume.target(), lock);
                    if shared && activated.is_err() {
                        seen.note_holder(self.config.limits.query);
                        if let Decision::Refuse(reason) = seen.settle(&wish)? {
                            return Err(Refusal::of(id, reason).into());
                        }
                    }
                    activated.map_err(|error| {
                        // A thin volume may be in LVM's metadata and not in its pool, a RAID volume
                        // not be ready.
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
                        return Ok(device);
                    }
                }
                (Decision::Refuse(reason), ..) => return Err(Refusal::of(id, reason).into()),
                _ => {}
            }
        }
        if !is_in_kernel(host.kernel, id) {
            bail!(
                "LVM was told to activate {id}, and did not: see whether `volume_list` of lvm.conf \
                 leaves it out (`lvmconfig activation/volume_list`)"
            );
        }
        bail!(
            "LVM activated {id}, but {} is missing; make it with `vgmknodes {}`, and see that \
             udevd runs and that the driver sees the host's /dev",
            id.device().display(),
            id.vg()
        )
    }

    /// The device of a volume that LVM says is active. LVM has waited for udev to make its node,
    /// unless a command that was killed has activated it just now.
    fn find_soon(&self) -> Result<Option<Device>> {
        let (kernel, id) = (self.host.kernel, &self.options.id);
        let most = self.config.limits.activate.min(Duration::from_secs(10));
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

    /// Locks the volume, and makes sure that it is active under the lock.
    ///
    /// With `deactivate`, the last unmount of another pod may have taken the device away since it
    /// was found. Nobody deactivates it while this lock is held.
    pub fn hold_active(&self, device: Device) -> Result<(Device, Lock)> {
        let kernel = self.host.kernel;
        let lock = lock::hold(kernel, &device, self.config.limits.lock)?;
        if device.is_still_there(kernel) {
            return Ok((device, lock));
        }
        let again = self.activate(Some(&lock))?;
        if again.lv_uuid != device.lv_uuid {
            bail!("{} was replaced by another volume just now", device.id);
        }
        Ok((again, lock))
    }

    /// Notes kubelet's name of the volume on the volume itself, before it can be mounted. `detach`
    /// and a repeated `unmount` get that name and nothing else, and need it only when they are to
    /// deactivate: if the config says so, or nodes share the group. What fails here is only logged.
    pub fn note_name(&self, device: &Device) {
        let (host, config, options) = (self.host, self.config, self.options);
        let may_be = config.deactivate || lvm::has_lvmlockd(host);
        if options.volume_name.is_none() || !may_be {
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
        let Self { host, options, .. } = *self;
        let name = options.volume_name.as_ref();
        let Some(name) = name.filter(|name| !volume.record.names.contains(name)) else {
            return Ok(());
        };
        let Some(tag) = lvm::volume_tag(name) else {
            let why = format!("the name {name:?} does not fit into a tag");
            host.log.about("unnoted", &why);
            return Ok(());
        };
        let tags = Tags {
            add: vec![tag],
            ..Tags::default()
        };
        lvm::retag(host, volume.target(), &tags, lock)
    }
}

/// Makes the volume if there still is none of its name.
fn create(job: &Job, size: Bytes) -> Result<()> {
    let (host, config, options) = (job.host, job.config, job.options);
    let id = &options.id;
    let Some(policy) = config.policy(id.vg())? else {
        bail!("no table of config.toml says how {id} is made");
    };
    // Under a lock of the name: the volume has no UUID yet. Another call may have just made it.
    let lock = lock::hold_name(host.kernel, &id.dm_name(), config.limits.lock)?;
    if let Found::Volume(_) = lvm::find(host, id)? {
        return Ok(());
    }
    let pool = job.wish(None).create.thin_pool().cloned();
    let mut more = policy.lvcreate_options.clone();
    // lvcreate activates it. If this call is killed, another has to know what to give back.
    let name = options.volume_name.as_deref().and_then(lvm::volume_tag);
    if let Some(tag) = name.filter(|_| lvm::has_lvmlockd(host)) {
        more.extend(["--addtag".to_owned(), tag]);
    }
    let made = lvm::create(host, id, size, pool.as_ref(), &more, &lock);
    if made.is_err()
        && let Ok(Found::Volume(volume)) = lvm::find(host, id)
        && volume.lock.is_some()
    {
        // Another node was quicker.
        return Ok(());
    }
    made
}

/// Fails for a volume that is suspended, because every access to it would wait without end. One
/// that a killed lvextend left like that is resumed.
pub fn ensure_not_suspended(host: &Host, device: &Device) -> Result<()> {
    let kernel = host.kernel;
    if device.is_suspended(kernel)
        && lvm::has_unused_table(host, &device.id)?
        // LVM waited for a command that was still at work, and that has resumed it.
        && device.is_suspended(kernel)
    {
        host.log.about("resumed", &device.id.to_string());
        lvm::refresh(host, device.target())?;
    }
    require_not_suspended(kernel, device)
}

/// Fails if every read and write of it would wait.
pub fn require_not_suspended(kernel: &Kernel, device: &Device) -> Result<()> {
    match device.suspended(kernel) {
        None => Ok(()),
        Some(name) => Err(Refusal::of(&device.id, Reason::Suspended(name)).into()),
    }
}
