//! Decides what may be done with the content of a volume. This is the file to read when data is at
//! stake: mkfs is reached from here only, and every doubt is an error.

use anyhow::{Context, Result, bail};
use nix::libc::EBUSY;

use super::examine::Examination;
use super::make;
use super::probe::{Content, probe};
use super::superblock::{self, Superblock};
use crate::config::Config;
use crate::device::Device;
use crate::host::{Host, Lock, own_name};
use crate::lvm::Volume;
use crate::names::Bytes;
use crate::names::FsType;

/// All that the decision is about.
pub struct Subject<'a> {
    /// Tools and kernel.
    pub host: &'a Host<'a>,
    /// The node's config.
    pub config: &'a Config,
    /// The volume's device.
    pub device: &'a Device,
    /// What LVM says of the volume, its record among it.
    pub volume: &'a Volume,
    /// The volume's lock: nothing here is done without it.
    pub lock: &'a Lock,
    /// The type that was asked for; None: whatever is there, else the configured default.
    pub wanted: Option<FsType>,
    /// Whether nothing may be written.
    pub read_only: bool,
}

/// A filesystem that can be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Its type.
    pub fs: FsType,
    /// Its UUID.
    pub uuid: String,
    /// What it covers.
    pub size: Bytes,
    /// Whether the volume's tags already say that it is there.
    pub recorded: bool,
    /// Whether it was made just now, so that there is nothing to check yet.
    pub fresh: bool,
}

/// Finds the filesystem of a volume, or makes it if the volume is blank beyond doubt.
///
/// # Errors
/// Whatever speaks against mounting the volume, with what to do about it.
pub fn prepare(subject: &Subject) -> Result<Ready> {
    let device = subject.device;
    // Exclusive: neither mounted nor swap nor part of another device, and it stays so.
    let claim = match subject.host.kernel.open_device(&device.path, true) {
        Ok(file) => file,
        Err(e) if e.raw_os_error() == Some(EBUSY) => bail!(
            "{} is in use by something else on this host (`lsblk {0}`, `dmsetup ls --tree`)",
            device.path.display()
        ),
        Err(e) => return Err(e).with_context(|| format!("opening {}", device.path.display())),
    };
    let content = probe(subject.host, &subject.config.limits, device)?;
    if subject.volume.record.new && content != Content::Nothing {
        bail!(
            "{id} holds {content}, but it is new and the driver has not formatted it: lvcreate was \
             cut short before it wiped what a removed volume left, or somebody put that there. Run \
             `lvremove {id}`, and it is made again; or keep a filesystem with `{} adopt {id}`",
            own_name(),
            id = device.id
        );
    }
    match content {
        Content::Nothing => make::from_blank(subject, claim),
        Content::Filesystem { fs, uuid } => {
            let found = superblock::read_primary(&claim)
                .with_context(|| format!("reading the superblock of {}", device.path.display()))?;
            let found = found.with_context(|| {
                format!(
                    "blkid finds {fs} on {}, but no valid superblock is there; left as it is. \
                     Try the filesystem's own check by hand",
                    device.id
                )
            })?;
            if make::was_cut_short(subject, fs, &found)? {
                return make::again(subject, claim, fs);
            }
            accept(subject, fs, uuid, &found)
        }
        other @ Content::Other(_) => bail!(
            "{} holds {other}, not {}; it is left as it is. If that may really go, \
             remove it by hand (`wipefs --all {}`, then `{} allow-format {0}`)",
            device.id,
            subject
                .wanted
                .map_or("a filesystem of this driver".to_owned(), |fs| fs
                    .to_string()),
            device.path.display(),
            own_name()
        ),
    }
}

/// Takes the filesystem that is there, if it is the one that was asked for and the one that this
/// volume is known to hold.
fn accept(subject: &Subject, fs: FsType, uuid: String, found: &Superblock) -> Result<Ready> {
    let id = &subject.device.id;
    if let Some(wanted) = subject.wanted.filter(|wanted| *wanted != fs) {
        bail!(
            "{id} holds {fs}, not {wanted}; it is left as it is. Set fsType to {fs}, or name \
             another volume"
        );
    }
    let recorded = subject.volume.record.made.as_ref();
    let me = own_name();
    if let Some(made) = recorded.filter(|made| made.uuid != uuid) {
        bail!(
            "{id} should hold {} {} by its tag, but holds {fs} {uuid}: its content was replaced, \
             restored or swapped. If this is the right content, run `{me} adopt {id}`",
            made.fs,
            made.uuid
        );
    }
    let size = subject.device.size(subject.host.kernel)?;
    // btrfs counts all of its disks, and looks at each itself.
    if found.size > size.get() && fs != FsType::Btrfs {
        bail!(
            "{id} has {size}, but the {fs} on it covers {}: the volume was reduced, or an image was \
             copied in part. Nothing was written. Give it its size again (`lvextend --size {}b \
             {id}`) before any repair, which would cut what is missing",
            Bytes::new(found.size),
            found.size
        );
    }
    Ok(Ready {
        fs,
        uuid,
        size: Bytes::new(found.size),
        // Any other tag that speaks of its content is out of date from now on: a word that it may
        // be formatted was for another content.
        recorded: subject.volume.record.content_tags().count() == 1 && recorded.is_some(),
        fresh: false,
    })
}

/// Fails if any of the places that were looked at cannot be read.
///
/// # Errors
/// Which one.
pub(super) fn require_readable(subject: &Subject, seen: &Examination) -> Result<()> {
    let id = &subject.device.id;
    match &seen.unreadable {
        None => Ok(()),
        Some(bad) => bail!(
            "{id} cannot be read at byte {} ({}), so nobody can tell whether it is blank; nothing \
             was written. Mend the disk below it (`dmesg`, `pvs`, `lvs -a -o +devices {id}`)",
            bad.offset,
            bad.error
        ),
    }
}

/// Says no to mkfs unless the whole examination of the device, which was readable, allows it.
///
/// # Errors
/// The reason.
pub(super) fn require_blank(subject: &Subject, seen: &Examination) -> Result<()> {
    let id = &subject.device.id;
    let record = &subject.volume.record;
    let me = own_name();
    if record.may_format {
        return Ok(());
    }
    if let Some(made) = &record.made {
        bail!(
            "{id} held {} {} by its tag, but nothing can be found on it now; it is not formatted. \
             Restore it, or if its data may go run `{me} allow-format {id}`",
            made.fs,
            made.uuid
        );
    }
    let give_up = if record.new {
        format!("`lvremove {id}`, and it is made again")
    } else {
        format!("`{me} allow-format {id}`")
    };
    // A mkfs that was cut short leaves backups of its own.
    if record.making.is_some() {
        return Ok(());
    }
    if let Some(signature) = &seen.signature {
        bail!(
            "{id} has {signature}, though blkid finds nothing whole there: it is damaged, or could \
             not be read just now. It is not formatted. Repair or restore it, or if its data may go \
             run {give_up}"
        );
    }
    if let Some(backup) = &seen.backup {
        bail!(
            "{id} looks blank at its beginning, but {backup} says that it held data; it is not \
             formatted. Repair or restore it (`e2fsck -b`), or if its data may go run \
             {give_up}"
        );
    }
    if let Some(at) = seen.written {
        bail!(
            "{id} has data at byte {at} that blkid does not know, where lvcreate leaves nothing but \
             zeroes: somebody has written there, as on an encrypted or a raw volume, or a header is \
             damaged or could not be read just now. It is not formatted. If that data may go run {give_up}"
        );
    }
    Ok(())
}
