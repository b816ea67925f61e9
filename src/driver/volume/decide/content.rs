//! Decides by the content of a volume: by a filesystem that is found or to be made, on the volume or inside an
//! encrypted one. Pure; [`make`] is the very last arm.

use super::decision::{Decision, Grow, Making, Mount, Ruling};
use super::doubt::Doubt;
use super::encrypted;
use super::facts::{Content, Facts, FilesystemState};
use super::permit::Permit;
use super::reason::Reason;
use super::space::{require_metadata_room, require_sectors};
use super::users::{User, users};
use super::uses::Place;
use super::wish::{Purpose, Wish};
use crate::lvm::Volume;
use crate::names::{Bytes, Filesystem, FsType, Shown};
use crate::volume::device::Failure;

/// A filesystem smaller than its volume by this much was not grown with it. Alignment and whole block groups
/// leave less than this unused.
const WORTH_GROWING: u64 = 1 << 20;

/// Decides by the content, from the strongest doubt to the last permission: mkfs is the very last arm.
pub fn of_content(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Ruling {
    require_no_old_disk(facts)?;
    if let Some(decision) = encrypted::of_luks(facts, content, volume, wish)? {
        return Ok(decision);
    }
    match content {
        Content::Failed(words) => Err(Reason::Failed(words.clone())),
        Content::Unreadable { at, error } => Err(Reason::Unreadable {
            at: *at,
            error: error.clone(),
        }),
        Content::Claimed(found) => claimed(facts, found.as_ref(), volume, wish),
        Content::Several => Err(Reason::Several),
        Content::Other(what) if volume.record.new => Err(Reason::NewNotBlank(what.to_string())),
        Content::Other(what) => Err(Reason::Other {
            what: what.clone(),
            wanted: wish.fs,
        }),
        Content::Luks(header) => Err(Reason::Other {
            what: encrypted::in_words(header).shown(),
            wanted: wish.fs,
        }),
        Content::Damaged(fs) => Err(Reason::Damaged(*fs)),
        Content::Filesystem(found) => of_filesystem(facts, found, volume, wish),
        Content::Blank { doubts, .. } => of_blank(facts, doubts.clone(), volume, wish),
    }
}

/// Decides for a volume that looks blank. `doubts` and the tag are signs that it held data.
fn of_blank(facts: &Facts, mut doubts: Vec<Doubt>, volume: &Volume, wish: &Wish) -> Ruling {
    let record = &volume.record;
    require_for_mkfs(facts, volume, wish)?;
    let making = record.making.as_deref().map(FsType::parse);
    if making.is_some_and(|fs| fs.is_ok_and(FsType::is_ext)) {
        doubts.retain(|doubt| !is_left_by_mke2fs(doubt, volume));
    }
    if record.new && facts.untouched {
        doubts.retain(|doubt| !doubt.may_be_remains());
    }
    if let Some(doubt) = doubts.first().filter(|_| record.new) {
        return Err(Reason::NewNotBlank(doubt.to_string()));
    }
    if let Some(made) = &record.made {
        doubts.insert(0, Doubt::Recorded(made.clone()));
    }
    if !doubts.is_empty() && !record.permits(&Doubt::names(&doubts), facts.now) {
        return Err(Reason::Doubts(doubts));
    }
    let fs = wish.fs.unwrap_or(wish.default_fs);
    let begun = record.making_in_luks();
    if wish.encrypted.unwrap_or(begun.is_some()) {
        let uuid = begun.map(|(_, uuid)| uuid.to_owned());
        return encrypted::encrypt(facts, fs, uuid, wish);
    }
    make(facts, fs, Making::Plain { again: false })
}

/// Whether a killed mke2fs may have left this: see [`Doubt::may_be_unfinished`]. Below 512 MiB it chooses small blocks,
/// and its group descriptors are at 2 KiB. On a volume of up to 8 MiB it makes one group, so no backup would tell
/// whether somebody has used that. mkfs.xfs writes its superblock first, and mkfs.btrfs nothing before its own, so blkid
/// names what they leave. Source: mke2fs.conf(5), "small"; seen with a kill at each write.
fn is_left_by_mke2fs(doubt: &Doubt, volume: &Volume) -> bool {
    const ONE_GROUP: u64 = 9 << 20;
    match doubt {
        Doubt::Data(at) => *at >= 2048 && (ONE_GROUP..512 << 20).contains(&volume.size.get()),
        Doubt::Backup(_) | Doubt::Recorded(..) | Doubt::Mark(_) => doubt.may_be_unfinished(),
    }
}

/// Fails if a part of the device is on a disk that LVM has not any more: nothing of that part can be read, even if what
/// was read here is elsewhere.
fn require_no_old_disk(facts: &Facts) -> Result<(), Reason> {
    let Some(disk) = facts.astray.first() else {
        return Ok(());
    };
    let uses = facts.uses.as_ref();
    Err(Reason::OldDisk {
        disk: disk.clone(),
        pool: facts.volume().and_then(Volume::pool_id),
        inside: uses
            .and_then(|uses| uses.inside.as_ref())
            .map(|inside| inside.device.path.clone()),
    })
}

/// Decides for a device that is claimed: by a mount in another mount namespace, or by an unknown user.
pub fn claimed(facts: &Facts, found: Option<&Filesystem>, volume: &Volume, wish: &Wish) -> Ruling {
    let openers = facts.openers.clone().unwrap_or_default();
    let is_hosts = openers.elsewhere.iter().any(|other| other.hosts);
    // A second mount of a mounted filesystem shows the same filesystem. Only our own tag proves that it is the
    // volume's; the host's own mount is never shared.
    let made = volume.record.made.as_ref();
    let ours = found.filter(|found| made.is_some_and(|made| made.uuid == found.uuid) && !is_hosts);
    let (Some(filesystem), true) = (ours, facts.is_mounted_here() || openers.is_mounted()) else {
        let user = users(facts).into_iter().next();
        return Err(user.map_or(Reason::InUse(Vec::new()), Reason::from));
    };
    require_kind(volume.record.luks.is_some(), wish)?;
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

/// Decides for a volume with a filesystem: is it of the wanted type, and the one that the volume's tag names?
pub fn of_filesystem(
    facts: &Facts,
    found: &FilesystemState,
    volume: &Volume,
    wish: &Wish,
) -> Ruling {
    let record = &volume.record;
    let (filesystem, writes) = (&found.filesystem, !wish.read_only);
    let fs = filesystem.fs;
    if found.half && record.made.is_none() && record.making.as_deref() == Some(fs.as_str()) {
        // Nobody ever mounted it: the driver's own mkfs was killed and left it.
        require_for_mkfs(facts, volume, wish)?;
        require_type(fs.as_str(), wish)?;
        return make(facts, fs, Making::Plain { again: true });
    }
    if record.new {
        return Err(Reason::NewNotBlank(filesystem.to_string()));
    }
    require_type(fs.as_str(), wish)?;
    let made = record.made.as_ref();
    if let Some(made) = made.filter(|made| made.uuid != filesystem.uuid) {
        return Err(Reason::Swapped {
            recorded: made.clone(),
            found: filesystem.clone(),
        });
    }
    require_whole(facts, found, volume)?;
    require_small_blocks(facts, found)?;
    require_sectors(&found.sectors)?;
    // Kernel and tools find the parts by UUIDs, which snapshots and copies have too.
    if found.is_part {
        return Err(Reason::SeveralDevices(fs));
    }
    require_writable(facts, volume, wish)?;
    // Every other tag about its content is out of date from now on: a permission to format was for other content.
    let is_due = made.is_none() || record.content_tags().count() != 1;
    let is_recorded = is_due && !waits(facts, volume);
    // Before it is mounted it is recorded, where a tag would allow mkfs.
    if is_recorded && (record.making.is_some() || record.permission.is_some()) {
        require_metadata_room(volume.metadata_free, 1)?;
    }
    Ok(Decision::Mount(Mount {
        filesystem: filesystem.clone(),
        check: writes && fs.is_ext(),
        grow: growth_at_mount(found, wish),
        record: is_recorded,
        alive: None,
    }))
}

/// Fails if the device ends before the filesystem does. btrfs checks that itself.
fn require_whole(facts: &Facts, found: &FilesystemState, volume: &Volume) -> Result<(), Reason> {
    let fs = found.filesystem.fs;
    if found.covers <= found.device || fs == FsType::Btrfs {
        return Ok(());
    }
    // What LVM extends is larger than what is inside.
    let header = match facts.inside {
        Some(_) => volume.size.get().saturating_sub(found.device.get()),
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
        encrypted: facts.inside.is_some(),
    })
}

/// When the filesystem is grown to the size of its device: a size that LVM gave the volume while it was mounted nowhere.
fn growth_at_mount(found: &FilesystemState, wish: &Wish) -> Grow {
    let fs = found.filesystem.fs;
    let missing = found.device.get().saturating_sub(found.covers.get());
    if wish.read_only || missing < WORTH_GROWING || !fs.grows_to(found.device) {
        return Grow::Not;
    }
    match fs {
        FsType::Ext2 => Grow::Before,
        FsType::Ext3 | FsType::Ext4 | FsType::Xfs | FsType::Btrfs => Grow::After,
    }
}

/// Whether the record of a filesystem that was found waits until all disks of the group are there. A change of LVM's
/// metadata that a disk misses makes that disk stale, and LVM leaves it out when it is back (vgextend(8),
/// `--restoremissing`). A tag that would allow mkfs does not wait.
fn waits(facts: &Facts, volume: &Volume) -> bool {
    volume.missing > 0 && !volume.record.may_allow_mkfs(facts.now)
}

/// Fails if the call wants the other kind of volume, by LVM's tags or by the device that is mounted.
pub fn require_kind(is_encrypted: bool, wish: &Wish) -> Result<(), Reason> {
    match (wish.purpose, wish.encrypted) {
        (Purpose::Filesystem, Some(false)) if is_encrypted => Err(Reason::Encrypted),
        (Purpose::Filesystem, Some(true)) if !is_encrypted => Err(Reason::NotEncrypted),
        _ => Ok(()),
    }
}

/// True if the failure rules out one more pod. A pod may still read the filesystem, if only to save its data.
pub fn is_harmed(failure: Failure, wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem && (failure == Failure::ShutDown || !wish.read_only)
}

/// The last arm: mkfs. Fails while anybody uses the device. A process that reads it does so for a reason, so mkfs waits
/// until that process has ended.
pub fn make(facts: &Facts, fs: FsType, how: Making) -> Ruling {
    if facts.is_mounted_here() {
        return Err(Reason::InUse(Vec::new()));
    }
    match users(facts).into_iter().next() {
        Some(User::Open(processes)) => return Err(Reason::BeingRead(processes)),
        Some(user) => return Err(user.into()),
        None => {}
    }
    if let Some(volume) = facts.volume() {
        require_metadata_room(volume.metadata_free, 1)?;
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

/// Fails if the volume is to be written, and cannot be.
pub fn require_writable(facts: &Facts, volume: &Volume, wish: &Wish) -> Result<(), Reason> {
    if wish.read_only {
        return Ok(());
    }
    if volume.writable == Some(false) || facts.read_only {
        let overridden = volume.overridden;
        return Err(Reason::ReadOnlyVolume { overridden });
    }
    let disk = facts.read_only_disk.clone();
    disk.map_or(Ok(()), |disk| Err(Reason::ReadOnlyDisk(disk)))
}
