//! What may be done with a volume: the one place that decides it. Pure: the same facts and the same
//! wish give the same decision. Read it from top to bottom; it goes from what costs nothing to know
//! to what costs most, and mkfs is its very last arm.

use super::decision::{Decision, Grow, Level, Mount, Purpose, Wish};
use super::device::Failure;
use super::doubt::Doubt;
use super::facts::{Content, Facts, Filesystem, Lvm, Mounted, Pool, There, Uses};
use super::reason::Reason;
use super::room::{absent, of_pool, of_size};
use crate::lvm::{Locks, Volume};
use crate::mount::Row;
use crate::names::{FsType, VgName};

/// A filesystem that is this much smaller than its volume was not grown along with it. Less is what
/// alignment and whole block groups leave unused.
const WORTH_GROWING: u64 = 1 << 20;

/// Every rule of "Never lose data", from the strongest doubt to the last permission.
pub fn decide(facts: &Facts, wish: &Wish) -> Decision {
    if let Some(why) = &wish.not_allowed {
        return Decision::Refuse(Reason::NotAllowed(why.clone()));
    }
    if let Some(why) = &facts.not_its_device {
        return Decision::Refuse(Reason::NotItsDevice(why.clone()));
    }
    if facts.device.is_some() {
        if wish.purpose == Purpose::Device {
            return Decision::Ready;
        }
        let Some(uses) = &facts.uses else {
            return Decision::Look(Level::Uses);
        };
        match (of_uses(facts, uses, wish), wish.purpose) {
            // A volume is extended wherever it is mounted.
            (None, _) | (Some(Decision::Keep { .. } | Decision::Bind(_)), Purpose::Size(_)) => {}
            (Some(decision), _) => return decision,
        }
    }
    let Some(lvm) = &facts.lvm else {
        return Decision::Look(Level::Lvm);
    };
    if let Some(decision) = of_lvm(facts, lvm, wish) {
        return decision;
    }
    if let Some(decision) = of_openers(facts, wish) {
        return decision;
    }
    match (wish.purpose, &facts.content, facts.volume()) {
        (Purpose::Size(size), _, Some(volume)) => of_size(volume, size, wish),
        (_, Some(content), Some(volume)) => of_content(facts, content, volume, wish),
        _ => Decision::Look(Level::Content),
    }
}

/// Who uses it, and where it is mounted. None: nobody.
fn of_uses(facts: &Facts, uses: &Uses, wish: &Wish) -> Option<Decision> {
    let refuse = |reason| Some(Decision::Refuse(reason));
    match &uses.there {
        Some(There::Another(what)) => return refuse(Reason::AnotherIsThere(what.clone())),
        Some(There::This(row)) => return Some(keep(row, wish)),
        None => {}
    }
    if let Some((dir, what)) = &uses.name_taken {
        return refuse(Reason::NameTaken(dir.clone(), what.clone()));
    }
    if uses.swap {
        return refuse(Reason::Swap);
    }
    if !uses.holders.is_empty() {
        return refuse(Reason::Below(uses.holders.clone()));
    }
    if let Some(host) = uses.mounts.iter().find(|mounted| !mounted.kubelets) {
        let recorded = match (wish.by_hand, &facts.lvm) {
            (false, _) => false,
            // An operator may mount by hand anywhere, even twice. With our record on the volume,
            // that mount is not the host's own use of it.
            (true, None) => return Some(Decision::Look(Level::Lvm)),
            (true, Some(_)) => facts.volume().is_some_and(|v| v.record.made.is_some()),
        };
        if !recorded {
            return refuse(Reason::HostMount(host.row.mount_point.clone()));
        }
    }
    let from = best(&uses.mounts, wish)?;
    Some(if let Some(reason) = wrong_type(&from.fs_type, wish) {
        Decision::Refuse(reason)
    } else if let Some(failure) = uses.failure.filter(|failure| is_harmed(*failure, wish)) {
        Decision::Refuse(Reason::FilesystemFailed(from.mount_point.clone(), failure))
    } else if writes_through(from, wish) {
        Decision::Refuse(Reason::MountedReadOnly(from.mount_point.clone()))
    } else {
        Decision::Bind(from.clone())
    })
}

