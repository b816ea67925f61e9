//! Decides by space: in a volume group, in a thin pool, and by the limits of the node's config. Pure.

use super::decision::{Create, Decision, Level, Wish};
use super::facts::{Pool, Room};
use super::reason::Reason;
use crate::crypt::HEADER_SIZE;
use crate::lvm::{Spread, Volume};
use crate::names::Bytes;

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
            (
                size,
                against(size, Some((more, group.free)), Bytes::default(), create),
            )
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

/// Decides whether to extend the volume to `size`. It never becomes smaller.
pub fn of_size(volume: &Volume, size: Bytes, wish: &Wish) -> Decision {
    let (has, extent, spread) = (volume.size, volume.extent, volume.spread);
    if size <= has {
        return Decision::Ready;
    }
    let size = spread.whole(size, extent);
    let of_group = |size| spread.takes(size, extent).get();
    let more = Bytes::new(of_group(size).saturating_sub(of_group(has)));
    // A thin volume takes nothing from the group.
    let taken = volume.pool.is_none().then_some((more, volume.free));
    match against(size, taken, has, &wish.create) {
        Some(reason) => Decision::Refuse(reason),
        None => Decision::Extend(size),
    }
}

/// Why a volume may not have this size. `has`: its size now, 0 if it does not exist. `taken`: the bytes that it
/// needs from its group, and the bytes that are free there.
fn against(
    size: Bytes,
    taken: Option<(Bytes, Bytes)>,
    has: Bytes,
    allowed: &Create,
) -> Option<Reason> {
    if let Some(largest) = allowed.largest.filter(|largest| size > *largest) {
        return Some(Reason::TooLarge { size, largest });
    }
    let ((more, free), reserve) = (taken?, allowed.reserve);
    if free < more {
        return Some(Reason::NoRoom {
            size,
            more,
            free,
            has,
        });
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
