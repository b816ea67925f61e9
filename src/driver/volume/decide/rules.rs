//! The one place that decides what may be done with a volume. Pure: the same facts and the same wish give the same
//! decision. The rules run from the cheapest facts to the most expensive ones. The most expensive fact is the content
//! of the device: its rules are in `content`.

use super::before_activation::by_lvm_before_activation;
use super::content::by_content;
use super::decision::{Decision, Level, Ruling};
use super::facts::{Facts, Lvm, Pool, Room};
use super::filesystem::{is_harmed, require_encryption_as_asked, require_type};
use super::reason::Reason;
use super::space::{for_creation, for_extension, growth_in_pool, require_usable_pool};
use super::users::{User, require_no_writer, users};
use super::uses::{Mounted, Place, There, Uses};
use super::well::require_well;
use super::wish::{Purpose, Wish};
use crate::lvm::{LeaseState, Volume};
use crate::mount::Row;
use crate::names::{Bytes, VgName};

/// Decides what to do for the wish, by the facts so far. Applies every rule that keeps data from being lost.
pub fn decide(facts: &Facts, wish: &Wish) -> Decision {
    let decision = by_all_rules(facts, wish).unwrap_or_else(Decision::Refuse);
    if facts.lvm_before_activation {
        by_lvm_before_activation(decision, facts, wish)
    } else {
        decision
    }
}

/// The rules, from the cheapest facts to the most expensive ones. [`by_content`] has the rules about the content of the
/// device.
fn by_all_rules(facts: &Facts, wish: &Wish) -> Ruling {
    if let Some(why) = &wish.not_allowed {
        return Err(Reason::NotAllowed(why.clone()));
    }
    if let Some(why) = &facts.not_its_device {
        return Err(Reason::NotItsDevice(why.clone()));
    }
    if facts.device.is_some()
        && let Some(decision) = by_kernel(facts, wish)?
    {
        return Ok(decision);
    }
    let Some(lvm) = &facts.lvm else {
        return Ok(Decision::Look(Level::Lvm));
    };
    if let Some(decision) = by_lvm(facts, lvm, wish)? {
        return Ok(decision);
    }
    let Some(volume) = facts.volume() else {
        return Ok(Decision::Look(Level::Content));
    };
    // If the tags record a LUKS2 header, the volume is encrypted. If they do not, only its content tells.
    if volume.record.luks.is_some() {
        require_encryption_as_asked(true, wish)?;
    }
    // Who has a mounted volume open does not matter to a call that grows it, or that only asks for its device.
    if wish.purpose == Purpose::Filesystem || !facts.is_mounted_here() {
        let is_open = volume.open || facts.lvm_before_activation;
        if is_open && facts.openers.is_none() {
            return Ok(Decision::Look(Level::Openers));
        }
        require_no_writer(facts)?;
    }
    match (wish.purpose, &facts.content) {
        (Purpose::Size(size), _) => for_growth(facts, volume, size, wish),
        (_, Some(content)) => by_content(facts, content, volume, wish),
        (Purpose::Filesystem | Purpose::Device, None) => Ok(Decision::Look(Level::Content)),
    }
}

/// Decides for an active volume by what the kernel shows. `None`: the next rules decide.
fn by_kernel(facts: &Facts, wish: &Wish) -> Result<Option<Decision>, Reason> {
    if wish.purpose == Purpose::Device {
        return Ok(Some(Decision::Ready));
    }
    let Some(uses) = &facts.uses else {
        return Ok(Some(Decision::Look(Level::Uses)));
    };
    if let Some(decision) = by_uses(facts, uses, wish)? {
        return Ok(Some(decision));
    }
    match (&uses.inside, &uses.suspended) {
        (Some(_), Some(name)) => Err(Reason::SuspendedInside(name.clone())),
        (None, _) | (_, None) => Ok(None),
    }
}

/// Decides by the volume's users and mounts. `None`: the next rules decide.
fn by_uses(facts: &Facts, uses: &Uses, wish: &Wish) -> Result<Option<Decision>, Reason> {
    match &uses.there {
        Some(There::Another(what)) => return Err(Reason::AnotherIsThere(what.clone())),
        Some(There::This(row)) => {
            let kept = keep(row, uses, wish)?;
            return Ok(Some(kept).filter(|_| is_to_be_mounted(wish)));
        }
        None => {}
    }
    // kubelet's mounts are no users: `by_mounts` decides about them.
    for user in users(facts) {
        match user {
            // LVM's answer has the driver's record. If a filesystem is recorded, a mount that a runtime made for a pod
            // is no use by the host, and an operator may mount the volume by hand anywhere, even twice.
            User::HostMount { pods, .. } if (wish.by_hand || pods) && facts.lvm.is_none() => {
                return Ok(Some(Decision::Look(Level::Lvm)));
            }
            User::HostMount { .. } if wish.by_hand && facts.is_recorded() => {}
            User::Swap | User::PartOfDevice { .. } | User::HostMount { .. } => {
                return Err(user.into());
            }
            // A later rule decides on these users, if LVM says that the device is open.
            User::InUse(_)
            | User::StillMounted
            | User::Loop(_)
            | User::Open(_)
            | User::OpenUnseen => {}
        }
    }
    match uses.mounts.first() {
        Some(first) => by_mounts(&first.row, facts, uses, wish),
        None => Ok(None),
    }
}

