//! Grows the device inside an encrypted volume, and compares its size with that of its volume.

use anyhow::{Context, Result};

use crate::crypt::{self, HEADER_SIZE};
use crate::failed_step::FailedStep;
use crate::host::Lock;
use crate::names::Bytes;
use crate::volume::device::Device;
use crate::volume::subject::Subject;

/// Makes the device inside an encrypted volume as large as the volume is, less its header.
pub fn grow_inside(subject: Subject, inside: &Device, lock: &Lock) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let name = &crypt::name_of(&inside.lv_uuid);
    crypt::resize(host, id.vg(), (name, inside.number), lock)
        .with_context(|| {
            format!(
                "growing what is inside the encrypted volume {id}; if somebody opened that by hand, end its pods: the \
                 next mount opens it so that it can grow, and grows it"
            )
        })
}

/// Fails if the device inside does not fit into a volume of this size: somebody reduced the volume while it was open.
/// `cryptsetup resize` would cut off the end of the filesystem.
pub fn require_fit(subject: Subject, inside: &Device, size: Bytes) -> Result<()> {
    let Subject { host, id, .. } = subject;
    let has = inside.size(host.kernel)?;
    if has.get().saturating_add(HEADER_SIZE.get()) <= size.get() {
        return Ok(());
    }
    // Another program than the driver may have made a smaller header.
    let begins = crypt::table_of(host, inside.number)?.offset;
    let header = begins.unwrap_or(HEADER_SIZE.get());
    let needs = has.get().saturating_add(header);
    if needs > size.get() {
        return Err(FailedStep::Growth.error(format!(
            "{id} was reduced while it was open: {has} are in use inside. Nothing was written. Extend it again \
             (`lvextend --size {needs}b {id}`) before its pods end, or what is behind its end is lost"
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
