//! Decides by space: in a volume group, in a thin pool, and by the limits of the node's config. Pure.

use super::decision::{Decision, Level, Ruling};
use super::facts::{Ground, Pool, Room};
use super::reason::{Needed, Reason};
use super::well::require_well_pool;
use super::wish::{Purpose, Wish};
use crate::crypt::HEADER_SIZE;
use crate::lvm::{Group, Spread, Volume};
use crate::names::Bytes;

/// How many bytes a change of a volume may add to LVM's metadata: its tags, the command that LVM notes, a segment, and
/// the sector that LVM counts as free and keeps. Source: lvm2 lib/format_text/format-text.c, `_vg_write_raw`.
const CHANGE: u64 = 2048;

/// Fails if LVM's metadata may have no room for this number of changes of a volume. `free`: the room that is left.
pub fn require_metadata_room(free: Bytes, changes: u64) -> Result<(), Reason> {
    if free.get() < CHANGE.saturating_mul(changes) {
        return Err(Reason::MetadataFull(free));
    }
    Ok(())
}

/// Decides for a volume that does not exist.
pub fn for_creation(room: Option<&Room>, wish: &Wish) -> Ruling {
    if !wish.group.create {
        return Err(Reason::NoVolume(wish.size));
    }
    let size = wish.size.ok_or(Reason::NoSize)?;
    if wish.read_only {
        return Err(Reason::CreateReadOnly);
    }
    if wish.encrypted == Some(true) && size <= HEADER_SIZE {
        return Err(Reason::TooSmall(size));
    }
    if let (Some(pool), Some(asked)) = (&wish.group.thin_pool, &wish.asked_pool)
        && pool != asked
    {
        let (pool, asked) = (pool.clone(), asked.clone());
        return Err(Reason::AnotherPool { pool, asked });
    }
    let whole = match room {
        None => return Ok(Decision::Look(Level::Room)),
        Some(Room::Group(group)) => size_of_new(size, group, wish)?,
        Some(Room::Pool(pool)) => size_of_new_thin(size, pool, wish)?,
    };
    Ok(Decision::Create(whole))
}

/// The size that a new volume of the group gets: `size` in whole extents. Fails if the group has no room for them.
fn size_of_new(size: Bytes, group: &Group, wish: &Wish) -> Result<Bytes, Reason> {
    let spread = Spread::of_options(&wish.group.lvcreate_options);
    let whole = spread.whole(size, group.extent);
    require_allowed(whole, wish)?;
    let needed = Needed {
        size: whole,
        more: spread.takes(whole, group.extent),
        free: group.free,
        has: Bytes::default(),
        sector: None,
        short: group.disks.iter().find(|disk| disk.is_short()).cloned(),
    };
    require_room(needed, group.free, wish)?;
    // Two changes: the volume is created, and its filesystem recorded.
    require_metadata_room(group.metadata_free, 2)?;
    Ok(whole)
}

/// The size that a new thin volume gets: `size` in whole extents. The volume takes nothing from the group, so only the
/// pool must be usable.
fn size_of_new_thin(size: Bytes, pool: &Pool, wish: &Wish) -> Result<Bytes, Reason> {
    let whole = match pool {
        Pool::Seen(pool) if pool.layout == "thin,pool" => {
            Spread::LINEAR.whole(size, pool.group.extent)
        }
        // lvcreate takes no other volume for a thin pool, such as a cache pool.
        Pool::Seen(other) => return Err(Reason::NoPool(other.id.clone())),
        Pool::Unseen(_) => size,
    };
    require_allowed(whole, wish)?;
    require_usable_pool(pool, whole, wish)?;
    Ok(whole)
}