/// For a call that grows the volume, a mount decides nothing: the volume grows wherever it is mounted.
fn is_to_be_mounted(wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem
}

/// Decides for a volume that is mounted, but not at the directory of the call. `first`: its first mount. `None`: the
/// next rules decide.
fn by_mounts(
    first: &Row,
    facts: &Facts,
    uses: &Uses,
    wish: &Wish,
) -> Result<Option<Decision>, Reason> {
    require_encryption_as_asked(uses.inside.is_some(), wish)?;
    require_type(&first.fs_type, wish)?;
    let from = best(&uses.mounts, wish);
    let shown = from.unwrap_or(first);
    let at = || shown.mount_point.clone();
    if let Some(failure) = uses.failure.filter(|failure| is_harmed(*failure, wish)) {
        return Err(Reason::FilesystemFailed(Place::Here(at()), failure));
    }
    if writes_through(shown, wish) {
        return Err(Reason::MountedReadOnly(at()));
    }
    if uses.suspended.is_some() {
        return Ok(None); // LVM tells whether it may be resumed.
    }
    // Somebody made the volume read-only while it was mounted. LVM tells how.
    if uses.mounted_read_only_device && is_to_be_mounted(wish) && !wish.read_only {
        return match facts.volume() {
            Some(volume) => Err(Reason::ReadOnlyVolume(volume.read_only_by())),
            None if facts.lvm.is_none() => Ok(Some(Decision::Look(Level::Lvm))),
            None => Ok(None), // LVM does not show the volume: a later rule refuses it.
        };
    }
    // Two `PersistentVolume`s name this volume. kubelet unmounts no global mount while it sees another mount of the
    // device. So the volume gets no second global mount: the first serves the pods of both. Source: kubelet's
    // `pkg/volume/util`, `GetDeviceMountRefs`.
    if is_to_be_mounted(wish) && wish.global && uses.mounts.iter().any(|mounted| mounted.global) {
        return Ok(Some(Decision::Ready));
    }
    let from = from.filter(|_| is_to_be_mounted(wish));
    Ok(from.cloned().map(Decision::Bind))
}

/// Decides for a volume that is already mounted at the directory. Keeps that mount if it is as the wish says: encrypted
/// or plain, of which type, writable or not. If flags are missing, decides to set them.
fn keep(row: &Row, uses: &Uses, wish: &Wish) -> Ruling {
    require_encryption_as_asked(uses.inside.is_some(), wish)?;
    require_type(&row.fs_type, wish)?;
    // Asks about the mount, not the filesystem: a writable mount is kept even if the kernel has made its filesystem
    // read-only.
    if row.is_mount_read_only() && writes_through(row, wish) {
        return Err(Reason::MountedReadOnly(row.mount_point.clone()));
    }
    let flags = wish.flags_of(row);
    if flags == row.flags() {
        return Ok(Decision::Ready);
    }
    let row = row.clone();
    Ok(Decision::Restrict { row, flags })
}

/// Whether the pod wants to write, and the filesystem of this mount is read-only.
fn writes_through(row: &Row, wish: &Wish) -> bool {
    wish.purpose == Purpose::Filesystem && !wish.read_only && row.is_filesystem_read_only()
}

/// The mount to bind from: one that no other mount hides, and that is the global mount of this pod's volume or shows
/// the whole filesystem. If the pod names a btrfs subvolume, only that global mount fits, since other mounts may show
/// another subvolume.
/// Mounts in kubelet's directories come first, then that global mount, then writable mounts. `None`: no mount fits.
fn best<'a>(mounts: &'a [Mounted], wish: &Wish) -> Option<&'a Row> {
    let is_another = |row: &Row| wish.subvolume && row.fs_type == "btrfs";
    let shows_it = |one: &Mounted| one.own_global || (one.row.is_whole() && !is_another(&one.row));
    let fits = |one: &&Mounted| !one.hidden && shows_it(one);
    let rank = |one: &&Mounted| (!one.kubelets, !one.own_global, one.row.is_read_only());
    let best = mounts.iter().filter(fits).min_by_key(rank);
    best.map(|mounted| &mounted.row)
}

