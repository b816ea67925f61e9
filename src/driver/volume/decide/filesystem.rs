//! Decides by a filesystem that is found or to be made, on a volume or inside an encrypted one. Pure; [`make`] is the
//! very last arm.

use super::decision::{Decision, Grow, Mount, Permit, Purpose, Wish};
use super::facts::{Facts, FilesystemState, Place};
use super::reason::Reason;
use super::space::{of_metadata, of_sectors};
use super::users::users;
use crate::lvm::Volume;
use crate::names::{Bytes, Filesystem, FsType};
use crate::volume::device::Failure;

/// A filesystem smaller than its volume by this much was not grown with it. Alignment and whole block groups
/// leave less than this unused.
const WORTH_GROWING: u64 = 1 << 20;

pub fn unreadable(at: u64, error: &str) -> Reason {
    let error = error.to_owned();
    Reason::Unreadable { at, error }
}

/// Something has claimed the device: a mount in another mount namespace, or an unknown user.
pub fn claimed(
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
    let wrong = wrong_kind(Some(volume.record.luks.is_some()), wish);
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
pub fn of_filesystem(
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

/// Decides by the kind of the volume: whether it is encrypted, if LVM's tags or the device that is mounted tell.
pub fn wrong_kind(is_encrypted: Option<bool>, wish: &Wish) -> Option<Reason> {
    match (wish.purpose, wish.encrypted?, is_encrypted?) {
        (Purpose::Filesystem, false, true) => Some(Reason::Encrypted),
        (Purpose::Filesystem, true, false) => Some(Reason::NotEncrypted),
        _ => None,
    }
}

/// True if the failure rules out one more pod. A pod may still read the filesystem, if only to save its data.
pub fn is_harmed(failure: Failure, wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem && (failure == Failure::ShutDown || !wish.read_only)
}

/// The last arm: mkfs. A process that reads the device has a reason, so mkfs waits until it has ended.
pub fn make(facts: &Facts, fs: FsType, again: bool) -> Decision {
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
                permit: Permit::of(fs),
                again,
            },
        },
    }
}

/// Why mkfs cannot write to the volume.
pub fn unwritable(facts: &Facts, volume: &Volume, wish: &Wish) -> Option<Reason> {
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
pub fn read_only(facts: &Facts, volume: &Volume, wish: &Wish) -> Option<Reason> {
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