/// Decides whether to extend the volume to `size`, onto disks that have the space, and no larger sectors than its
/// device: its filesystem may be unable to use larger ones. A volume never becomes smaller.
pub fn for_extension(volume: &Volume, size: Bytes, ground: &Ground, wish: &Wish) -> Ruling {
    let is_large = size <= volume.device_size();
    // A failed lvextend may have changed LVM's metadata, but not the device.
    if is_large && ground.device.is_none_or(|device| size <= device) {
        return Ok(Decision::Ready);
    }
    // The kernel would refuse a table with extents that the disk does not have, and the pod's accesses would wait.
    if let Some(short) = &ground.short {
        return Err(Reason::ShortDisk(short.clone()));
    }
    if is_large {
        return Ok(Decision::Extend(volume.device_size()));
    }
    if volume.is_thick_snapshot() {
        let origin = volume.origin.as_ref().map(ToString::to_string);
        return Err(Reason::SnapshotSize {
            origin: origin.unwrap_or_default(),
            size: volume.device_size(),
        });
    }
    let whole = volume.spread.whole(size, volume.group.extent);
    require_allowed(whole, wish)?;
    if let Some(largest) = ground.largest.filter(|largest| size > *largest) {
        return Err(Reason::FilesystemLimit(largest));
    }
    // A thin volume takes nothing from the group.
    if volume.pool.is_none() {
        require_room_to_grow(volume, whole, ground, wish)?;
    }
    require_metadata_room(volume.group.metadata_free, 1)?;
    Ok(Decision::Extend(whole))
}

fn require_room_to_grow(
    volume: &Volume,
    size: Bytes,
    ground: &Ground,
    wish: &Wish,
) -> Result<(), Reason> {
    let (has, extent, spread) = (volume.takes(), volume.group.extent, volume.spread);
    let of_group = |size| spread.takes(size, extent).get();
    let fitting = ground.fitting();
    let fitting = fitting.as_ref();
    let needed = Needed {
        size,
        more: Bytes::new(of_group(size).saturating_sub(of_group(has))),
        free: fitting.map_or(volume.group.free, |fitting| fitting.free),
        has,
        sector: fitting.and_then(|fitting| fitting.sector),
        short: fitting.and_then(|fitting| fitting.short.clone()),
    };
    let free = fitting.map_or(volume.group.free, |fitting| fitting.of_group);
    require_room(needed, free, wish)
}

/// Fails if the config allows no volume of this size.
fn require_allowed(size: Bytes, wish: &Wish) -> Result<(), Reason> {
    match wish.group.max_size {
        Some(largest) if size > largest => Err(Reason::TooLarge { size, largest }),
        _ => Ok(()),
    }
}

/// Fails if too little room is free on the disks that fit, or if less than the reserve would remain of `free`, the
/// group's whole free space.
fn require_room(needed: Needed, free: Bytes, wish: &Wish) -> Result<(), Reason> {
    let (more, reserve) = (needed.more, wish.group.reserve);
    if needed.free < more {
        return Err(Reason::NoRoom(needed));
    }
    if free.get().saturating_sub(more.get()) < reserve.get() {
        return Err(Reason::Reserve {
            more,
            free,
            reserve,
        });
    }
    Ok(())
}

/// How much larger a thin volume is to become.
pub fn growth_in_pool(volume: &Volume, wish: &Wish) -> Bytes {
    match wish.purpose {
        Purpose::Size(size) => {
            let whole = volume.spread.whole(size, volume.group.extent);
            Bytes::new(whole.get().saturating_sub(volume.takes().get()))
        }
        Purpose::Device | Purpose::Filesystem => Bytes::default(),
    }
}

/// Fails if the thin pool is missing, may run out, or has failed: its volumes may not be written then. `more`: how much
/// its volumes are to become larger.
pub fn require_usable_pool(pool: &Pool, more: Bytes, wish: &Wish) -> Result<(), Reason> {
    let limit = wish.pool_limit;
    let pool = match pool {
        Pool::Seen(pool) => pool,
        Pool::Unseen(id) => return Err(Reason::NoPool(id.clone())),
    };
    if let Some((what, percent)) = pool.short_of(limit, more).next() {
        return Err(Reason::PoolFull {
            pool: pool.id.clone(),
            size: pool.takes(),
            what,
            percent,
            limit,
        });
    }
    require_well_pool(pool)
}
