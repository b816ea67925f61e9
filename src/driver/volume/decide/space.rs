//! Decides by space: in a volume group, in a thin pool, and by the limits of the node's config. Pure.

use super::decision::{Create, Decision, Level, Wish};
use super::facts::{Fitting, Ground, Pool, Room, Sectors};
use super::reason::{Needed, Reason};
use crate::crypt::HEADER_SIZE;
use crate::lvm::{Spread, Volume};
use crate::names::Bytes;

/// The text that a change of a volume may add to LVM's metadata, in bytes: its tags, the command that LVM notes, a
/// segment, and the sector that LVM counts as free and keeps. Source: lvm2 lib/format_text/format-text.c,
/// `_vg_write_raw`.
const CHANGE: u64 = 2048;

/// Why LVM's metadata may have no room for so many changes of a volume.
pub fn of_metadata(free: Bytes, changes: u64) -> Option<Reason> {
    (free.get() < CHANGE.saturating_mul(changes)).then_some(Reason::MetadataFull { free })
}

/// Decides for a volume that does not exist.
pub fn absent(room: Option<&Room>, wish: &Wish) -> Decision {
    let Create { allowed, size, .. } = wish.create;
    let reason = match size {
        _ if !allowed => Reason::NoVolume(size),
        None => Reason::NoSize,
        Some(_) if wish.read_only => Reason::CreateReadOnly,
        Some(size) if wish.encrypted == Some(true) && size <= HEADER_SIZE => Reason::TooSmall(size),
        Some(size) => match (another_pool(&wish.create), room) {
            (Some(reason), _) => reason,
            (None, None) => return Decision::Look(Level::Room),
            (None, Some(room)) => return made_of(room, size, wish),
        },
    };
    Decision::Refuse(reason)
}

fn made_of(room: &Room, size: Bytes, wish: &Wish) -> Decision {
    let create = &wish.create;
    let (size, reason) = match room {
        Room::Group(group) => {
            let size = create.spread.whole(size, group.extent);
            let more = create.spread.takes(size, group.extent);
            let taken = Taken {
                more,
                free: group.free,
                fitting: None,
            };
            let reason = against(size, Some(taken), Bytes::default(), create);
            // It is created, and its filesystem recorded.
            (size, reason.or_else(|| of_metadata(group.metadata_free, 2)))
        }
        // A thin volume takes nothing from the group.
        Room::Pool(pool) => {
            let size = match pool {
                Pool::Seen(pool) => Spread::LINEAR.whole(size, pool.extent),
                Pool::Unseen(_) => size,
            };
            let too_large = against(size, None, Bytes::default(), create);
            (size, too_large.or_else(|| of_pool(pool, wish)))
        }
    };
    reason.map_or(Decision::Create(size), Decision::Refuse)
}

/// Refuses a pool that the volume's options name, if the config names another.
fn another_pool(create: &Create) -> Option<Reason> {
    let (pool, asked) = (create.pool.clone()?, create.asked_pool.clone()?);
    (pool != asked).then_some(Reason::AnotherPool { pool, asked })
}

/// Why a filesystem cannot live on its device.
pub fn of_sectors(sectors: &Sectors) -> Option<Reason> {
    (sectors.filesystem < sectors.device).then(|| Reason::LargerSectors(sectors.clone()))
}

/// Decides whether to extend the volume to `size`, on disks that its filesystem can live on. It never becomes
/// smaller.
pub fn of_size(volume: &Volume, size: Bytes, ground: &Ground, wish: &Wish) -> Decision {
    let (has, extent, spread) = (volume.size, volume.extent, volume.spread);
    if size <= has {
        return Decision::Ready;
    }
    let size = spread.whole(size, extent);
    let of_group = |size| spread.takes(size, extent).get();
    let more = Bytes::new(of_group(size).saturating_sub(of_group(has)));
    let taken = Taken {
        more,
        free: volume.free,
        fitting: ground.disks.as_ref(),
    };
    // A thin volume takes nothing from the group.
    let taken = volume.pool.is_none().then_some(taken);
    match against(size, taken, has, &wish.create) {
        Some(reason) => Decision::Refuse(reason),
        None => {
            of_metadata(volume.metadata_free, 1).map_or(Decision::Extend(size), Decision::Refuse)
        }
    }
}

/// The bytes that a volume needs from its group, those that are free there, and the only disks that will do.
struct Taken<'a> {
    more: Bytes,
    free: Bytes,
    fitting: Option<&'a Fitting>,
}

/// Why a volume may not have this size. `has`: its size now, 0 if it does not exist.
fn against(size: Bytes, taken: Option<Taken>, has: Bytes, allowed: &Create) -> Option<Reason> {
    if let Some(largest) = allowed.largest.filter(|largest| size > *largest) {
        return Some(Reason::TooLarge { size, largest });
    }
    let reserve = allowed.reserve;
    let Taken {
        more,
        free,
        fitting,
    } = taken?;
    let room = fitting.map_or(free, |fitting| fitting.free);
    if room < more {
        return Some(Reason::NoRoom(Needed {
            size,
            more,
            free: room,
            has,
            sector: fitting.map(|fitting| fitting.sector),
        }));
    }
    let left = free.get().saturating_sub(more.get());
    (left < reserve.get()).then_some(Reason::Reserve {
        more,
        free,
        reserve,
    })
}

/// Why volumes of this thin pool may not be written.
pub fn of_pool(pool: &Pool, wish: &Wish) -> Option<Reason> {
    let limit = wish.pool_limit;
    let pool = match pool {
        Pool::Seen(pool) => pool,
        Pool::Unseen(id) => return Some(Reason::NoPool(id.clone())),
    };
    if let Some((what, percent)) = pool.filled_to(limit).next() {
        return Some(Reason::PoolFull {
            pool: pool.id.clone(),
            size: pool.size,
            what,
            percent,
            limit,
        });
    }
    // "out_of_data", "metadata_read_only", "failed", …: kernel and LVM have seen it break.
    (!pool.health.is_empty() && !pool.health.contains("partial")).then(|| Reason::PoolUnwell {
        pool: pool.id.clone(),
        health: pool.health.clone(),
    })
}
