//! Opens an encrypted volume, and makes the LUKS2 header of a new one.

use anyhow::{Context, Error, Result, anyhow, bail};

use super::close::close_unused;
use super::passphrase::{Key, NewHeader};
use crate::crypt::{self, Header, require_dm_crypt};
use crate::failed_step::FailedStep;
use crate::host::{Lock, ToolError, own_name};
use crate::names::Shown;
use crate::volume::decide::{Content, Permit, Refusal, require_header, require_opened};
use crate::volume::device::{Device, Pinned};
use crate::volume::job::Job;
use crate::volume::look::Look;
use crate::volume::subject::Subject;

/// Opens the volume, whose header is the recorded one. If the volume is open with other settings, closes it first.
pub fn open(job: &Job, seen: &mut Look, read_only: bool, lock: &Lock) -> Result<()> {
    let Subject { host, id, .. } = job.subject;
    let key = job.key()?;
    let device = seen.facts.require_device()?.clone();
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
    let opened = open_device(job, (&pin, header), read_only, &key, lock).map(drop);
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
    let found = crypt::header_of(host, (&on.file, &on.device.path))?;
    require_header(uuid, found.as_ref()).map_err(refuse)?;
    let header = found.context("the LUKS2 header is gone")?;
    let inside = open_device(job, (on, &header), false, key, lock)?;
    let table = crypt::table_of(host, inside.number)?;
    require_opened(uuid, Some(&header), &table, Some(on.device.number)).map_err(refuse)?;
    if inside.luks.as_ref() != Some(uuid) {
        bail!("{id} has not the LUKS2 header that was made on it just now");
    }
    Ok((inside.pin(host.kernel)?, permit))
}

/// Opens an encrypted device by its header, which was judged before. Returns the device inside.
fn open_device(
    job: &Job,
    (on, header): (&Pinned, &Header),
    read_only: bool,
    (passphrase, source): &Key,
    lock: &Lock,
) -> Result<Device> {
    let Subject { host, config, id } = job.subject;
    let device = &on.device;
    device.require_still_there(host.kernel)?;
    let closed = crypt::Closed {
        id,
        uuid: &device.lv_uuid,
        node: &on.node,
        device: (&on.file, &device.path),
        header,
    };
    let key = (passphrase, source.as_str());
    crypt::open(host, &config.luks, &closed, read_only, key, lock)?;
    if let Some(inside) = device.inside(host.kernel) {
        return Ok(inside);
    }
    let error = anyhow!("cryptsetup has opened {id}, but the kernel does not show that");
    Err(host.after_undo(error, || {
        Ok(crypt::close(host, &crypt::name_of(&device.lv_uuid), lock)?)
    }))
}