/// What is mounted where it is wanted stays, if it can be what was asked for.
fn keep(row: &Row, wish: &Wish) -> Decision {
    if let Some(reason) = wrong_type(&row.fs_type, wish) {
        return Decision::Refuse(reason);
    }
    // It was mounted for writing, and is what it was, where the kernel made it read-only later.
    if row.is_mount_read_only() && writes_through(row, wish) {
        return Decision::Refuse(Reason::ThereReadOnly(row.mount_point.clone()));
    }
    Decision::Keep {
        read_only: (wish.read_only != row.is_mount_read_only()).then_some(wish.read_only),
    }
}

/// Whether a pod more cannot do what it is to do in a filesystem in which the kernel met an error.
/// What can still be read may be read, if only to be saved.
fn is_harmed(failure: Failure, wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem && (failure == Failure::ShutDown || !wish.read_only)
}

/// Whether a pod is to write through a mount whose filesystem cannot be written.
fn writes_through(row: &Row, wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem && !wish.read_only && row.is_filesystem_read_only()
}

fn wrong_type(found: &str, wish: &Wish) -> Option<Reason> {
    let wanted = wish.fs.filter(|wanted| wanted.as_str() != found)?;
    let found = found.to_owned();
    Some(Reason::WrongType { found, wanted })
}

/// The mount to bind from: one of all of the filesystem, kubelet's before others, its own global one
/// before a pod's, one that can be written before one that cannot. Of a btrfs each pod may name another
/// subvolume, which no other mount but its own global one surely shows.
fn best<'a>(mounts: &'a [Mounted], wish: &Wish) -> Option<&'a Row> {
    let is_another = |row: &Row| wish.subvolume && row.fs_type == "btrfs";
    let fits = |one: &&Mounted| one.own_global || (one.row.is_whole() && !is_another(&one.row));
    let rank = |one: &&Mounted| (!one.kubelets, !one.own_global, one.row.is_read_only());
    let best = mounts.iter().filter(fits).min_by_key(rank);
    best.map(|mounted| &mounted.row)
}

/// What LVM says. None: nothing against it.
fn of_lvm(facts: &Facts, lvm: &Lvm, wish: &Wish) -> Option<Decision> {
    let refuse = |reason| Some(Decision::Refuse(reason));
    let (volume, pool, unused_table, lost) = match lvm {
        Lvm::Silent(words) => return refuse(Reason::LvmSilent(words.clone())),
        Lvm::Hidden => return refuse(Reason::Hidden),
        Lvm::NoGroup | Lvm::NoVolume { .. } if facts.device.is_some() => {
            return refuse(Reason::Unknown);
        }
        Lvm::NoGroup => return refuse(Reason::NoGroup),
        Lvm::NoVolume { free } => return Some(absent(*free, wish)),
        Lvm::Volume {
            volume,
            pool,
            unused_table,
            lost,
        } => (volume, pool, *unused_table, *lost),
    };
    if volume.is_pool() {
        return refuse(Reason::Pool);
    }
    if lost {
        return refuse(Reason::Partial);
    }
    if volume.has_overflowed() {
        return refuse(Reason::SnapshotFull);
    }
    if volume.lock.is_some() {
        let Some(locks) = &facts.locks else {
            return Some(Decision::Look(Level::Locks));
        };
        if let Some(reason) = of_locks(locks, facts.id.vg(), facts.device.is_some()) {
            return refuse(reason);
        }
    }
    let Some(device) = &facts.device else {
        return Some(Decision::Activate);
    };
    if volume.uuid != device.lv_uuid {
        return refuse(Reason::AnotherDevice);
    }
    if let Some(name) = facts.uses.as_ref().and_then(|uses| uses.suspended.as_ref()) {
        // A killed lvextend leaves a table that the kernel does not use yet. Suspending by hand
        // leaves none, and is left alone.
        return if unused_table {
            Some(Decision::Resume)
        } else {
            refuse(Reason::Suspended(name.clone()))
        };
    }
    match pool {
        None => None,
        Some(Pool::Unseen(pool)) => refuse(Reason::NoPool(pool.clone())),
        Some(Pool::Seen(pool)) => of_pool(pool, wish).map(Decision::Refuse),
    }
}

