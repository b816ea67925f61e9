//! Decides for a filesystem, on a volume or inside an encrypted one. Pure. [`permit_make`] is the last rule, which
//! permits mkfs.

use super::decision::{Decision, Making, Mount, Ruling, When};
use super::facts::{Facts, FilesystemState};
use super::permit::Permit;
use super::reason::Reason;
use super::space::require_metadata_room;
use super::users::{User, users};
use super::uses::Place;
use super::well::{flaw, require_exactly_well};
use super::wish::{Purpose, Wish};
use crate::lvm::{Unfinished, Volume};
use crate::names::{Bytes, Filesystem, FsType};
use crate::volume::mounted_filesystem::Failure;

/// A filesystem that leaves at least this many bytes of its device unused is to be grown. Alignment leaves less than
/// this. An ext leaves more if its last group would be too small: then its tool runs in vain at a first mount.
const WORTH_GROWING: u64 = 1 << 20;

/// Decides for a device that is claimed: by a mount in another mount namespace, or by an unknown user.
pub fn for_claimed(
    facts: &Facts,
    found: Option<&Filesystem>,
    volume: &Volume,
    wish: &Wish,
) -> Ruling {
    let openers = facts.openers.clone().unwrap_or_default();
    let is_hosts = openers.elsewhere.iter().any(|other| other.hosts);
    // A second mount of a mounted filesystem shows the same filesystem. Only the driver's tag proves that the mounted
    // filesystem is this volume's. A mount of the host's own is never shared with a pod.
    let made = volume.record.made.as_ref();
    let ours = found.filter(|found| made.is_some_and(|made| made.uuid == found.uuid) && !is_hosts);
    let (Some(filesystem), true) = (ours, facts.is_mounted_here() || openers.is_mounted()) else {
        let user = users(facts).into_iter().next();
        return Err(user.map_or(Reason::InUse(Vec::new()), Reason::from));
    };
    require_encryption_as_asked(volume.record.luks.is_some(), wish)?;
    require_type(filesystem.fs.as_str(), wish)?;
    if openers.has_errors && is_harmed(Failure::Errors, wish) {
        let place = Place::Elsewhere(openers.elsewhere);
        return Err(Reason::FilesystemFailed(place, Failure::Errors));
    }
    Ok(Decision::Mount(Mount {
        alive: Some(openers.elsewhere),
        ..Mount::of_made(filesystem.clone())
    }))
}

/// Fails if the call wants another type of filesystem.
pub fn require_type(found: &str, wish: &Wish) -> Result<(), Reason> {
    match wish.fs {
        Some(wanted) if wanted.as_str() != found => Err(Reason::WrongType {
            found: found.to_owned(),
            wanted,
        }),
        _ => Ok(()),
    }
}

/// Decides for a volume with a filesystem: does it have the wanted type, and is it the recorded one?
pub fn for_filesystem(
    facts: &Facts,
    found: &FilesystemState,
    volume: &Volume,
    wish: &Wish,
) -> Ruling {
    let record = &volume.record;
    let filesystem = &found.filesystem;
    let fs = filesystem.fs;
    let is_its = |mkfs: &Unfinished| mkfs.luks.is_none() && mkfs.made(&filesystem.uuid);
    if found.half && record.made.is_none() && record.making.as_ref().is_some_and(is_its) {
        // The driver's own mkfs was killed and left this filesystem. Nobody ever mounted it.
        require_for_mkfs(facts, volume, wish)?;
        require_type(fs.as_str(), wish)?;
        return permit_make(facts, fs, Making::Plain { again: true });
    }
    if record.new {
        return Err(Reason::NewNotBlank(filesystem.to_string()));
    }
    let made = record.made.as_ref();
    if let Some(made) = made.filter(|made| made.uuid != filesystem.uuid) {
        return Err(Reason::Swapped {
            recorded: made.clone(),
            found: filesystem.clone(),
        });
    }
    require_type(fs.as_str(), wish)?;
    require_whole(facts, found, volume)?;
    require_small_blocks(facts, found)?;
    // The kernel and tools find a filesystem's other parts by UUIDs. Snapshots and copies have the same UUIDs.
    if found.is_part {
        return Err(Reason::SeveralDevices(fs));
    }
    require_writable(facts, volume, wish)?;
    Ok(Decision::Mount(Mount {
        filesystem: filesystem.clone(),
        check: !wish.read_only && fs.is_ext(),
        grow: when_to_grow(found, wish),
        record: when_to_record(facts, volume, wish)?,
        alive: None,
    }))
}

/// When the mount of a filesystem changes the volume's tags, so that they name this filesystem and no other content.
/// Fails if that is needed before the mount, and cannot be done now.
///
/// The mount makes every other tag about the content out of date: a permission to format, for example, was for other
/// content. The record waits until the volume is well: if LVM's metadata changes while a disk is missing, LVM does not
/// use that disk when it is back (vgextend(8), `--restoremissing`). A tag that would allow mkfs cannot wait.
fn when_to_record(facts: &Facts, volume: &Volume, wish: &Wish) -> Result<When, Reason> {
    let record = &volume.record;
    let is_due = match &record.made {
        Some(made) => made.uuid.is_empty() && !wish.read_only || record.content_tags().count() != 1,
        None => true,
    };
    let may_wait = !record.may_allow_mkfs(facts.now);
    if is_due && !may_wait {
        require_exactly_well(facts)?;
    }
    if !is_due || may_wait && flaw(facts).is_some() {
        return Ok(When::Not);
    }
    if record.making.is_none() && record.permission.is_none() {
        return Ok(When::After);
    }
    // A tag that allows mkfs must be gone before there can be data: if the call is killed after the mount, the repeated
    // call finds the mount and does not look at the tags. So there must be room for the record.
    require_metadata_room(volume.group.metadata_free, 1)?;
    Ok(When::Before)
}

