//! An encrypted volume: makes its LUKS2 header, opens the volume, closes it.

use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};

use crate::config::Config;
use crate::crypt::{self, HEADER_SIZE, Header, require_dm_crypt};
use crate::failed_step::FailedStep;
use crate::host::{Host, Lock, ToolError, leave_no_core, own_name};
use crate::names::{Bytes, Shown};
use crate::options::Passphrase;
use crate::volume::decide::{
    Content, Permit, Reason, Refusal, require_header, require_opened, users,
};
use crate::volume::device::{Device, Pinned};
use crate::volume::job::Job;
use crate::volume::kernel_tables::all_inside;
use crate::volume::lock;
use crate::volume::look::Look;
use crate::volume::subject::Subject;

/// A passphrase, and the name of its source for messages.
type Key = (Passphrase, String);

/// An encrypted device to open, with its header, which was judged before.
struct ToOpen<'a> {
    on: &'a Pinned,
    header: &'a Header,
    read_only: bool,
}

/// What the driver was doing if there is no new UUID.
pub const CHOOSING: &str = "choosing a UUID";

/// A LUKS2 header that is to be made.
pub struct NewHeader {
    pub uuid: String,
    key: Key,
}

impl Job<'_> {
    /// The passphrase of the volume's Secret if it has one, else that of its group, else that of the node.
    fn key(&self) -> Result<Key> {
        let Subject { host, config, id } = self.subject;
        if let Some(secret) = &self.options.passphrase {
            // A person's call may have read the options from a file (`@file`). Then nothing has switched core dumps off
            // yet.
            let no_core = leave_no_core();
            no_core.context("keeping this process from leaving a core")?;
            let source = "the passphrase of the volume's Secret".to_owned();
            return Ok((secret.clone(), source));
        }
        let file = config.key_file(id.vg());
        let file = file.with_context(|| format!("no passphrase came for {id}"))?;
        let source = format!("the key_file {}", file.shown());
        Ok((crypt::read_key_file(host, file)?, source))
    }

    /// The UUID and the key for a header that is to be made. `uuid`: the UUID of a header that a killed call was
    /// making. `None`: the header gets a new UUID.
    pub fn new_header(&self, uuid: Option<&str>) -> Result<NewHeader> {
        let id = self.subject.id;
        require_dm_crypt(self.subject.host).map_err(|error| {
            FailedStep::LuksFormat.of(self.subject.host, error, format!("encrypting {id}"))
        })?;
        let key = self.key()?;
        let new = || self.subject.host.kernel.new_uuid();
        let uuid = uuid.map_or_else(|| new().context(CHOOSING), |uuid| Ok(uuid.to_owned()))?;
        Ok(NewHeader { uuid, key })
    }
}

/// Opens the volume, whose header is the recorded one. If the volume is open with other settings, closes it first.
pub fn open(job: &Job, seen: &mut Look, read_only: bool, lock: &Lock) -> Result<()> {
    let Subject { host, id, .. } = job.subject;
    let key = job.key()?;
    let device = seen.facts.device.clone();
    let device = device.with_context(|| format!("{id} has no device"))?;
    if seen.facts.top() != Some(&device) {
        // If the device inside was read, the claim is of that device.
        seen.release_claim();
        close_unused(job.subject, lock)?;
    }
    // The pin keeps the device's number when the claim is gone.
    let pin = device.clone().pin(host.kernel)?;
    seen.release_claim();
    let is_made = seen.facts.require_volume()?.record.luks.is_some();
    let Some(Content::Luks(header)) = &seen.facts.content else {
        bail!("the LUKS2 header of {id} was not read");
    };
    let what = ToOpen {
        on: &pin,
        header,
        read_only,
    };
    let opened = open_device(job, &what, &key, lock).map(drop);
    opened.map_err(|error| not_opened(job.subject, &device, is_made, error))
}

/// Adds advice to the error of an encrypted volume that cannot be opened. `is_made`: the volume's tags
/// record the UUID of its LUKS2 header.
fn not_opened(subject: Subject, device: &Device, is_made: bool, error: Error) -> Error {
    let Subject { host, id, .. } = subject;
    let error = match require_dm_crypt(host) {
        Ok(()) => error,
        Err(lacking) => error.context(lacking),
    };
    if is_made || error.is::<ToolError>() {
        return error;
    }
    let name = device.path.shown();
    error.context(format!(
        "the tag of {id} says that it is being encrypted: a call was killed then, or vgcfgrestore brought back LVM's \
         metadata of then, and data is inside. Its passphrase tells, which may have changed since: try each \
         (`cryptsetup open --test-passphrase {name}`). Only if {id} has never been mounted, run `wipefs --all {name} \
         && {} allow-format {id}`",
        own_name()
    ))
}

/// Makes a LUKS2 header on a volume that nobody uses, and opens it. Returns the device inside, with the permit to make
/// a filesystem on it.
pub fn format(
    job: &Job,
    on: &Pinned,
    permit: Permit,
    NewHeader { uuid, key }: &NewHeader,
    lock: &Lock,
) -> Result<(Pinned, Permit)> {
    let Subject { host, config, id } = job.subject;
    let permit = crypt::format(host, &config.luks, permit, &on.node, uuid, &key.0, lock)
        .map_err(|error| FailedStep::LuksFormat.of(host, error, format!("encrypting {id}")))?;
    let refuse = |reason| Refusal::of(id, reason);
    let header = crypt::header_of(host, (&on.file, &on.device.path))?;
    require_header(uuid, header.as_ref()).map_err(refuse)?;
    let header = header.context("the LUKS2 header is gone")?;
    let what = ToOpen {
        on,
        header: &header,
        read_only: false,
    };
    let inside = open_device(job, &what, key, lock)?;
    let table = crypt::table_of(host, inside.number)?;
    require_opened(uuid, Some(&header), &table, Some(on.device.number)).map_err(refuse)?;
    if inside.luks.as_ref() != Some(uuid) {
        bail!("{id} has not the LUKS2 header that was made on it just now");
    }
    Ok((inside.pin(host.kernel)?, permit))
}