/// Who has the lock of a volume in a shared group. None: this node, or it may try to get it.
pub fn of_locks(locks: &Locks, vg: &VgName, is_active: bool) -> Option<Reason> {
    if let Some(obstacle) = locks.obstacle(vg) {
        return Some(Reason::NoLocks(obstacle));
    }
    match locks {
        Locks::Elsewhere(holder) => Some(Reason::HeldElsewhere(holder.clone())),
        // Another node may write to it at the same time.
        Locks::Shared => Some(Reason::ActiveShared),
        Locks::NotHeld if is_active => Some(Reason::ActiveWithoutLock),
        _ => None,
    }
}

/// Who has the device open. None: nobody, or nobody who could be in the way.
fn of_openers(facts: &Facts, wish: &Wish) -> Option<Decision> {
    let refuse = |reason| Some(Decision::Refuse(reason));
    let is_mounted = facts
        .uses
        .as_ref()
        .is_some_and(|uses| !uses.mounts.is_empty());
    if is_mounted && wish.purpose != Purpose::Filesystem {
        return None;
    }
    let is_open = facts.volume().is_some_and(|volume| volume.open);
    let Some(openers) = &facts.openers else {
        return is_open.then_some(Decision::Look(Level::Openers));
    };
    let writers = || openers.processes.iter().filter(|opener| opener.writes);
    if !openers.loops.is_empty() {
        refuse(Reason::Loop(openers.loops.clone()))
    } else if writers().next().is_some() {
        refuse(Reason::Open(writers().cloned().collect()))
    } else if openers.unseen > 0 {
        refuse(Reason::OpenUnseen)
    } else {
        None
    }
}

