//! An operator's word on what is on a volume. These are commands and not options of a volume, so
//! that nobody who writes a pod can give it.

use anyhow::{Context, Result, bail};

use crate::cli::Printed;
use crate::config::{Config, Loaded};
use crate::device::Device;
use crate::fs::{Content, probe};
use crate::host::{Host, Lock, own_name};
use crate::lock;
use crate::lvm::{self, Found, MAY_FORMAT, Tags, Volume};
use crate::mount::Table;
use crate::names::LvId;

/// `lvm adopt VG/LV`: records the filesystem that is there now as the one that belongs there.
pub fn adopt(host: &Host, config: &Loaded, id: &LvId) -> Result<Printed> {
    let config = config.or_default();
    let held = hold(host, config, id)?;
    match probe(host, &config.limits, &held.device)? {
        Content::Filesystem { fs, uuid } => {
            let tag = lvm::made_tag(fs, &uuid);
            let tags = held.volume.record.replaced_by(tag);
            held.retag(host, config, &tags)?;
            Ok(say(format!("{id} is recorded as {fs} {uuid}.\n")))
        }
        Content::Nothing => bail!(
            "nothing can be found on {id}, so there is nothing to adopt; if it may be formatted, \
             run `{} allow-format {id}`",
            own_name()
        ),
        other @ Content::Other(_) => {
            bail!("{id} holds {other}, which is no filesystem that this driver mounts")
        }
    }
}

/// `lvm allow-format VG/LV`: lets the next mount format a volume on which nothing can be found.
pub fn allow_format(host: &Host, config: &Loaded, id: &LvId) -> Result<Printed> {
    let config = config.or_default();
    let held = hold(host, config, id)?;
    let mounts = Table::read(host.kernel)?;
    if let Some(row) = mounts.of_device(host.kernel, &held.device).first() {
        bail!(
            "{id} is mounted at {}; it is in use",
            row.mount_point.display()
        );
    }
    match probe(host, &config.limits, &held.device)? {
        Content::Nothing => {
            let mut tags: Vec<String> = held
                .volume
                .record
                .content_tags()
                .map(str::to_owned)
                .collect();
            tags.retain(|tag| tag != MAY_FORMAT);
            held.retag(host, config, &Tags::adding(MAY_FORMAT))?;
            Ok(say(format!(
                "The next mount for writing may format {id}. What its record said: {}.\nTo take \
                 this back: lvchange --deltag {MAY_FORMAT} {id}\n",
                if tags.is_empty() {
                    "nothing".to_owned()
                } else {
                    tags.join(", ")
                }
            )))
        }
        other => bail!(
            "{id} holds {other}. If that may really go, remove it first by hand: `wipefs --all {}`",
            held.device.path.display()
        ),
    }
}

fn say(stdout: String) -> Printed {
    Printed {
        stdout,
        ..Printed::default()
    }
}

/// A volume that nobody else changes meanwhile.
struct Held {
    device: Device,
    volume: Volume,
    lock: Lock,
}

fn hold(host: &Host, config: &Config, id: &LvId) -> Result<Held> {
    let Some(device) = Device::find(host.kernel, id)? else {
        bail!("{id} is not active here; if it exists (`lvs {id}`), run `lvchange -ay {id}` first");
    };
    let lock = lock::hold(host.kernel, &device, config.limits.lock)?;
    device.require_not_suspended(host.kernel)?;
    match lvm::find(host, id, config.limits.query)? {
        Found::Volume(volume) => Ok(Held {
            device,
            volume: *volume,
            lock,
        }),
        Found::NoVolume | Found::NoGroup => bail!("LVM does not know {id}; see `lvs` and `pvs`"),
    }
}

impl Held {
    fn retag(&self, host: &Host, config: &Config, tags: &Tags) -> Result<()> {
        lvm::retag(
            host,
            &config.limits,
            &self.volume.id,
            tags,
            Some(&self.lock),
        )
        .context("writing the record")
    }
}