/// Decides by LVM's answer. `None`: the next rules decide.
fn by_lvm(facts: &Facts, lvm: &Lvm, wish: &Wish) -> Result<Option<Decision>, Reason> {
    match lvm {
        Lvm::Silent(words) => Err(Reason::LvmSilent(words.clone())),
        Lvm::Hidden => Err(Reason::Hidden),
        Lvm::NoGroup | Lvm::NoVolume if facts.device.is_some() => Err(Reason::Unknown),
        Lvm::NoGroup => Err(Reason::NoGroup),
        // A call that grows a volume creates none: the new volume would not be the mounted one.
        Lvm::NoVolume if matches!(wish.purpose, Purpose::Size(_)) => {
            Err(Reason::NoVolume(wish.size))
        }
        Lvm::NoVolume => for_absent(facts, wish).map(Some),
        Lvm::Volume {
            volume,
            pool,
            unused_table,
        } => by_row(facts, (volume, pool.as_ref(), *unused_table), wish),
    }
}

/// Decides by LVM's row of the volume, with its pool and whether it has an unused table: see [`Lvm::Volume`]. `None`:
/// the next rules decide.
fn by_row(
    facts: &Facts,
    (volume, pool, unused_table): (&Volume, Option<&Pool>, bool),
    wish: &Wish,
) -> Result<Option<Decision>, Reason> {
    if volume.record.new && !facts.lvcreate_ended {
        return Ok(Some(Decision::Look(Level::Creation)));
    }
    if volume.is_pool() {
        return Err(Reason::Pool);
    }
    if volume.lock.is_some() {
        let Some(locks) = &facts.locks else {
            return Ok(Some(Decision::Look(Level::LeaseState)));
        };
        require_lease(locks, facts.id.vg(), facts.device.is_some())?;
    }
    let Some(device) = &facts.device else {
        require_well(volume, wish.read_only)?;
        return Ok(Some(Decision::Activate));
    };
    if volume.uuid != device.lv_uuid {
        return Err(Reason::AnotherDevice);
    }
    if let Some(name) = facts.uses.as_ref().and_then(|uses| uses.suspended.as_ref()) {
        // A killed lvextend leaves a table that the kernel does not use yet: such a volume is resumed. A volume that
        // somebody suspended by hand has no such table, and is refused.
        return if unused_table {
            Ok(Some(Decision::Resume))
        } else {
            Err(Reason::Suspended(name.clone()))
        };
    }
    require_own_space(volume, facts.larger_device, wish)?;
    require_well(volume, wish.read_only)?;
    if let Some(pool) = pool {
        require_usable_pool(pool, growth_in_pool(volume, wish), wish)?;
    }
    Ok(None)
}

/// Decides for a volume that does not exist. In a shared group, a node without the group's locks creates none.
fn for_absent(facts: &Facts, wish: &Wish) -> Ruling {
    let decision = for_creation(facts.room.as_ref(), wish)?;
    if facts.room.as_ref().is_some_and(Room::is_shared) {
        let Some(locks) = &facts.locks else {
            return Ok(Decision::Look(Level::LeaseState));
        };
        require_lease(locks, facts.id.vg(), false)?;
    }
    Ok(decision)
}

/// Fails if LVM may have given a part of the device to another volume: the two volumes would overwrite each other's
/// data. An lvextend could even make the device smaller than its filesystem.
fn require_own_space(volume: &Volume, larger: Option<Bytes>, wish: &Wish) -> Result<(), Reason> {
    match larger {
        Some(device) if !wish.read_only => Err(Reason::LargerDevice {
            device,
            volume: volume.device_size(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Fails unless this node has lvmlockd's lock of a volume in a shared group, or may try to get that lock.
pub fn require_lease(locks: &LeaseState, vg: &VgName, is_active: bool) -> Result<(), Reason> {
    if let Some(obstacle) = locks.obstacle(vg) {
        return Err(Reason::NoLocks(obstacle));
    }
    match locks {
        LeaseState::Elsewhere(holder) => Err(Reason::HeldElsewhere(holder.clone())),
        // Another node may write to the volume at the same time.
        LeaseState::Shared => Err(Reason::ActiveShared),
        LeaseState::NotHeld if is_active => Err(Reason::ActiveWithoutLock),
        // `obstacle` has refused the last four already.
        LeaseState::NotHeld
        | LeaseState::Held
        | LeaseState::Silent(_)
        | LeaseState::NotStarted
        | LeaseState::Starting
        | LeaseState::Lost => Ok(()),
    }
}

/// Decides for a call that wants the volume and its filesystem to have at least `size`.
fn for_growth(facts: &Facts, volume: &Volume, size: Bytes, wish: &Wish) -> Ruling {
    let Some(ground) = &facts.ground else {
        return Ok(Decision::Look(Level::Ground));
    };
    if let Some(uses) = &facts.uses
        && let (Some(mounted), Some(failure)) = (uses.mounts.first(), uses.failure)
    {
        let place = Place::Here(mounted.row.mount_point.clone());
        return Err(Reason::FilesystemFailed(place, failure));
    }
    // Somebody made the volume read-only while it was mounted. The kernel grows no filesystem on a read-only device.
    if volume.writable == Some(false) && facts.is_written_here() {
        return Err(Reason::ReadOnlyVolume(volume.read_only_by()));
    }
    for_extension(volume, size, ground, wish)
}