fn open_device(job: &Job, what: &ToOpen, key: &Key, lock: &Lock) -> Result<Device> {
    let Subject { host, config, id } = job.subject;
    let (on, (passphrase, source)) = (what.on, key);
    let device = &on.device;
    device.require_still_there(host.kernel)?;
    let closed = crypt::Closed {
        id,
        uuid: &device.lv_uuid,
        node: &on.node,
        device: (&on.file, &device.path),
        header: what.header,
    };
    let key = (passphrase, source.as_str());
    crypt::open(host, &config.luks, &closed, what.read_only, key, lock)?;
    if let Some(inside) = device.inside(host.kernel) {
        return Ok(inside);
    }
    let error = anyhow!("cryptsetup has opened {id}, but the kernel does not show that");
    let close = || Ok(crypt::close(host, &crypt::name_of(&device.lv_uuid), lock)?);
    Err(host.after_undo(error, close))
}

/// Fails if the device inside does not fit into a volume of this size: somebody reduced the volume while it was open.
/// `cryptsetup resize` would cut off the end of the filesystem.
pub fn require_fit(subject: Subject, inside: &Device, size: Bytes) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let has = inside.size(host.kernel)?;
    let needs = |header: u64| Bytes::new(has.get().saturating_add(header));
    if needs(HEADER_SIZE.get()) <= size {
        return Ok(());
    }
    // Another program than the driver may have made a smaller header.
    let begins = crypt::table_of(host, inside.number)?.offset;
    let needs = needs(begins.unwrap_or(HEADER_SIZE.get()));
    if needs > size {
        return Err(FailedStep::Growth.error(format!(
            "{id} was reduced while it was open: {has} are in use inside. Nothing was written. Extend it again \
             (`lvextend --size {}b {id}`) before its pods end, or what is behind its end is lost",
            needs.get()
        )));
    }
    Ok(())
}

/// Fails if cryptsetup said that it resized the device inside, but left it too small. Only the LUKS2 header and less
/// than one sector may remain unused on the volume's device.
pub fn require_filled(subject: Subject, volume: &Device, inside: &Device) -> Result<()> {
    /// The largest sector of LUKS2. Source: cryptsetup(8), `--sector-size`.
    const SECTOR: u64 = 4096;
    let Subject { host, id, .. } = subject;
    let (size, has) = (volume.size(host.kernel)?, inside.size(host.kernel)?);
    let unused = size.get().saturating_sub(has.get());
    if unused < HEADER_SIZE.get().saturating_add(SECTOR) {
        return Ok(());
    }
    // Another program than the driver may have made a larger header.
    let begins = crypt::table_of(host, inside.number)?.offset;
    if unused >= begins.unwrap_or_default().saturating_add(SECTOR) {
        return Err(FailedStep::Growth.error(format!(
            "cryptsetup said that it made the device inside {id} as large as its volume, but that device has {has} of \
             {size}. Look in `dmesg` for the cause. The volume is large enough, and a repeated call resizes that device"
        )));
    }
    Ok(())
}

/// Closes an encrypted volume that nothing uses any more. Waits up to `patience` for another call that works on the
/// volume. If `patience` is zero, leaves the volume to that call.
pub fn close(subject: Subject, patience: Duration) -> Result<()> {
    let kernel = subject.host.kernel;
    let device = Device::find(kernel, subject.id)?;
    let Some(device) = device.filter(|device| device.inside(kernel).is_some()) else {
        return Ok(());
    };
    match lock::hold(kernel, device.target(), patience) {
        Err(error) if patience.is_zero() && error.is::<lock::Busy>() => Ok(()),
        lock => close_unused(subject, &lock?),
    }
}

/// Like [`close`], with the volume's lock held. An error says who has the volume open.
pub(super) fn close_unused(subject: Subject, lock: &Lock) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let Some(mut seen) = Look::idle(subject)? else {
        return Ok(());
    };
    let uses = seen.facts.uses.as_ref();
    let Some(inside) = uses.and_then(|uses| uses.inside.as_ref()) else {
        return Ok(());
    };
    let name = crypt::name_of(&inside.device.lv_uuid);
    let Err(error) = crypt::close(host, &name, lock) else {
        return Ok(());
    };
    seen.facts.openers = Some(seen.remaining_openers()?);
    let holder = users(&seen.facts).into_iter().next();
    let error = anyhow!(error);
    let error = match holder {
        Some(holder) => error.context(Reason::from(holder).message(id)),
        None => error,
    };
    let doing = format!("{id} is not mounted any more, but stays open and can be read");
    Err(FailedStep::Close.of(host, error, doing))
}

/// Closes the encrypted volumes that killed calls left open. Leaves a volume to another call that works on it.
pub fn close_leftovers(host: &Host, config: &Config) {
    for Device { id, .. } in all_inside(host.kernel) {
        let subject = Subject {
            host,
            config,
            id: &id,
        };
        if let Err(error) = close(subject, Duration::ZERO) {
            host.log.about("left-open", &format!("{error:#}"));
        }
    }
}