fn of_content(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Decision {
    let record = &volume.record;
    Decision::Refuse(match content {
        Content::Failed(words) => Reason::Failed(words.clone()),
        Content::Unreadable { at, error } => Reason::Unreadable {
            at: *at,
            error: error.clone(),
        },
        Content::Claimed(found) => return claimed(facts, found.as_ref(), volume, wish),
        Content::Several => Reason::Several,
        Content::Other(what) if record.new => Reason::NewNotBlank(what.clone()),
        Content::Other(what) => Reason::Other {
            what: what.clone(),
            wanted: wish.fs,
        },
        Content::Damaged(fs) => Reason::Damaged(*fs),
        Content::Filesystem(found) => return of_filesystem(facts, found, volume, wish),
        Content::Blank { doubts, .. } => return of_blank(facts, doubts.clone(), volume, wish),
    })
}

/// Something has claimed the device: a mount that cannot be bound from, or nobody knows what.
fn claimed(
    facts: &Facts,
    found: Option<&(FsType, String)>,
    volume: &Volume,
    wish: &Wish,
) -> Decision {
    let openers = facts.openers.clone().unwrap_or_default();
    let is_mounted_here = facts
        .uses
        .as_ref()
        .is_some_and(|uses| !uses.mounts.is_empty());
    let is_hosts = openers.elsewhere.iter().any(|other| other.hosts);
    // The kernel gives a filesystem that is mounted already to whoever mounts it again. Only our own
    // record tells that it is the volume's, and never if the host uses it.
    let made = volume.record.made.as_ref();
    let ours = found.filter(|(_, uuid)| made.is_some_and(|made| made.uuid == *uuid) && !is_hosts);
    let (Some((fs, uuid)), true) = (ours, is_mounted_here || openers.is_mounted()) else {
        return Decision::Refuse(if openers.elsewhere.is_empty() && openers.has_filesystem {
            Reason::StillMounted
        } else {
            Reason::InUse(openers.elsewhere)
        });
    };
    if let Some(reason) = wrong_type(fs.as_str(), wish) {
        return Decision::Refuse(reason);
    }
    Decision::Mount(Mount {
        fs: *fs,
        uuid: uuid.clone(),
        check: false,
        grow: Grow::Not,
        record: false,
        elsewhere: openers.elsewhere,
    })
}

/// A filesystem is there: the one that was asked for, and the one that the volume is known to hold?
fn of_filesystem(facts: &Facts, found: &Filesystem, volume: &Volume, wish: &Wish) -> Decision {
    let record = &volume.record;
    let (fs, writes) = (found.fs, !wish.read_only);
    if found.half && record.made.is_none() && record.making.as_deref() == Some(fs.as_str()) {
        // Nobody ever mounted it: it is what the driver's own mkfs left when it was killed.
        return unwritable(facts, volume, wish)
            .map_or(Decision::Make { fs, again: true }, Decision::Refuse);
    }
    if record.new {
        return Decision::Refuse(Reason::NewNotBlank(format!("{fs} {}", found.uuid)));
    }
    if let Some(reason) = wrong_type(fs.as_str(), wish) {
        return Decision::Refuse(reason);
    }
    if let Some(made) = record.made.as_ref().filter(|made| made.uuid != found.uuid) {
        return Decision::Refuse(Reason::Swapped {
            held: format!("{} {}", made.fs, made.uuid),
            holds: format!("{fs} {}", found.uuid),
        });
    }
    // btrfs counts all of its disks, and looks at each itself.
    if found.covers > found.device && fs != FsType::Btrfs {
        return Decision::Refuse(Reason::Reduced {
            fs,
            has: found.device,
            covers: found.covers,
        });
    }
    if writes && !is_writable(facts, volume) {
        return Decision::Refuse(Reason::ReadOnlyVolume);
    }
    if let Some(disk) = facts.read_only_disk.clone().filter(|_| writes) {
        return Decision::Refuse(Reason::ReadOnlyDisk(disk));
    }
    let missing = found.device.get().saturating_sub(found.covers.get());
    Decision::Mount(Mount {
        fs,
        uuid: found.uuid.clone(),
        check: writes && fs.is_ext(),
        grow: match fs {
            _ if !writes || missing < WORTH_GROWING => Grow::Not,
            FsType::Ext2 => Grow::Before,
            _ => Grow::After,
        },
        // Any other tag that speaks of its content is out of date from now on: a permission to
        // format it was for another content.
        record: record.made.is_none() || record.content_tags().count() != 1,
        elsewhere: Vec::new(),
    })
}

/// Nothing is there, unless one of `doubts` is right, or the record.
fn of_blank(facts: &Facts, mut doubts: Vec<Doubt>, volume: &Volume, wish: &Wish) -> Decision {
    let record = &volume.record;
    if let Some(reason) = unwritable(facts, volume, wish) {
        return Decision::Refuse(reason);
    }
    let making = record
        .making
        .as_deref()
        .and_then(|fs| FsType::parse(fs).ok());
    if making.is_some_and(FsType::is_ext) {
        // A mkfs that was killed leaves backups of its own. With blocks of 4 KiB, as the driver has
        // them, it leaves nothing before its superblock: other data is not excused.
        doubts.retain(|doubt| !matches!(doubt, Doubt::Backup(_)));
    }
    if let Some(doubt) = doubts.first().filter(|_| record.new) {
        return Decision::Refuse(Reason::NewNotBlank(doubt.to_string()));
    }
    if let Some(made) = &record.made {
        doubts.insert(0, Doubt::Held(made.fs.clone(), made.uuid.clone()));
    }
    if doubts.is_empty() || record.permits(&Doubt::names(&doubts), facts.now) {
        return Decision::Make {
            fs: wish.fs.unwrap_or(wish.default_fs),
            again: false,
        };
    }
    Decision::Refuse(Reason::Doubts(doubts))
}

/// Why mkfs cannot write to it, or should not yet.
fn unwritable(facts: &Facts, volume: &Volume, wish: &Wish) -> Option<Reason> {
    let readers = facts.openers.as_ref().map(|openers| &openers.processes);
    if wish.read_only {
        Some(Reason::BlankReadOnly)
    } else if let Some(readers) = readers.filter(|readers| !readers.is_empty()) {
        Some(Reason::BeingRead(readers.clone()))
    } else if !is_writable(facts, volume) {
        Some(Reason::BlankReadOnlyVolume(
            wish.fs.unwrap_or(wish.default_fs),
        ))
    } else {
        facts.read_only_disk.clone().map(Reason::ReadOnlyDisk)
    }
}

fn is_writable(facts: &Facts, volume: &Volume) -> bool {
    volume.writable != Some(false) && !facts.read_only
}

#[cfg(test)]
#[path = "decide_sample.rs"]
mod sample;
#[cfg(test)]
#[path = "decide_table.rs"]
mod table;