/// Fails if the filesystem is larger than its device. A btrfs is not judged here, since btrfs itself checks this.
fn require_whole(facts: &Facts, found: &FilesystemState, volume: &Volume) -> Result<(), Reason> {
    let fs = found.filesystem.fs;
    if found.covers <= found.device || fs == FsType::Btrfs {
        return Ok(());
    }
    // The message has sizes of the volume, which is larger than the device inside by the LUKS2 header.
    let header = match facts.decrypted {
        Some(_) => volume
            .device_size()
            .get()
            .saturating_sub(found.device.get()),
        None => 0,
    };
    let with_header = |size: Bytes| Bytes::new(size.get().saturating_add(header));
    Err(Reason::Reduced {
        what: fs.as_str(),
        has: with_header(found.device),
        covers: with_header(found.covers),
    })
}

/// Fails if the filesystem has larger blocks than this node's kernel mounts.
fn require_small_blocks(facts: &Facts, found: &FilesystemState) -> Result<(), Reason> {
    if found.block <= found.largest_block {
        return Ok(());
    }
    Err(Reason::LargeBlocks {
        fs: found.filesystem.fs,
        block: found.block,
        largest: found.largest_block,
        encrypted: facts.decrypted.is_some(),
    })
}

/// When a mount grows the filesystem to the size of its device. The filesystem is smaller than its device if somebody
/// extended the volume while it was mounted nowhere.
fn when_to_grow(found: &FilesystemState, wish: &Wish) -> When {
    let missing = found.device.get().saturating_sub(found.covers.get());
    if wish.read_only || missing < WORTH_GROWING {
        return When::Not;
    }
    when_it_grows(found.filesystem.fs, found.only_unmounted, found.device)
}

/// When the kernel lets a filesystem grow to this size: before its mount, or while it is mounted. `only_unmounted`: see
/// [`FilesystemState`]. Source for btrfs: Linux' fs/btrfs/ioctl.c, `btrfs_ioctl_resize`.
pub fn when_it_grows(fs: FsType, only_unmounted: bool, size: Bytes) -> When {
    const LEAST_OF_BTRFS: u64 = 256 << 20;
    match fs {
        FsType::Ext2 => When::Before,
        FsType::Ext3 | FsType::Ext4 if only_unmounted => When::Before,
        FsType::Btrfs if size.get() < LEAST_OF_BTRFS => When::Not,
        FsType::Ext3 | FsType::Ext4 | FsType::Xfs | FsType::Btrfs => When::After,
    }
}

/// Fails if the call wants an encrypted volume and this one is plain, or the other way round. `is_encrypted`: whether
/// this one is encrypted, by LVM's tags or by the mounted device.
pub fn require_encryption_as_asked(is_encrypted: bool, wish: &Wish) -> Result<(), Reason> {
    match (wish.purpose, wish.encrypted) {
        (Purpose::Filesystem, Some(false)) if is_encrypted => Err(Reason::Encrypted),
        (Purpose::Filesystem, Some(true)) if !is_encrypted => Err(Reason::NotEncrypted),
        _ => Ok(()),
    }
}

/// True if the call may not mount a filesystem that failed in this way. Unless the filesystem was shut down, a pod may
/// still mount it read-only, so that its data can be saved.
pub fn is_harmed(failure: Failure, wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem && (failure == Failure::ShutDown || !wish.read_only)
}

/// The last rule before mkfs. Fails while anybody has the device open, even only to read it. If LVM says that nobody
/// has it open, nobody was looked for; before mkfs, `is_still_as_read` asks the kernel.
pub fn permit_make(facts: &Facts, fs: FsType, how: Making) -> Ruling {
    if facts.is_mounted_here() {
        return Err(Reason::InUse(Vec::new()));
    }
    match users(facts).into_iter().next() {
        Some(User::Open(processes)) => return Err(Reason::BeingRead(processes)),
        Some(user) => return Err(user.into()),
        None => {}
    }
    require_exactly_well(facts)?;
    if let Some(volume) = facts.volume() {
        require_metadata_room(volume.group.metadata_free, 1)?;
    }
    let permit = Permit::of(fs);
    Ok(Decision::Make { permit, how })
}

/// Fails if mkfs cannot write to the volume.
pub fn require_for_mkfs(facts: &Facts, volume: &Volume, wish: &Wish) -> Result<(), Reason> {
    if wish.read_only {
        return Err(Reason::BlankReadOnly);
    }
    require_writable(facts, volume, wish)
}

/// Fails if the wish is to write, and the volume cannot be written.
pub fn require_writable(facts: &Facts, volume: &Volume, wish: &Wish) -> Result<(), Reason> {
    if wish.read_only {
        return Ok(());
    }
    if volume.writable == Some(false) || facts.read_only {
        return Err(Reason::ReadOnlyVolume(volume.read_only_by()));
    }
    let disk = facts.read_only_disk.clone();
    disk.map_or(Ok(()), |disk| Err(Reason::ReadOnlyDisk(disk)))
}
