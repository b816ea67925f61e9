//! Decides by the content of a volume. Pure; [`make`] is the very last arm.

use super::decision::{Decision, Grow, Mount, Wish};
use super::doubt::Doubt;
use super::encrypted;
use super::facts::{Content, Facts, FilesystemState, Place};
use super::reason::Reason;
use super::rules::is_harmed;
use super::space::{of_metadata, of_sectors};
use super::users::users;
use crate::fs::TINY;
use crate::lvm::Volume;
use crate::names::{Bytes, Filesystem, FsType};
use crate::volume::device::Failure;

/// A filesystem smaller than its volume by this much was not grown with it. Alignment and whole block groups
/// leave less than this unused.
const WORTH_GROWING: u64 = 1 << 20;

/// Decides by the content, from the strongest doubt to the last permission: mkfs is the very last arm.
pub fn of_content(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Decision {
    let record = &volume.record;
    if let Some(decision) = encrypted::of_content(facts, content, volume, wish) {
        return decision;
    }
    Decision::Refuse(match content {
        Content::Failed(words) => Reason::Failed(words.clone()),
        Content::Unreadable { at, error } => unreadable(*at, error),
        Content::Claimed(found) => return claimed(facts, found.as_ref(), volume, wish),
        Content::Several => Reason::Several,
        Content::Other(what) if record.new => Reason::NewNotBlank(what.to_string()),
        Content::Other(what) => Reason::Other {
            what: what.clone(),
            wanted: wish.fs,
        },
        Content::Luks(header) => encrypted::foreign(header, wish),
        Content::Damaged(fs) => Reason::Damaged(*fs),
        Content::Filesystem(found) => return of_filesystem(facts, found, volume, wish),
        Content::Blank { doubts, .. } => return of_blank(facts, doubts.clone(), volume, wish),
    })
}

pub(super) fn unreadable(at: u64, error: &str) -> Reason {
    let error = error.to_owned();
    Reason::Unreadable { at, error }
}

/// Something has claimed the device: a mount in another mount namespace, or an unknown user.
pub(super) fn claimed(
    facts: &Facts,
    found: Option<&Filesystem>,
    volume: &Volume,
    wish: &Wish,
) -> Decision {
    let openers = facts.openers.clone().unwrap_or_default();
    let is_hosts = openers.elsewhere.iter().any(|other| other.hosts);
    // A second mount of a mounted filesystem shows the same filesystem. Only our own tag proves that it is the
    // volume's; the host's own mount is never shared.
    let made = volume.record.made.as_ref();
    let ours = found.filter(|found| made.is_some_and(|made| made.uuid == found.uuid) && !is_hosts);
    let (Some(filesystem), true) = (ours, facts.is_mounted_here() || openers.is_mounted()) else {
        let user = users(facts).into_iter().next();
        return Decision::Refuse(user.unwrap_or(Reason::InUse(Vec::new())));
    };
    let wrong = encrypted::wrong_kind(Some(volume.record.luks.is_some()), wish);
    if let Some(reason) = wrong.or_else(|| wrong_type(filesystem.fs.as_str(), wish)) {
        return Decision::Refuse(reason);
    }
    if openers.has_errors && is_harmed(Failure::Errors, wish) {
        let place = Place::Elsewhere(openers.elsewhere);
        return Decision::Refuse(Reason::FilesystemFailed(place, Failure::Errors));
    }
    Decision::Mount(Mount {
        filesystem: filesystem.clone(),
        check: false,
        grow: Grow::Not,
        record: false,
        alive: Some(openers.elsewhere),
        disks: None,
    })
}

pub fn wrong_type(found: &str, wish: &Wish) -> Option<Reason> {
    let wanted = wish.fs.filter(|wanted| wanted.as_str() != found)?;
    let found = found.to_owned();
    Some(Reason::WrongType { found, wanted })
}

/// Decides for a volume with a filesystem: is it of the wanted type, and the one that the volume's tag names?
pub(super) fn of_filesystem(
    facts: &Facts,
    found: &FilesystemState,
    volume: &Volume,
    wish: &Wish,
) -> Decision {
    let record = &volume.record;
    let (filesystem, writes) = (&found.filesystem, !wish.read_only);
    let fs = filesystem.fs;
    if found.half && record.made.is_none() && record.making.as_deref() == Some(fs.as_str()) {
        // Nobody ever mounted it: the driver's own mkfs was killed and left it.
        return unwritable(facts, volume, wish)
            .or_else(|| wrong_type(fs.as_str(), wish))
            .map_or_else(|| make(facts, fs, true), Decision::Refuse);
    }
    if record.new {
        return Decision::Refuse(Reason::NewNotBlank(filesystem.to_string()));
    }
    if let Some(reason) = wrong_type(fs.as_str(), wish) {
        return Decision::Refuse(reason);
    }
    if let Some(made) = record
        .made
        .as_ref()
        .filter(|made| made.uuid != filesystem.uuid)
    {
        return Decision::Refuse(Reason::Swapped {
            recorded: made.clone(),
            found: filesystem.clone(),
        });
    }
    // The size of a btrfs counts all of its disks. btrfs checks each of them itself.
    if found.covers > found.device && fs != FsType::Btrfs {
        // What LVM extends is larger than what is inside.
        let header = match facts.inside {
            Some(_) => volume.size.get().saturating_sub(found.device.get()),
            None => 0,
        };
        let with_header = |size: Bytes| Bytes::new(size.get().saturating_add(header));
        return Decision::Refuse(Reason::Reduced {
            fs,
            has: with_header(found.device),
            covers: with_header(found.covers),
        });
    }
    if found.block > found.largest_block {
        return Decision::Refuse(Reason::LargeBlocks {
            fs,
            block: found.block,
            largest: found.largest_block,
            encrypted: facts.inside.is_some(),
        });
    }
    if let Some(reason) = of_sectors(&found.sectors) {
        return Decision::Refuse(reason);
    }
    if let Some(reason) = mixed_up(found, volume) {
        return Decision::Refuse(reason);
    }
    if let Some(reason) = read_only(facts, volume, wish) {
        return Decision::Refuse(reason);
    }
    // Before it is mounted it is recorded, where a tag would allow mkfs.
    if (record.making.is_some() || record.permission.is_some())
        && let Some(full) = of_metadata(volume.metadata_free, 1)
    {
        return Decision::Refuse(full);
    }
    let missing = found.device.get().saturating_sub(found.covers.get());
    Decision::Mount(Mount {
        filesystem: filesystem.clone(),
        check: writes && fs.is_ext(),
        grow: match fs {
            _ if !writes || missing < WORTH_GROWING || !fs.grows_to(found.device) => Grow::Not,
            FsType::Ext2 => Grow::Before,
            _ => Grow::After,
        },
        // Every other tag about its content is out of date from now on: a permission to format was for other
        // content.
        record: record.made.is_none() || record.content_tags().count() != 1,
        alive: None,
        disks: Some(found.parts.clone().unwrap_or_default().disks),
    })
}

/// Why a mount could combine parts of two filesystems, or replay the log of one into the other.
fn mixed_up(found: &FilesystemState, volume: &Volume) -> Option<Reason> {
    let parts = found.parts.as_ref()?;
    let fs = found.filesystem.fs;
    let is_ext = fs.is_ext();
    // Tools name an ext by its device, so the log of an origin goes to the origin. They find the disks of a
    // btrfs by UUID.
    let is_known = is_ext && volume.is_origin() && !volume.is_snapshot();
    let twins = parts.twins.iter().filter(|_| !is_known);
    let with: Vec<String> = twins.chain(&parts.ambiguous).cloned().collect();
    let is_snapshot = is_ext && volume.is_snapshot();
    (is_snapshot || !with.is_empty()).then_some(Reason::MixedUp { fs, with })
}

/// Decides for a volume that looks blank. `doubts` and the tag are signs that it held data.
fn of_blank(facts: &Facts, mut doubts: Vec<Doubt>, volume: &Volume, wish: &Wish) -> Decision {
    let record = &volume.record;
    if let Some(reason) = unwritable(facts, volume, wish) {
        return Decision::Refuse(reason);
    }
    let making = record.making.as_deref().map(FsType::parse);
    if making.is_some_and(|fs| fs.is_ok_and(FsType::is_ext)) {
        doubts.retain(|doubt| !is_left_by_mke2fs(doubt, volume));
    }
    if record.new && facts.untouched {
        doubts.retain(|doubt| !doubt.may_be_remains());
    }
    if let Some(doubt) = doubts.first().filter(|_| record.new) {
        return Decision::Refuse(Reason::NewNotBlank(doubt.to_string()));
    }
    if let Some(made) = &record.made {
        doubts.insert(0, Doubt::Recorded(made.clone()));
    }
    if doubts.is_empty() || record.permits(&Doubt::names(&doubts), facts.now) {
        let fs = wish.fs.unwrap_or(wish.default_fs);
        let begun = record.making_in_luks();
        if wish.encrypted.unwrap_or(begun.is_some()) {
            let uuid = begun.map(|(_, uuid)| uuid.to_owned());
            return encrypted::encrypt(facts, fs, uuid, wish);
        }
        return make(facts, fs, false);
    }
    Decision::Refuse(Reason::Doubts(doubts))
}

/// The permission to make this filesystem, which runs out when it is used: mkfs and luksFormat take it. Its field is
/// this file's alone, so that nothing outside [`decide`](super::decide) leads there:
///
/// ```compile_fail,E0451
/// driver::volume::Permit { fs: driver::names::FsType::Ext4 };
/// ```
#[derive(Debug, PartialEq)]
pub struct Permit {
    fs: FsType,
}

impl Permit {
    pub fn fs(&self) -> FsType {
        self.fs
    }

    /// As [`Self::fs`], for mkfs.
    pub fn used(self) -> FsType {
        self.fs
    }

    #[cfg(test)]
    pub(super) fn sample(fs: FsType) -> Self {
        Self { fs }
    }
}

/// The last arm: mkfs. A process that reads the device has a reason, so mkfs waits until it has ended.
pub(super) fn make(facts: &Facts, fs: FsType, again: bool) -> Decision {
    if facts.is_mounted_here() {
        return Decision::Refuse(Reason::InUse(Vec::new()));
    }
    match users(facts).into_iter().next() {
        Some(Reason::Open(processes)) => Decision::Refuse(Reason::BeingRead(processes)),
        Some(user) => Decision::Refuse(user),
        None => match facts
            .volume()
            .and_then(|volume| of_metadata(volume.metadata_free, 1))
        {
            Some(full) => Decision::Refuse(full),
            None => Decision::Make {
                permit: Permit { fs },
                again,
            },
        },
    }
}

/// Whether a killed mke2fs may have left this. It writes backups first and its superblock last. Below 512 MiB
/// it chooses small blocks, and its group descriptors are at 2 KiB. mkfs.xfs writes its superblock first, and
/// mkfs.btrfs nothing before its own, so blkid names what they leave. In a volume of up to [`TINY`] all bytes
/// count as data, and some may be somebody's. Source: mke2fs.conf(5), "small"; seen with a kill at each write.
fn is_left_by_mke2fs(doubt: &Doubt, volume: &Volume) -> bool {
    match doubt {
        Doubt::Backup(_) => true,
        Doubt::Data(at) => *at >= 2048 && (TINY + 1..512 << 20).contains(&volume.size.get()),
        Doubt::Recorded(..) | Doubt::Mark(_) => false,
    }
}

/// Why mkfs cannot write to the volume.
pub(super) fn unwritable(facts: &Facts, volume: &Volume, wish: &Wish) -> Option<Reason> {
    if wish.read_only {
        Some(Reason::BlankReadOnly)
    } else if !is_writable(facts, volume) {
        Some(Reason::BlankReadOnlyVolume {
            fs: wish.fs.unwrap_or(wish.default_fs),
            overridden: volume.overridden,
        })
    } else {
        facts.read_only_disk.clone().map(Reason::ReadOnlyDisk)
    }
}

/// Why a volume that holds something cannot be mounted to be written.
pub(super) fn read_only(facts: &Facts, volume: &Volume, wish: &Wish) -> Option<Reason> {
    if wish.read_only {
        return None;
    }
    if !is_writable(facts, volume) {
        let overridden = volume.overridden;
        return Some(Reason::ReadOnlyVolume { overridden });
    }
    facts.read_only_disk.clone().map(Reason::ReadOnlyDisk)
}

fn is_writable(facts: &Facts, volume: &Volume) -> bool {
    volume.writable != Some(false) && !facts.read_only
}
